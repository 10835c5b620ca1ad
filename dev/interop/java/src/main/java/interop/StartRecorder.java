package interop;

import com.google.gson.JsonArray;
import java.util.ArrayList;
import java.util.List;
import org.apache.shardingsphere.elasticjob.api.ShardingContext;
import org.apache.shardingsphere.elasticjob.simple.job.SimpleJob;

/** A job that only records when each of its shards started: for benchmarks, where printing an event for each would cost too much. */
public final class StartRecorder implements SimpleJob {

    private static List<JsonArray> starts = new ArrayList<>();

    private final long lastsMs;

    StartRecorder(final long lastsMs) {
        this.lastsMs = lastsMs;
    }

    @Override
    public void execute(final ShardingContext context) {
        add(context.getJobName(), context.getShardingItem(), System.currentTimeMillis());
        if (0 == lastsMs) {
            return;
        }
        try {
            Thread.sleep(lastsMs);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private static synchronized void add(final String job, final int item, final long at) {
        JsonArray start = new JsonArray(3);
        start.add(job);
        start.add(item);
        start.add(at);
        starts.add(start);
    }

    /** Returns and clears the recorded starts. */
    static synchronized List<JsonArray> take() {
        List<JsonArray> result = starts;
        starts = new ArrayList<>();
        return result;
    }
}
