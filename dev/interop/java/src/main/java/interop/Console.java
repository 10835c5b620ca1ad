package interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.function.Consumer;
import org.apache.shardingsphere.elasticjob.infra.yaml.YamlEngine;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobAPIFactory;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobOperateAPI;

/** The calls that ElasticJob's console makes to its lifecycle module. */
final class Console {

    private final String servers;

    private final String namespace;

    Console(final String servers, final String namespace) {
        this.servers = servers;
        this.namespace = namespace;
    }

    /** {@code job} and {@code ip} may be missing where the console allows it. */
    Object execute(final String name, final JsonObject command) throws Exception {
        String job = text(command, "job");
        String ip = text(command, "ip");
        switch (name) {
            case "brief":
                return JobAPIFactory.createJobStatisticsAPI(servers, namespace, null).getJobBriefInfo(job);
            case "briefs":
                return JobAPIFactory.createJobStatisticsAPI(servers, namespace, null).getAllJobsBriefInfo();
            case "briefs of":
                return JobAPIFactory.createJobStatisticsAPI(servers, namespace, null).getJobsBriefInfo(ip);
            case "servers":
                return JobAPIFactory.createServerStatisticsAPI(servers, namespace, null).getAllServersBriefInfo();
            case "shards":
                return JobAPIFactory.createShardingStatisticsAPI(servers, namespace, null).getShardingInfo(job);
            case "disable shard":
                JobAPIFactory.createShardingOperateAPI(servers, namespace, null).disable(job, text(command, "item"));
                return true;
            case "enable shard":
                JobAPIFactory.createShardingOperateAPI(servers, namespace, null).enable(job, text(command, "item"));
                return true;
            case "trigger":
                return operate(api -> api.trigger(job));
            case "disable":
                return operate(api -> api.disable(job, ip));
            case "enable":
                return operate(api -> api.enable(job, ip));
            case "shutdown":
                return operate(api -> api.shutdown(job, ip));
            case "remove":
                return operate(api -> api.remove(job, ip));
            case "dump of":
                return JobAPIFactory.createJobOperateAPI(servers, namespace, null).dump(job, ip, command.get("port").getAsInt());
            case "config":
                return YamlEngine.marshal(JobAPIFactory.createJobConfigurationAPI(servers, namespace, null).getJobConfiguration(job));
            case "update config":
                JobAPIFactory.createJobConfigurationAPI(servers, namespace, null).updateJobConfiguration(Jobs.read(command));
                return true;
            case "remove config":
                JobAPIFactory.createJobConfigurationAPI(servers, namespace, null).removeJobConfiguration(job);
                return true;
            default:
                throw new IllegalArgumentException("unknown command: " + name);
        }
    }

    private boolean operate(final Consumer<JobOperateAPI> operation) {
        operation.accept(JobAPIFactory.createJobOperateAPI(servers, namespace, null));
        return true;
    }

    private static String text(final JsonObject command, final String key) {
        JsonElement value = command.get(key);
        return null == value || value.isJsonNull() ? null : value.getAsString();
    }
}
