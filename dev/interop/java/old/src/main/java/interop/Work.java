package interop;

import com.dangdang.ddframe.job.api.ShardingContext;
import com.dangdang.ddframe.job.api.simple.SimpleJob;
import com.google.gson.Gson;
import com.google.gson.JsonObject;

/**
 * A job that takes a while and says when it begins and that it has ended. It has the name of the class that takes its place, as it would when a program is moved
 * to a newer ElasticJob.
 */
public final class Work implements SimpleJob {

    /** 2.1.5 makes its jobs by itself: there is no other way to tell them something. */
    static volatile long lastsMs;

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
        say("ended", context);
    }

    private static void say(final String what, final ShardingContext context) {
        JsonObject words = new JsonObject();
        words.addProperty("said", what);
        words.addProperty("job", context.getJobName());
        words.addProperty("item", context.getShardingItem());
        words.addProperty("task", context.getTaskId());
        words.addProperty("parameter", context.getShardingParameter());
        say(words);
    }

    /** Shards speak at the same time: a line is one piece. */
    static synchronized void say(final JsonObject words) {
        words.addProperty("at", System.currentTimeMillis());
        System.out.println(new Gson().toJson(words));
    }
}
