package interop;

import com.dangdang.ddframe.job.config.JobCoreConfiguration;
import com.dangdang.ddframe.job.config.simple.SimpleJobConfiguration;
import com.dangdang.ddframe.job.lite.api.JobScheduler;
import com.dangdang.ddframe.job.lite.config.LiteJobConfiguration;
import com.dangdang.ddframe.job.lite.lifecycle.api.JobAPIFactory;
import com.dangdang.ddframe.job.lite.lifecycle.api.JobOperateAPI;
import com.dangdang.ddframe.job.reg.zookeeper.ZookeeperConfiguration;
import com.dangdang.ddframe.job.reg.zookeeper.ZookeeperRegistryCenter;
import com.google.common.base.Optional;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * Runs jobs with elastic-job 2.1.5, with the same commands and events as the driver with ElasticJob 3.
 *
 * <p>Arguments: the servers, the namespace, the session timeout in milliseconds.
 */
public final class Driver {

    private final String servers;

    private final String namespace;

    private final ZookeeperRegistryCenter registry;

    private Driver(final String servers, final String namespace, final int sessionTimeout) {
        this.servers = servers;
        this.namespace = namespace;
        ZookeeperConfiguration configuration = new ZookeeperConfiguration(servers, namespace);
        configuration.setSessionTimeoutMilliseconds(sessionTimeout);
        registry = new ZookeeperRegistryCenter(configuration);
        registry.init();
    }

    public static void main(final String[] args) throws IOException {
        Driver driver = new Driver(args[0], args[1], Integer.parseInt(args[2]));
        JsonObject hello = new JsonObject();
        hello.addProperty("event", "hello");
        hello.addProperty("version", version());
        Work.write(hello);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); null != line; line = commands.readLine()) {
            driver.handle(new JsonParser().parse(line).getAsJsonObject());
        }
        // The test is gone. Exit hooks would wait for running jobs.
        Runtime.getRuntime().halt(1);
    }

    /** The version in the name of the jar. */
    private static String version() {
        String jar = JobScheduler.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceAll(".*/elastic-job-lite-core-(.*)\\.jar", "$1");
    }

    private void handle(final JsonObject command) {
        JsonObject answer = new JsonObject();
        answer.addProperty("event", "answer");
        try {
            execute(command);
            answer.addProperty("value", true);
        } catch (final Exception ex) {
            // The test decides whether an error was expected.
            answer.addProperty("error", ex.toString());
        }
        Work.write(answer);
    }

    private void execute(final JsonObject command) {
        String job = command.get("job").getAsString();
        switch (command.get("do").getAsString()) {
            case "start":
                Work.lastsMs = command.get("lastsMs").getAsLong();
                JobCoreConfiguration core = JobCoreConfiguration.newBuilder(job, command.get("cron").getAsString(), command.get("shards").getAsInt())
                        .shardingItemParameters(command.get("items").getAsString()).failover(true).misfire(true).description("nightly").build();
                SimpleJobConfiguration simple = new SimpleJobConfiguration(core, Work.class.getCanonicalName());
                new JobScheduler(registry, LiteJobConfiguration.newBuilder(simple).monitorPort(9888).build()).init();
                return;
            case "disable":
                console().disable(Optional.of(job), Optional.<String>absent());
                return;
            case "enable":
                console().enable(Optional.of(job), Optional.<String>absent());
                return;
            default:
                throw new IllegalArgumentException("unknown command: " + command);
        }
    }

    /** The API behind the console of 2.1.5. */
    private JobOperateAPI console() {
        return JobAPIFactory.createJobOperateAPI(servers, namespace, Optional.<String>absent());
    }
}
