import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

import org.yaml.snakeyaml.DumperOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.representer.Representer;

/** Records how SnakeYAML writes texts, or how ElasticJob reads documents and writes them again. Input: texts or documents, separated by NUL. */
public final class RecordYaml {
    public static void main(String[] args) throws Exception {
        boolean write = "write".equals(args[0]);
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String text : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\0")) {
            out.print(write ? "{\"text\":" + json(text) + "," : "{\"document\":" + json(text) + ",");
            try {
                out.println("\"yaml\":" + json(write ? dump(text) : readAndWrite(text)) + "}");
            } catch (Throwable error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                out.println("\"error\":" + json(String.valueOf(cause.getMessage()).split("\n")[0]) + "}");
            }
        }
        out.flush();
    }

    /** The text as a value, in a list, as a key, and nested. */
    private static String dump(String text) {
        Map<String, Object> inner = new LinkedHashMap<>();
        inner.put(text, "v");
        inner.put("n", text);
        Map<String, Object> outer = new LinkedHashMap<>();
        outer.put("a", text);
        outer.put("b", Arrays.asList(text, "x"));
        outer.put("c", inner);
        return new Yaml(new Representer(new DumperOptions())).dumpAsMap(outer);
    }

    /** A configuration as it is after an instance has loaded it and a console has stored it. By reflection, so that `write` needs no ElasticJob. */
    private static String readAndWrite(String document) throws Exception {
        Class<?> engine = Class.forName("org.apache.shardingsphere.elasticjob.infra.yaml.YamlEngine");
        Class<?> pojo = Class.forName("org.apache.shardingsphere.elasticjob.infra.pojo.JobConfigurationPOJO");
        Object read = engine.getMethod("unmarshal", String.class, Class.class).invoke(null, document, pojo);
        Object configuration = pojo.getMethod("toJobConfiguration").invoke(read);
        Method from = pojo.getMethod("fromJobConfiguration", configuration.getClass());
        return (String) engine.getMethod("marshal", Object.class).invoke(null, from.invoke(null, configuration));
    }

    private static String json(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa1) || c == 0x2028 || c == 0x2029 || c >= 0xfe00) {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }
}
