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
 * A JVM with elastic-job 2.1.5 in it, which takes orders and says what happens as the driver with ElasticJob 3 does.
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
        ZookeeperConfiguration where = new ZookeeperConfiguration(servers, namespace);
        where.setSessionTimeoutMilliseconds(sessionTimeout);
        registry = new ZookeeperRegistryCenter(where);
        registry.init();
    }

    public static void main(final String[] args) throws IOException {
        Driver driver = new Driver(args[0], args[1], Integer.parseInt(args[2]));
        JsonObject hello = new JsonObject();
        hello.addProperty("said", "hello");
        hello.addProperty("version", version());
        Work.say(hello);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = orders.readLine(); null != line; line = orders.readLine()) {
            driver.obey(new JsonParser().parse(line).getAsJsonObject());
        }
        // Whoever gave the orders is gone. Exit hooks would wait for jobs that run.
        Runtime.getRuntime().halt(1);
    }

    /** The jar's own word: the version in its name. */
    private static String version() {
        String jar = JobScheduler.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceAll(".*/elastic-job-lite-core-(.*)\\.jar", "$1");
    }

    private void obey(final JsonObject order) {
        JsonObject answer = new JsonObject();
        answer.addProperty("said", "answer");
        try {
            does(order);
            answer.addProperty("value", true);
        } catch (final Exception ex) {
            // Anything that is wrong with an order is the test's to judge.
            answer.addProperty("error", ex.toString());
        }
        Work.say(answer);
    }

    private void does(final JsonObject order) {
        String job = order.get("job").getAsString();
        switch (order.get("do").getAsString()) {
            case "start":
                Work.lastsMs = order.get("lastsMs").getAsLong();
                JobCoreConfiguration core = JobCoreConfiguration.newBuilder(job, order.get("cron").getAsString(), order.get("shards").getAsInt())
                        .shardingItemParameters(order.get("items").getAsString()).failover(true).misfire(true).description("nightly").build();
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
                throw new IllegalArgumentException("nobody knows how to do " + order);
        }
    }

    /** What its console does. */
    private JobOperateAPI console() {
        return JobAPIFactory.createJobOperateAPI(servers, namespace, Optional.<String>absent());
    }
}
