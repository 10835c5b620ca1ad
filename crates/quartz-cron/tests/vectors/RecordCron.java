import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Instant;
import java.util.Date;
import java.util.StringJoiner;
import java.util.TimeZone;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.quartz.CronExpression;

/** Asks the real Quartz: reads lines of zone, instant and expression with tabs in between, writes the lines of a vector file. */
public final class RecordCron {
    private static ExecutorService worker = worker();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", 3);
            out.printf("{\"cron\":\"%s\",\"zone\":\"%s\",\"after\":\"%s\",%s}%n",
                parts[2].replace("\"", "\\\""), parts[0], parts[1], ask(parts[0], parts[1], parts[2]));
        }
        out.flush();
        System.exit(0);
    }

    private static String ask(String zone, String after, String cron) throws InterruptedException {
        Future<String> answer = worker.submit(() -> fires(zone, after, cron));
        try {
            return answer.get(3, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            worker = worker();
            return "\"quartz\":\"hangs\"";
        } catch (ExecutionException e) {
            return "\"quartz\":\"throws\"";
        }
    }

    private static String fires(String zone, String after, String cron) {
        CronExpression expression;
        try {
            expression = new CronExpression(cron);
        } catch (java.text.ParseException e) {
            return "\"quartz\":\"invalid\"";
        }
        expression.setTimeZone(TimeZone.getTimeZone(zone));
        StringJoiner next = new StringJoiner("\",\"", "\"", "\"").setEmptyValue("");
        Date date = Date.from(Instant.parse(after));
        for (int i = 0; i < 5; i++) {
            date = expression.getTimeAfter(date);
            if (date == null) {
                break;
            }
            next.add(date.toInstant().toString());
        }
        return "\"next\":[" + next + "]";
    }

    private static ExecutorService worker() {
        return Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
    }
}
