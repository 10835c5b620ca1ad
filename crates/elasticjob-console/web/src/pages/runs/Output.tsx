import { Text } from "@mantine/core";

import { useRegistry } from "../../app/registry";
import { useLocale, useText } from "../../i18n";
import { Scroll } from "../../parts/Scroll";
import { Failure, Loading } from "../../parts/states";
import { clock } from "../../parts/time";
import { useOutput } from "./api";

/** What a run said, while it says it. */
export function Output({ runId, isRunning }: { runId: string; isRunning: boolean }) {
  const t = useText();
  const locale = useLocale();
  const output = useOutput(useRegistry(), runId, isRunning);
  if (output.isPending) return <Loading rows={3} />;
  if (!output.data) return <Failure error={output.error} />;
  if (output.data.lines.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t.runs.silent}
      </Text>
    );
  }
  return (
    <Scroll label={t.runs.output}>
      <pre className="mono" style={{ margin: 0, fontSize: 12 }}>
        {output.data.lines
          .map((line) => `${clock(line.at, locale)}  ${line.shardingItem}  ${line.text}`)
          .join("\n")}
      </pre>
      {output.data.hasMore && (
        <Text size="xs" c="dimmed" mt="xs">
          {t.runs.cut}
        </Text>
      )}
    </Scroll>
  );
}
