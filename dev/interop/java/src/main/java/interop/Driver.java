package interop;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.shardingsphere.elasticjob.infra.yaml.YamlEngine;
import org.apache.shardingsphere.elasticjob.lite.api.bootstrap.impl.ScheduleJobBootstrap;

/**
 * Runs jobs with the real ElasticJob. A test writes commands to its stdin, one JSON object per line, and reads its stdout: one answer for each
 * command, in order, and in between the events of jobs and listeners.
 *
 * <p>Arguments: the servers, the namespace, the session timeout in milliseconds.
 */
public final class Driver {

    private final Jobs jobs;

    private final Console console;

    private Driver(final String servers, final String namespace, final int sessionTimeout) {
        jobs = new Jobs(servers, namespace, sessionTimeout);
        console = new Console(servers, namespace);
    }

    public static void main(final String[] args) throws IOException {
        Driver driver = new Driver(args[0], args[1], Integer.parseInt(args[2]));
        JsonObject hello = new JsonObject();
        hello.addProperty("event", "hello");
        hello.addProperty("version", version());
        EventWriter.write(hello);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); null != line; line = commands.readLine()) {
            driver.handle(JsonParser.parseString(line).getAsJsonObject());
        }
        // The test is gone. Exit hooks would wait for running jobs.
        Runtime.getRuntime().halt(1);
    }

    /** The version in the name of the jar; the jar has no other. */
    private static String version() {
        String jar = ScheduleJobBootstrap.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceAll(".*/elasticjob-lite-core-(.*)\\.jar", "$1");
    }

    private void handle(final JsonObject command) {
        JsonObject answer = new JsonObject();
        answer.addProperty("event", "answer");
        try {
            answer.add("value", EventWriter.toJson(execute(command)));
        } catch (final Exception ex) {
            // The test decides whether an error was expected.
            answer.addProperty("error", ex.toString());
        }
        EventWriter.write(answer);
    }

    private Object execute(final JsonObject command) throws Exception {
        String name = command.get("do").getAsString();
        switch (name) {
            case "start":
                return jobs.start(command);
            case "start many":
                return jobs.startMany(command);
            case "take starts":
                return StartRecorder.take();
            case "stop":
                return jobs.stop(command.get("job").getAsString());
            case "leave":
                return jobs.leave();
            case "listen":
                return jobs.listenForDumps(command.get("port").getAsInt());
            case "dump":
                return jobs.dump(command.get("job").getAsString());
            case "yaml":
                // The document that ElasticJob would store: the text is read into its model and written back.
                return YamlEngine.marshal(Jobs.read(command));
            default:
                return console.execute(name, command);
        }
    }
}
