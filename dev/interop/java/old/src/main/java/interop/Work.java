package interop;

import com.dangdang.ddframe.job.api.ShardingContext;
import com.dangdang.ddframe.job.api.simple.SimpleJob;
import com.google.gson.Gson;
import com.google.gson.JsonObject;

/**
 * A job that sleeps, and writes an event when it starts and when it ends. It has the same class name as the job of the driver with ElasticJob 3, as
 * when a program is moved to a newer ElasticJob.
 */
public final class Work implements SimpleJob {

    /** Static because 2.1.5 creates its jobs itself: there is no other way to pass them a value. */
    static volatile long lastsMs;

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
        write("ended", context);
    }

    private static void write(final String kind, final ShardingContext context) {
        JsonObject event = new JsonObject();
        event.addProperty("event", kind);
        event.addProperty("job", context.getJobName());
        event.addProperty("item", context.getShardingItem());
        event.addProperty("task", context.getTaskId());
        event.addProperty("parameter", context.getShardingParameter());
        write(event);
    }

    /** Synchronized because shards write at the same time: each line must stay in one piece. */
    static synchronized void write(final JsonObject event) {
        event.addProperty("at", System.currentTimeMillis());
        System.out.println(new Gson().toJson(event));
    }
}
