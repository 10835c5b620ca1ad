package interop;

import com.google.gson.JsonObject;
import org.apache.shardingsphere.elasticjob.api.ShardingContext;
import org.apache.shardingsphere.elasticjob.simple.job.SimpleJob;

/** A job that sleeps, and writes an event when it starts and when it ends. One of its shards may always fail. */
public final class Work implements SimpleJob {

    private final long lastsMs;

    private final int fails;

    /**
     * @param fails the shard that fails; -1 for none
     */
    Work(final long lastsMs, final int fails) {
        this.lastsMs = lastsMs;
        this.fails = fails;
    }

    @Override
    public void execute(final ShardingContext context) {
        write("started", context);
        try {
            Thread.sleep(lastsMs);
        } catch (final InterruptedException ex) {
            write("interrupted", context);
            Thread.currentThread().interrupt();
            return;
        }
        if (fails == context.getShardingItem()) {
            write("failed", context);
            throw new IllegalStateException("this shard always fails");
        }
        write("ended", context);
    }

    private static void write(final String kind, final ShardingContext context) {
        JsonObject event = new JsonObject();
        event.addProperty("event", kind);
        event.addProperty("job", context.getJobName());
        event.addProperty("item", context.getShardingItem());
        event.addProperty("task", context.getTaskId());
        event.addProperty("parameter", context.getShardingParameter());
        EventWriter.write(event);
    }
}
