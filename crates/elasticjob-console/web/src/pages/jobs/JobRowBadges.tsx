import type { JobRow } from "../../api/types";
import { Badge } from "../../components/Badge";
import { useText } from "../../i18n";

/** Badges for running, failover, misfired and disabled shards of a job. */
export function JobRowBadges({ row }: { row: JobRow }) {
  const t = useText();
  return (
    <>
      {row.runningCount > 0 && (
        <Badge tone="busy" isAlive>
          {t.jobs.running(row.runningCount)}
        </Badge>
      )}
      {row.awaitingFailoverCount > 0 && (
        <Badge tone="bad">{t.jobs.waiting(row.awaitingFailoverCount)}</Badge>
      )}
      {row.misfiredCount > 0 && <Badge tone="warn">{t.jobs.misfired(row.misfiredCount)}</Badge>}
      {row.disabledShardCount > 0 && (
        <Badge tone="off">{t.jobs.disabledShards(row.disabledShardCount)}</Badge>
      )}
    </>
  );
}
