package interop;

import com.google.gson.JsonObject;
import org.apache.shardingsphere.elasticjob.infra.listener.ShardingContexts;
import org.apache.shardingsphere.elasticjob.lite.api.listener.AbstractDistributeOnceElasticJobListener;

/** Listeners of type ONCE: called once for every fire, and says so. */
public final class Once extends AbstractDistributeOnceElasticJobListener {

    /** Twice this is less than the interval of a job: ElasticJob sleeps through a wake-up now and then, and is to be there for the next fire. */
    private static final long PATIENCE = 1_500;

    public Once() {
        super(PATIENCE, PATIENCE);
    }

    @Override
    public void doBeforeJobExecutedAtLastStarted(final ShardingContexts contexts) {
        say("before", contexts);
    }

    @Override
    public void doAfterJobExecutedAtLastCompleted(final ShardingContexts contexts) {
        say("after", contexts);
    }

    @Override
    public String getType() {
        return "ONCE";
    }

    private static void say(final String what, final ShardingContexts contexts) {
        JsonObject words = new JsonObject();
        words.addProperty("said", what);
        words.addProperty("job", contexts.getJobName());
        words.addProperty("task", contexts.getTaskId());
        Words.say(words);
    }
}
