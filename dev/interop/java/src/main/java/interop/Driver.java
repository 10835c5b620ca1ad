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
 * A JVM with the real ElasticJob in it. A test writes orders to its stdin, one JSON object a line, and reads from its stdout
 * what happens: one answer for each order, in order, and in between what jobs and listeners do.
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
        hello.addProperty("said", "hello");
        hello.addProperty("version", version());
        Words.say(hello);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = orders.readLine(); null != line; line = orders.readLine()) {
            driver.obey(JsonParser.parseString(line).getAsJsonObject());
        }
        // Whoever gave the orders is gone. Exit hooks would wait for jobs that run.
        Runtime.getRuntime().halt(1);
    }

    /** The jar's own word: the version in its name is the only one it has. */
    private static String version() {
        String jar = ScheduleJobBootstrap.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceAll(".*/elasticjob-lite-core-(.*)\\.jar", "$1");
    }

    private void obey(final JsonObject order) {
        JsonObject answer = new JsonObject();
        answer.addProperty("said", "answer");
        try {
            answer.add("value", Words.tree(does(order)));
        } catch (final Exception ex) {
            // Anything that is wrong with an order is the test's to judge.
            answer.addProperty("error", ex.toString());
        }
        Words.say(answer);
    }

    private Object does(final JsonObject order) throws Exception {
        String what = order.get("do").getAsString();
        switch (what) {
            case "start":
                return jobs.start(order);
            case "crowd":
                return jobs.crowd(order);
            case "beats":
                return Beat.told();
            case "stop":
                return jobs.stop(order.get("job").getAsString());
            case "leave":
                return jobs.leave();
            case "listen":
                return jobs.listenForDumps(order.get("port").getAsInt());
            case "dump":
                return jobs.dump(order.get("job").getAsString());
            case "yaml":
                // What it would store for what it has read: the text goes through its own model.
                return YamlEngine.marshal(Jobs.read(order));
            default:
                return console.does(what, order);
        }
    }
}
