package interop;

import com.google.gson.JsonArray;
import java.util.ArrayList;
import java.util.List;
import org.apache.shardingsphere.elasticjob.api.ShardingContext;
import org.apache.shardingsphere.elasticjob.simple.job.SimpleJob;

/** A job that does nothing but note when each of its shards began: for measuring, where every word costs. */
public final class Beat implements SimpleJob {

    private static List<JsonArray> noted = new ArrayList<>();

    private final long lastsMs;

    Beat(final long lastsMs) {
        this.lastsMs = lastsMs;
    }

    @Override
    public void execute(final ShardingContext context) {
        note(context.getJobName(), context.getShardingItem(), System.currentTimeMillis());
        if (0 == lastsMs) {
            return;
        }
        try {
            Thread.sleep(lastsMs);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private static synchronized void note(final String job, final int item, final long at) {
        JsonArray beat = new JsonArray(3);
        beat.add(job);
        beat.add(item);
        beat.add(at);
        noted.add(beat);
    }

    /** What was noted since this was last asked. */
    static synchronized List<JsonArray> told() {
        List<JsonArray> result = noted;
        noted = new ArrayList<>();
        return result;
    }
}
