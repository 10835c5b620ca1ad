package interop;

import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.shardingsphere.elasticjob.infra.handler.sharding.JobInstance;
import org.apache.shardingsphere.elasticjob.infra.handler.sharding.JobShardingStrategy;
import org.apache.shardingsphere.elasticjob.infra.handler.sharding.impl.AverageAllocationJobShardingStrategy;

/**
 * The strategy that 3.0.5 has and 3.0.4 lacks, by the rule of 3.0.5: the first instance changes with the time. Writes an event with the time at which
 * it assigned the shards, because the assignment depends on it.
 */
public final class SingleShardingBalanceStrategy implements JobShardingStrategy {

    @Override
    public Map<JobInstance, List<Integer>> sharding(final List<JobInstance> instances, final String job, final int total) {
        long now = System.currentTimeMillis();
        List<JobInstance> rotated = new ArrayList<>(instances);
        Collections.rotate(rotated, -(Math.abs(job.hashCode() + (int) now) % rotated.size()));
        JsonObject event = new JsonObject();
        event.addProperty("event", "sharded");
        event.addProperty("job", job);
        event.addProperty("now", now);
        event.addProperty("instances", instances.size());
        EventWriter.write(event);
        return new AverageAllocationJobShardingStrategy().sharding(rotated, job, total);
    }

    @Override
    public String getType() {
        return "SINGLE_SHARDING_BALANCE";
    }
}
