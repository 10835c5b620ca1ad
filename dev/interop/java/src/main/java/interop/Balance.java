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
 * The strategy that 3.0.5 has and 3.0.4 has not, by its rule: whoever is first changes with the time. Says at what time it dealt, because that decides.
 */
public final class Balance implements JobShardingStrategy {

    @Override
    public Map<JobInstance, List<Integer>> sharding(final List<JobInstance> instances, final String job, final int total) {
        long now = System.currentTimeMillis();
        List<JobInstance> rotated = new ArrayList<>(instances);
        Collections.rotate(rotated, -(Math.abs(job.hashCode() + (int) now) % rotated.size()));
        JsonObject words = new JsonObject();
        words.addProperty("said", "dealt");
        words.addProperty("job", job);
        words.addProperty("now", now);
        words.addProperty("instances", instances.size());
        Words.say(words);
        return new AverageAllocationJobShardingStrategy().sharding(rotated, job, total);
    }

    @Override
    public String getType() {
        return "SINGLE_SHARDING_BALANCE";
    }
}
