import "../../../components/chart/chart.css";

import { Anchor, Stack, Text } from "@mantine/core";
import { Link } from "react-router";

import { isNoHistoryError, useJobFigures } from "../../../api/history";
import type { JobFigures, Percentiles } from "../../../api/types";
import { useRegistry, useRegistryLink } from "../../../app/registry";
import { Card } from "../../../components/Card";
import { colour } from "../../../components/chart/tones";
import { ErrorState, Loading } from "../../../components/states";
import { Timestamp } from "../../../components/Timestamp";
import { formatDuration } from "../../../components/time";
import { useText } from "../../../i18n";
import { percent } from "../../jobs/sparklineBars";
import classes from "./FiguresCard.module.css";

/** Recent runs shown on a job's page. */
export const LAST_RUNS = 40;

/** Statistics of a job over a week. Without a history store it is hidden; the runs page says why. */
export function FiguresCard({ job }: { job: string }) {
  const t = useText();
  const to = useRegistryLink();
  const figures = useJobFigures(useRegistry(), job, LAST_RUNS);
  if (isNoHistoryError(figures.error)) return null;
  return (
    <Card
      title={t.job.statistics}
      right={
        <Anchor component={Link} size="sm" to={`${to("runs")}?${new URLSearchParams({ job })}`}>
          {t.job.allRuns}
        </Anchor>
      }
    >
      {figures.isPending ? (
        <Loading rows={4} />
      ) : !figures.data ? (
        <ErrorState error={figures.error} onRetry={() => void figures.refetch()} />
      ) : (
        <Figures of={figures.data} />
      )}
    </Card>
  );
}

function Figures({ of: { figures, lastRuns } }: { of: JobFigures }) {
  const t = useText();
  if (!figures) {
    const last = lastRuns[0]?.startedAt;
    return (
      <Text size="sm" c="dimmed" component="div">
        {last ? (
          <>
            {t.job.notThisWeek} <Timestamp at={last} />
          </>
        ) : (
          t.job.neverRan
        )}
      </Text>
    );
  }
  const { successPermille, done, incomplete, failed, cancelled, running } = figures;
  return (
    <Stack gap="sm" data-figures>
      <div>
        <Text size="xs" c="dimmed">
          {t.job.successRate}
        </Text>
        <div className={classes.rate}>
          {successPermille === null ? "–" : percent(successPermille)}
        </div>
        <div className={classes.bar} aria-hidden="true">
          {(["done", "incomplete", "cancelled", "failed"] as const).map((state) => (
            <span
              key={state}
              style={{ flexGrow: figures[state], background: colour(state) }}
              hidden={figures[state] === 0}
            />
          ))}
        </div>
        <Text size="xs" c="dimmed">
          {t.charts.counts({ done, incomplete, failed, cancelled, running })}
        </Text>
      </div>
      <table className={classes.table}>
        <thead>
          <tr>
            <td />
            <th scope="col">{t.job.p50}</th>
            <th scope="col">{t.job.p95}</th>
            <th scope="col">{t.job.p99}</th>
          </tr>
        </thead>
        <tbody>
          <PercentilesRow label={t.job.duration} of={figures.durationMs} />
          <PercentilesRow label={t.job.startDelay} of={figures.latenessMs} />
        </tbody>
      </table>
      <div>
        <Text size="xs" c="dimmed">
          {t.job.lastSuccess}
        </Text>
        <Text size="sm" component="div">
          <Timestamp at={figures.lastSuccess} />{" "}
          {figures.lastSuccess && (
            <Text span size="xs" c="dimmed">
              <Timestamp at={figures.lastSuccess} isRelative />
            </Text>
          )}
        </Text>
      </div>
    </Stack>
  );
}

function PercentilesRow({ label, of }: { label: string; of: Percentiles | null }) {
  return (
    <tr>
      <th scope="row">{label}</th>
      {(["p50", "p95", "p99"] as const).map((each) => (
        <td key={each}>{of ? formatDuration(of[each]) : "–"}</td>
      ))}
    </tr>
  );
}
