package interop;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** What is said to the test: one JSON object a line. */
final class Words {

    private static final Gson GSON = new Gson();

    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Words() {
    }

    /** Shards speak at the same time: a line is one piece. */
    static synchronized void say(final JsonObject words) {
        words.addProperty("at", System.currentTimeMillis());
        OUT.println(GSON.toJson(words));
    }

    static JsonElement tree(final Object value) {
        return GSON.toJsonTree(value);
    }
}
