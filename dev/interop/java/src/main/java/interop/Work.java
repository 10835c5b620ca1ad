package interop;

import com.google.gson.JsonObject;
import org.apache.shardingsphere.elasticjob.api.ShardingContext;
import org.apache.shardingsphere.elasticjob.simple.job.SimpleJob;

/** A job that takes a while and says when it begins and how it ends. One of its shards may fail each time. */
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
        say("began", context);
        try {
            Thread.sleep(lastsMs);
        } catch (final InterruptedException ex) {
            say("interrupted", context);
            Thread.currentThread().interrupt();
            return;
        }
        if (fails == context.getShardingItem()) {
            say("failed", context);
            throw new IllegalStateException("this shard fails each time");
        }
        say("ended", context);
    }

    private static void say(final String what, final ShardingContext context) {
        JsonObject words = new JsonObject();
        words.addProperty("said", what);
        words.addProperty("job", context.getJobName());
        words.addProperty("item", context.getShardingItem());
        words.addProperty("task", context.getTaskId());
        words.addProperty("parameter", context.getShardingParameter());
        Words.say(words);
    }
}
