import { useMediaQuery } from "@mantine/hooks";
import { useMemo } from "react";

import { isWithoutHistory, type Outcome, useJobFigures } from "../../../api/history";
import { useRegistry, useTo } from "../../../app/registry";
import { useLocale, useText } from "../../../i18n";
import { Card } from "../../../parts/Card";
import { BarChart } from "../../../parts/chart/BarChart";
import { type Layer, MILLISECONDS } from "../../../parts/chart/layers";
import { evenTicks } from "../../../parts/chart/ticks";
import { Failure, Loading } from "../../../parts/states";
import { brief, clock, duration } from "../../../parts/time";
import { LAST } from "./FiguresCard";

const OUTCOMES: Outcome[] = ["failed", "cancelled", "done"];

/** How long the last runs took, each with a way to it. */
export function Durations({ job }: { job: string }) {
  const t = useText();
  const to = useTo();
  const locale = useLocale();
  const isNarrow = useMediaQuery("(max-width: 48em)");
  const figures = useJobFigures(useRegistry(), job, LAST);
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
        return at ? clock(at, locale) : "";
      }),
    [runs, isNarrow, locale],
  );
  if (isWithoutHistory(figures.error)) return null;
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
        <Failure error={figures.error} again={() => void figures.refetch()} />
      </Card>
    );
  }
  // The figures beside it say that it never ran.
  if (runs.length === 0) return null;
  const longest = Math.max(...runs.map((run) => run.durationMs ?? 0));
  return (
    <Card>
      <BarChart
        title={t.job.durations}
        says={t.job.durationsSay(runs.length, duration(longest))}
        layers={layers}
        called={(index) => {
          const at = runs[index]?.startedAt;
          return at ? brief(at, locale, Date.now()) : "–";
        }}
        what={t.charts.started}
        ticks={ticks}
        steps={MILLISECONDS}
        format={(value) => duration(value)}
        whole={(layer) => layer.values.filter((value) => value > 0).length.toLocaleString(locale)}
        to={(index) => {
          const run = runs[index];
          return run ? to("runs", run.runId) : null;
        }}
      />
    </Card>
  );
}
