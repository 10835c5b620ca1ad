package interop;

import com.google.gson.JsonObject;
import org.apache.shardingsphere.elasticjob.infra.listener.ShardingContexts;
import org.apache.shardingsphere.elasticjob.lite.api.listener.AbstractDistributeOnceElasticJobListener;

/** The listener of type ONCE: called once per fire; writes an event for each call. */
public final class OnceListener extends AbstractDistributeOnceElasticJobListener {

    /** Twice this is less than the interval of a job: ElasticJob sometimes misses a wake-up, and has to be ready for the next fire. */
    private static final long TIMEOUT_MS = 1_500;

    public OnceListener() {
        super(TIMEOUT_MS, TIMEOUT_MS);
    }

    @Override
    public void doBeforeJobExecutedAtLastStarted(final ShardingContexts contexts) {
        write("before", contexts);
    }

    @Override
    public void doAfterJobExecutedAtLastCompleted(final ShardingContexts contexts) {
        write("after", contexts);
    }

    @Override
    public String getType() {
        return "ONCE";
    }

    private static void write(final String kind, final ShardingContexts contexts) {
        JsonObject event = new JsonObject();
        event.addProperty("event", kind);
        event.addProperty("job", contexts.getJobName());
        event.addProperty("task", contexts.getTaskId());
        EventWriter.write(event);
    }
}
