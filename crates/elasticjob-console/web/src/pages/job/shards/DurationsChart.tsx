import { useMediaQuery } from "@mantine/hooks";
import { useMemo } from "react";

import { isNoHistoryError, useJobFigures } from "../../../api/history";
import type { RunState } from "../../../api/types";
import { useRegistry, useRegistryLink } from "../../../app/registry";
import { Card } from "../../../components/Card";
import { BarChart } from "../../../components/chart/BarChart";
import { DURATION_STEPS, type Layer } from "../../../components/chart/layers";
import { evenTicks } from "../../../components/chart/ticks";
import { ErrorState, Loading } from "../../../components/states";
import { formatDuration, shortTime, timeOfDay } from "../../../components/time";
import { useLocale, useText } from "../../../i18n";
import { LAST_RUNS } from "./FiguresCard";

const OUTCOMES: RunState[] = ["failed", "incomplete", "cancelled", "done"];

/** Duration of recent runs, each linked to its run. */
export function DurationsChart({ job }: { job: string }) {
  const t = useText();
  const to = useRegistryLink();
  const locale = useLocale();
  const isNarrow = useMediaQuery("(max-width: 48em)");
  const figures = useJobFigures(useRegistry(), job, LAST_RUNS);
  const runs = useMemo(
    () => (figures.data?.lastRuns ?? []).filter((run) => run.durationMs !== null).reverse(),
    [figures.data],
  );
  const layers = useMemo<Layer[]>(
    () =>
      OUTCOMES.map((tone) => ({
        tone,
        label: t.charts.outcomes[tone],
        values: runs.map((run) => (run.state === tone ? (run.durationMs ?? 0) : 0)),
      })),
    [runs, t],
  );
  const ticks = useMemo(
    () =>
      evenTicks(runs.length, isNarrow ? 4 : 7, (index) => {
        const at = runs[index]?.startedAt;
        return at ? timeOfDay(at) : "";
      }),
    [runs, isNarrow],
  );
  if (isNoHistoryError(figures.error)) return null;
  if (figures.isPending) {
    return (
      <Card>
        <Loading rows={4} />
      </Card>
    );
  }
  if (!figures.data) {
    return (
      <Card title={t.job.durations}>
        <ErrorState error={figures.error} onRetry={() => void figures.refetch()} />
      </Card>
    );
  }
  // FiguresCard already says that there are no runs.
  if (runs.length === 0) return null;
  const longest = Math.max(...runs.map((run) => run.durationMs ?? 0));
  return (
    <Card>
      <BarChart
        title={t.job.durations}
        summary={t.job.durationsSummary(runs.length, formatDuration(longest))}
        layers={layers}
        barLabel={(index) => {
          const at = runs[index]?.startedAt;
          return at ? shortTime(at, Date.now()) : "–";
        }}
        barHeader={t.charts.started}
        ticks={ticks}
        steps={DURATION_STEPS}
        format={(value) => formatDuration(value)}
        // A run that failed at once took 0 ms, and counts.
        layerTotal={({ tone }) =>
          runs.filter((run) => run.state === tone).length.toLocaleString(locale)
        }
        hasBar={(index) => index < runs.length}
        linkOf={(index) => {
          const run = runs[index];
          return run ? to("runs", run.runId) : null;
        }}
      />
    </Card>
  );
}
