import { Stack, Text } from "@mantine/core";

import type { AuditEntry, Difference } from "../../api/types";
import { DifferencesTable } from "../../components/DifferencesTable";
import { useText } from "../../i18n";

/** Request and result of a change; configuration changes are shown as differences. */
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
      {differences && <DifferencesTable differences={differences} />}
      {!differences && hasContent(entry.asked) && (
        <Json title={t.audit.request} value={entry.asked} />
      )}
      {hasContent(entry.result) && <Json title={t.audit.result} value={entry.result} />}
    </Stack>
  );
}

const hasContent = (value: unknown) =>
  value !== null && value !== undefined && JSON.stringify(value) !== "{}";

/** The differences in a request to change a configuration; null for other requests. */
function differencesOf(asked: unknown): Difference[] | null {
  const differences = (asked as { differences?: unknown } | null)?.differences;
  return Array.isArray(differences) && differences.length > 0
    ? (differences as Difference[])
    : null;
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
