import { Stack, Text } from "@mantine/core";

import type { AuditEntry, Difference } from "../../api/types";
import { useText } from "../../i18n";
import { Differences } from "../../parts/Differences";

/** What was asked, what came of it; a change of a configuration as a difference. */
export function AuditDetail({ entry }: { entry: AuditEntry }) {
  const t = useText();
  const differences = differencesOf(entry.asked);
  return (
    <Stack gap="xs">
      {entry.problem && (
        <Text size="sm" c="var(--bad)">
          {entry.problem}
        </Text>
      )}
      {differences && <Differences differences={differences} />}
      {!differences && isSomething(entry.asked) && (
        <Json title={t.audit.asked} value={entry.asked} />
      )}
      {isSomething(entry.result) && <Json title={t.audit.result} value={entry.result} />}
    </Stack>
  );
}

const isSomething = (value: unknown) =>
  value !== null && value !== undefined && JSON.stringify(value) !== "{}";

/** What a change of a configuration asks for; nothing else is asked for as a difference. */
function differencesOf(asked: unknown): Difference[] | null {
  const told = (asked as { differences?: unknown } | null)?.differences;
  return Array.isArray(told) && told.length > 0 ? (told as Difference[]) : null;
}

function Json({ title, value }: { title: string; value: unknown }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {title}
      </Text>
      <pre className="mono wrap" style={{ margin: 0, fontSize: 12, whiteSpace: "pre-wrap" }}>
        {JSON.stringify(value, null, 2)}
      </pre>
    </div>
  );
}
