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

/** The jobs that this JVM has joined, on one registry connection. */
final class Jobs {

    private final ZookeeperConfiguration configuration;

    private final Map<String, JobBootstrap> started = new HashMap<>();

    private CoordinatorRegistryCenter registry;

    private SnapshotService dumps;

    Jobs(final String servers, final String namespace, final int sessionTimeout) {
        configuration = new ZookeeperConfiguration(servers, namespace);
        configuration.setSessionTimeoutMilliseconds(sessionTimeout);
        configuration.setConnectionTimeoutMilliseconds(sessionTimeout);
        // Reconnect quickly: a test waits for it.
        configuration.setBaseSleepTimeMilliseconds(100);
        configuration.setMaxSleepTimeMilliseconds(500);
        configuration.setMaxRetries(20);
    }

    /** Joins a job, given the YAML that it is stored as, and returns the instance id. */
    String start(final JsonObject command) {
        JobConfiguration job = read(command).toJobConfiguration();
        boolean oneOff = null == job.getCron() || job.getCron().isEmpty();
        String type = command.get("type").getAsString();
        JobBootstrap bootstrap;
        if ("SIMPLE".equals(type)) {
            Work work = new Work(command.get("lastsMs").getAsLong(), command.get("fails").getAsInt());
            bootstrap = oneOff ? new OneOffJobBootstrap(registry(), work, job) : new ScheduleJobBootstrap(registry(), work, job);
        } else if ("RECORD_STARTS".equals(type)) {
            bootstrap = new ScheduleJobBootstrap(registry(), new StartRecorder(command.get("lastsMs").getAsLong()), job);
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
     * Joins many jobs that differ only in their names, {@code prefix0} and on, one after the other as a program does. Stops early when the time or
     * the number of threads is exceeded. Returns how many jobs it has joined and, if it stopped early, the reason.
     */
    JsonObject startMany(final JsonObject command) {
        long until = System.nanoTime() + command.get("withinMs").getAsLong() * 1_000_000;
        int count = command.get("count").getAsInt();
        JsonObject result = new JsonObject();
        int joined = 0;
        while (joined < count) {
            if (System.nanoTime() > until) {
                result.addProperty("reason", "the time was up");
                break;
            }
            if (ManagementFactory.getThreadMXBean().getThreadCount() > command.get("threads").getAsInt()) {
                result.addProperty("reason", "the thread limit was reached");
                break;
            }
            JobConfigurationPOJO job = read(command);
            job.setJobName(command.get("prefix").getAsString() + joined);
            StartRecorder recorder = new StartRecorder(command.get("lastsMs").getAsLong());
            ScheduleJobBootstrap bootstrap = new ScheduleJobBootstrap(registry(), recorder, job.toJobConfiguration());
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

    /** Stops all jobs and closes the session, as a program does that exits gracefully. */
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

    static JobConfigurationPOJO read(final JsonObject command) {
        return YamlEngine.unmarshal(command.get("yaml").getAsString(), JobConfigurationPOJO.class);
    }

    private CoordinatorRegistryCenter registry() {
        if (null == registry) {
            registry = new ZookeeperRegistryCenter(configuration);
            registry.init();
        }
        return registry;
    }
}
