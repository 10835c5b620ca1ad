package interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.function.Consumer;
import org.apache.shardingsphere.elasticjob.infra.yaml.YamlEngine;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobAPIFactory;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobOperateAPI;

/** What ElasticJob's console can ask and do: its lifecycle module, call for call. */
final class Console {

    private final String servers;

    private final String namespace;

    Console(final String servers, final String namespace) {
        this.servers = servers;
        this.namespace = namespace;
    }

    /** Orders are named by what they do; {@code job} and {@code ip} may be missing where the console lets them be. */
    Object does(final String what, final JsonObject order) throws Exception {
        String job = text(order, "job");
        String ip = text(order, "ip");
        switch (what) {
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
                JobAPIFactory.createShardingOperateAPI(servers, namespace, null).disable(job, text(order, "item"));
                return true;
            case "enable shard":
                JobAPIFactory.createShardingOperateAPI(servers, namespace, null).enable(job, text(order, "item"));
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
                return JobAPIFactory.createJobOperateAPI(servers, namespace, null).dump(job, ip, order.get("port").getAsInt());
            case "config":
                return YamlEngine.marshal(JobAPIFactory.createJobConfigurationAPI(servers, namespace, null).getJobConfiguration(job));
            case "update config":
                JobAPIFactory.createJobConfigurationAPI(servers, namespace, null).updateJobConfiguration(Jobs.read(order));
                return true;
            case "remove config":
                JobAPIFactory.createJobConfigurationAPI(servers, namespace, null).removeJobConfiguration(job);
                return true;
            default:
                throw new IllegalArgumentException("nobody knows how to " + what);
        }
    }

    private boolean operate(final Consumer<JobOperateAPI> how) {
        how.accept(JobAPIFactory.createJobOperateAPI(servers, namespace, null));
        return true;
    }

    private static String text(final JsonObject order, final String key) {
        JsonElement value = order.get(key);
        return null == value || value.isJsonNull() ? null : value.getAsString();
    }
}
