package interop;

import com.google.gson.JsonObject;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import org.apache.shardingsphere.elasticjob.api.JobConfiguration;
import org.apache.shardingsphere.elasticjob.infra.pojo.JobConfigurationPOJO;
import org.apache.shardingsphere.elasticjob.infra.yaml.YamlEngine;
import org.apache.shardingsphere.elasticjob.lite.api.bootstrap.JobBootstrap;
import org.apache.shardingsphere.elasticjob.lite.api.bootstrap.impl.OneOffJobBootstrap;
import org.apache.shardingsphere.elasticjob.lite.api.bootstrap.impl.ScheduleJobBootstrap;
import org.apache.shardingsphere.elasticjob.lite.internal.schedule.JobRegistry;
import org.apache.shardingsphere.elasticjob.lite.internal.snapshot.SnapshotService;
import org.apache.shardingsphere.elasticjob.reg.base.CoordinatorRegistryCenter;
import org.apache.shardingsphere.elasticjob.reg.zookeeper.ZookeeperConfiguration;
import org.apache.shardingsphere.elasticjob.reg.zookeeper.ZookeeperRegistryCenter;

/** The jobs this JVM takes part in, on one connection. */
final class Jobs {

    private final ZookeeperConfiguration where;

    private final Map<String, JobBootstrap> started = new HashMap<>();

    private CoordinatorRegistryCenter registry;

    private SnapshotService dumps;

    Jobs(final String servers, final String namespace, final int sessionTimeout) {
        where = new ZookeeperConfiguration(servers, namespace);
        where.setSessionTimeoutMilliseconds(sessionTimeout);
        where.setConnectionTimeoutMilliseconds(sessionTimeout);
        // Soon back after a cut: a test waits for it.
        where.setBaseSleepTimeMilliseconds(100);
        where.setMaxSleepTimeMilliseconds(500);
        where.setMaxRetries(20);
    }

    /** Joins a job and says by which id; the configuration is the YAML it is stored as. */
    String start(final JsonObject order) {
        JobConfiguration job = read(order).toJobConfiguration();
        boolean oneOff = null == job.getCron() || job.getCron().isEmpty();
        String type = order.get("type").getAsString();
        JobBootstrap bootstrap;
        if ("SIMPLE".equals(type)) {
            Work work = new Work(order.get("lastsMs").getAsLong(), order.get("fails").getAsInt());
            bootstrap = oneOff ? new OneOffJobBootstrap(registry(), work, job) : new ScheduleJobBootstrap(registry(), work, job);
        } else if ("BEAT".equals(type)) {
            bootstrap = new ScheduleJobBootstrap(registry(), new Beat(order.get("lastsMs").getAsLong()), job);
        } else {
            bootstrap = oneOff ? new OneOffJobBootstrap(registry(), type, job) : new ScheduleJobBootstrap(registry(), type, job);
        }
        started.put(job.getJobName(), bootstrap);
        if (!oneOff) {
            ((ScheduleJobBootstrap) bootstrap).schedule();
        }
        return JobRegistry.getInstance().getJobInstance(job.getJobName()).getJobInstanceId();
    }

    /**
     * Joins many jobs that are alike but for their names, {@code prefix0} and on, one after the other as a program does. Stops early when there is no room
     * for more, or no time. How many it has joined, and what became of the next one.
     */
    JsonObject crowd(final JsonObject order) {
        long until = System.nanoTime() + order.get("withinMs").getAsLong() * 1_000_000;
        int count = order.get("count").getAsInt();
        JsonObject result = new JsonObject();
        int joined = 0;
        while (joined < count) {
            if (System.nanoTime() > until) {
                result.addProperty("why", "its time was up");
                break;
            }
            if (ManagementFactory.getThreadMXBean().getThreadCount() > order.get("threads").getAsInt()) {
                result.addProperty("why", "it had as many threads as it was allowed");
                break;
            }
            JobConfigurationPOJO job = read(order);
            job.setJobName(order.get("prefix").getAsString() + joined);
            ScheduleJobBootstrap bootstrap = new ScheduleJobBootstrap(registry(), new Beat(order.get("lastsMs").getAsLong()), job.toJobConfiguration());
            started.put(job.getJobName(), bootstrap);
            bootstrap.schedule();
            joined++;
        }
        result.addProperty("joined", joined);
        return result;
    }

    boolean stop(final String job) {
        JobBootstrap bootstrap = started.remove(job);
        if (null != bootstrap) {
            bootstrap.shutdown();
        }
        return null != bootstrap;
    }

    /** Stops everything and ends the session, as a program does that ends in peace. */
    boolean leave() {
        started.values().forEach(JobBootstrap::shutdown);
        started.clear();
        if (null != dumps) {
            dumps.close();
        }
        if (null != registry) {
            registry.close();
        }
        return true;
    }

    boolean listenForDumps(final int port) {
        dumps = new SnapshotService(registry(), port);
        dumps.listen();
        return true;
    }

    String dump(final String job) {
        return dumps.dumpJobDirectly(job);
    }

    static JobConfigurationPOJO read(final JsonObject order) {
        return YamlEngine.unmarshal(order.get("yaml").getAsString(), JobConfigurationPOJO.class);
    }

    private CoordinatorRegistryCenter registry() {
        if (null == registry) {
            registry = new ZookeeperRegistryCenter(where);
            registry.init();
        }
        return registry;
    }
}
