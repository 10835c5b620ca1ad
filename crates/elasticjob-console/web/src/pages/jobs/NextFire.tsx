import { Stack, Text } from "@mantine/core";

import type { JobRow } from "../../api/types";
import { useNow } from "../../components/now";
import { isJobDisabled } from "../../components/statuses";
import { Timestamp } from "../../components/Timestamp";
import { shortTime, toIanaZone, viewerZone } from "../../components/time";
import { useText } from "../../i18n";

/** Next fire: relative, in the viewer's time zone and, if it differs, in the job's. */
export function NextFire({ row }: { row: JobRow }) {
  const t = useText();
  const now = useNow();
  if (!row.cron) {
    return (
      <Text size="xs" c="dimmed">
        {t.jobs.oneOff}
      </Text>
    );
  }
  const isDisabled = isJobDisabled(row.status, row.disabled);
  if (!row.nextFireTime || isDisabled) {
    return (
      <Stack gap={0}>
        <Text size="sm" c="dimmed">
          {isDisabled ? t.jobs.notWhileDisabled : "–"}
        </Text>
        <Text size="xs" c="dimmed" className="mono">
          {row.cron}
        </Text>
      </Stack>
    );
  }
  const own = toIanaZone(row.timeZone);
  const isElsewhere = own !== undefined && own !== viewerZone();
  return (
    <Stack gap={0}>
      <Text size="sm" component="div">
        <Timestamp at={row.nextFireTime} zone={row.timeZone} />{" "}
        <Text span size="xs" c="dimmed">
          {new Date(row.nextFireTime).getTime() <= now ? (
            t.jobs.dueNow
          ) : (
            <Timestamp at={row.nextFireTime} zone={row.timeZone} isRelative />
          )}
        </Text>
      </Text>
      <Text size="xs" c="dimmed" component="div">
        <span className="mono">{row.cron}</span>
        {isElsewhere && (
          <span>
            {" "}
            · {shortTime(row.nextFireTime, now, own)} {row.timeZone}
          </span>
        )}
      </Text>
    </Stack>
  );
}
