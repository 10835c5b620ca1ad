import { Grid, SegmentedControl } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useMemo, useRef } from "react";
import { useLocation } from "react-router";

import { isNoHistoryError, useBuckets } from "../../api/history";
import type { Buckets } from "../../api/types";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { Card } from "../../components/Card";
import { BarChart } from "../../components/chart/BarChart";
import { COUNT_STEPS, DURATION_STEPS, type Layer } from "../../components/chart/layers";
import { timeTicks } from "../../components/chart/ticks";
import { NoHistory } from "../../components/NoHistory";
import { EmptyState, ErrorState, Loading } from "../../components/states";
import { dateTime, formatDuration } from "../../components/time";
import { useLocale, useText } from "../../i18n";
import { RANGES, type RangeName } from "./range";
import { sum, toSeries } from "./series";

/** Fragment id of the start delay chart. */
export const START_DELAY_ID = "lateness";

/** Charts of outcomes and start delays in the selected time range. */
export function Charts({
  range,
  onRange,
  lateAfterMs,
}: {
  range: RangeName;
  onRange: (range: RangeName) => void;
  lateAfterMs: number | undefined;
}) {
  const t = useText();
  const { bucketMs, count } = RANGES[range];
  const buckets = useBuckets(useRegistry(), count, bucketMs);
  const hasNoHistory = isNoHistoryError(buckets.error);
  return (
    <Card
      title={t.overview.recentRuns}
      right={
        !hasNoHistory && (
          <SegmentedControl
            size="xs"
            aria-label={t.overview.range}
            value={range}
            onChange={(value) => onRange(value as RangeName)}
            data={Object.keys(RANGES).map((value) => ({
              value,
              label: t.overview.ranges[value] ?? value,
            }))}
          />
        )
      }
    >
      {hasNoHistory ? (
        <NoHistory />
      ) : buckets.isPending ? (
        <Loading rows={5} />
      ) : !buckets.data ? (
        <ErrorState error={buckets.error} onRetry={() => void buckets.refetch()} />
      ) : buckets.data.items.length === 0 ? (
        <EmptyState icon="history" title={t.overview.noRuns}>
          {t.overview.noRunsAbout}
        </EmptyState>
      ) : (
        <ChartPair buckets={buckets.data} range={range} lateAfterMs={lateAfterMs} />
      )}
    </Card>
  );
}

function ChartPair({
  buckets,
  range,
  lateAfterMs = Infinity,
}: {
  buckets: Buckets;
  range: RangeName;
  lateAfterMs?: number;
}) {
  const t = useText();
  const to = useRegistryLink();
  const locale = useLocale();
  const isNarrow = useMediaQuery("(max-width: 48em)");
  const lateChart = useRef<HTMLDivElement>(null);
  const { hash, key } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same link clicked again has the same hash and another key.
  useEffect(() => {
    if (hash !== `#${START_DELAY_ID}`) return;
    lateChart.current?.scrollIntoView({ block: "center" });
    lateChart.current?.focus({ preventScroll: true });
  }, [hash, key]);
  const { count, bucketMs } = RANGES[range];
  const { from, counts, latest } = useMemo(() => toSeries(buckets, count), [buckets, count]);
  const ticks = useMemo(
    () => timeTicks(from, bucketMs, count, isNarrow ? 5 : 8),
    [from, bucketMs, count, isNarrow],
  );
  const outcomes = useMemo<Layer[]>(
    () =>
      (["failed", "incomplete", "cancelled", "done", "running"] as const).map((tone) => ({
        tone,
        label: t.charts.outcomes[tone],
        values: counts[tone],
      })),
    [counts, t],
  );
  const delays = useMemo<Layer[]>(() => {
    const only = (isLate: boolean) =>
      latest.map((value) => (value > lateAfterMs === isLate ? value : 0));
    return [
      { tone: "plain", label: t.overview.onTime, values: only(false) },
      { tone: "late", label: t.overview.late, values: only(true) },
    ];
  }, [latest, lateAfterMs, t]);

  const bucketLabel = (index: number) => dateTime(from + index * bucketMs);
  const runsLink = (index: number, state?: string) => {
    const parameters = new URLSearchParams({
      from: new Date(from + index * bucketMs).toISOString(),
      to: new Date(from + (index + 1) * bucketMs).toISOString(),
    });
    if (state) parameters.set("state", state);
    return `${to("runs")}?${parameters}`;
  };
  const hasRuns = (index: number) => outcomes.some((layer) => (layer.values[index] ?? 0) > 0);
  const number = (value: number) => value.toLocaleString(locale);
  const most = Math.max(...latest);
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, lg: 6 }}>
        <BarChart
          title={t.overview.outcomes}
          summary={t.overview.outcomesSummary({
            done: sum(counts.done),
            incomplete: sum(counts.incomplete),
            failed: sum(counts.failed),
            cancelled: sum(counts.cancelled),
            running: sum(counts.running),
          })}
          layers={outcomes}
          barLabel={bucketLabel}
          barHeader={t.charts.from}
          ticks={ticks}
          steps={COUNT_STEPS}
          format={number}
          layerTotal={(layer) => number(sum(layer.values))}
          linkOf={(index) => {
            for (const state of ["failed", "incomplete"] as const) {
              if ((counts[state][index] ?? 0) > 0) return runsLink(index, state);
            }
            return hasRuns(index) ? runsLink(index) : null;
          }}
        />
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 6 }} id={START_DELAY_ID} ref={lateChart} tabIndex={-1}>
        <BarChart
          title={t.overview.startDelay}
          summary={t.overview.startDelaySummary(
            formatDuration(most),
            bucketLabel(latest.indexOf(most)),
          )}
          layers={delays}
          barLabel={bucketLabel}
          barHeader={t.charts.from}
          ticks={ticks}
          steps={DURATION_STEPS}
          format={formatDuration}
          layerTotal={(layer) => formatDuration(Math.max(...layer.values))}
          limit={lateAfterMs}
          linkOf={(index) => (hasRuns(index) ? runsLink(index) : null)}
        />
      </Grid.Col>
    </Grid>
  );
}
