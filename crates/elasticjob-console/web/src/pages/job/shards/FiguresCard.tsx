import "../../../parts/chart/chart.css";

import { Anchor, Stack, Text } from "@mantine/core";
import { Link } from "react-router";

import {
  isWithoutHistory,
  type JobFigures,
  type Percentiles,
  useJobFigures,
} from "../../../api/history";
import { useRegistry, useTo } from "../../../app/registry";
import { useText } from "../../../i18n";
import { Card } from "../../../parts/Card";
import { colour } from "../../../parts/chart/tones";
import { Failure, Loading } from "../../../parts/states";
import { duration } from "../../../parts/time";
import { When } from "../../../parts/When";
import { percent } from "../../jobs/spark";
import classes from "./FiguresCard.module.css";

/** How many of its last runs a job's page shows. */
export const LAST = 40;

/** How a job does, over a week. Without a history there is nothing to say, and the page of runs says why. */
export function FiguresCard({ job }: { job: string }) {
  const t = useText();
  const to = useTo();
  const figures = useJobFigures(useRegistry(), job, LAST);
  if (isWithoutHistory(figures.error)) return null;
  return (
    <Card
      title={t.job.figures}
      right={
        <Anchor component={Link} size="sm" to={`${to("runs")}?${new URLSearchParams({ job })}`}>
          {t.job.allRuns}
        </Anchor>
      }
    >
      {figures.isPending ? (
        <Loading rows={4} />
      ) : !figures.data ? (
        <Failure error={figures.error} again={() => void figures.refetch()} />
      ) : (
        <Shown of={figures.data} />
      )}
    </Card>
  );
}

function Shown({ of: { figures, lastRuns } }: { of: JobFigures }) {
  const t = useText();
  if (!figures) {
    const last = lastRuns[0]?.startedAt;
    return (
      <Text size="sm" c="dimmed" component="div">
        {last ? (
          <>
            {t.job.notThisWeek} <When at={last} />
          </>
        ) : (
          t.job.neverRan
        )}
      </Text>
    );
  }
  const { successPermille, done, failed, cancelled, running } = figures;
  return (
    <Stack gap="sm" data-figures>
      <div>
        <Text size="xs" c="dimmed">
          {t.job.success}
        </Text>
        <div className={classes.rate}>
          {successPermille === null ? "–" : percent(successPermille)}
        </div>
        <div className={classes.bar} aria-hidden="true">
          {(["done", "cancelled", "failed"] as const).map((state) => (
            <span
              key={state}
              style={{ flexGrow: figures[state], background: colour(state) }}
              hidden={figures[state] === 0}
            />
          ))}
        </div>
        <Text size="xs" c="dimmed">
          {t.charts.counted({ done, failed, cancelled, running })}
        </Text>
      </div>
      <table className={classes.table}>
        <thead>
          <tr>
            <td />
            <th scope="col">{t.job.half}</th>
            <th scope="col">95 %</th>
            <th scope="col">99 %</th>
          </tr>
        </thead>
        <tbody>
          <Line label={t.job.took} of={figures.durationMs} />
          <Line label={t.job.late} of={figures.latenessMs} />
        </tbody>
      </table>
      <div>
        <Text size="xs" c="dimmed">
          {t.job.lastSuccess}
        </Text>
        <Text size="sm" component="div">
          <When at={figures.lastSuccess} />{" "}
          {figures.lastSuccess && (
            <Text span size="xs" c="dimmed">
              <When at={figures.lastSuccess} isRelative />
            </Text>
          )}
        </Text>
      </div>
    </Stack>
  );
}

function Line({ label, of }: { label: string; of: Percentiles | null }) {
  return (
    <tr>
      <th scope="row">{label}</th>
      {(["p50", "p95", "p99"] as const).map((each) => (
        <td key={each}>{of ? duration(of[each]) : "–"}</td>
      ))}
    </tr>
  );
}
