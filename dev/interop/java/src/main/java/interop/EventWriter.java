package interop;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Writes events and answers to stdout for the test, one JSON object per line. */
final class EventWriter {

    private static final Gson GSON = new Gson();

    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private EventWriter() {
    }

    /** Synchronized because shards write at the same time: each line must stay in one piece. */
    static synchronized void write(final JsonObject event) {
        event.addProperty("at", System.currentTimeMillis());
        OUT.println(GSON.toJson(event));
    }

    static JsonElement toJson(final Object value) {
        return GSON.toJsonTree(value);
    }
}
