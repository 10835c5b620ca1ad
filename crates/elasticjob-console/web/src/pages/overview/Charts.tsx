import { Grid, SegmentedControl } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useMemo, useRef } from "react";
import { useLocation } from "react-router";

import { type Buckets, isWithoutHistory, useBuckets } from "../../api/history";
import { useRegistry, useTo } from "../../app/registry";
import { useLocale, useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { BarChart } from "../../parts/chart/BarChart";
import { COUNTS, type Layer, MILLISECONDS } from "../../parts/chart/layers";
import { timeTicks } from "../../parts/chart/ticks";
import { NoHistory } from "../../parts/NoHistory";
import { Empty, Failure, Loading } from "../../parts/states";
import { duration, stamp } from "../../parts/time";
import { RANGES, type RangeName } from "./range";
import { seriesOf, sum } from "./series";

/** Where it is shown how late what ran began. */
export const LATENESS = "lateness";

/** What ran, how it ended and how late it began, in the time that was chosen. */
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
  const isMissing = isWithoutHistory(buckets.error);
  return (
    <Card
      title={t.overview.ran}
      right={
        !isMissing && (
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
      {isMissing ? (
        <NoHistory />
      ) : buckets.isPending ? (
        <Loading rows={5} />
      ) : !buckets.data ? (
        <Failure error={buckets.error} again={() => void buckets.refetch()} />
      ) : buckets.data.items.length === 0 ? (
        <Empty icon="history" title={t.overview.nothingRan}>
          {t.overview.nothingRanAbout}
        </Empty>
      ) : (
        <Both buckets={buckets.data} range={range} lateAfterMs={lateAfterMs} />
      )}
    </Card>
  );
}

function Both({
  buckets,
  range,
  lateAfterMs = Infinity,
}: {
  buckets: Buckets;
  range: RangeName;
  lateAfterMs?: number;
}) {
  const t = useText();
  const to = useTo();
  const locale = useLocale();
  const isNarrow = useMediaQuery("(max-width: 48em)");
  const lateChart = useRef<HTMLDivElement>(null);
  const { hash, key } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same link clicked again has the same hash and another key.
  useEffect(() => {
    if (hash !== `#${LATENESS}`) return;
    lateChart.current?.scrollIntoView({ block: "center" });
    lateChart.current?.focus({ preventScroll: true });
  }, [hash, key]);
  const { count, bucketMs } = RANGES[range];
  const { from, counts, latest } = useMemo(() => seriesOf(buckets, count), [buckets, count]);
  const ticks = useMemo(
    () => timeTicks(from, bucketMs, count, isNarrow ? 5 : 8, locale),
    [from, bucketMs, count, isNarrow, locale],
  );
  const outcomes = useMemo<Layer[]>(
    () =>
      (["failed", "cancelled", "done", "running"] as const).map((tone) => ({
        tone,
        label: t.charts.outcomes[tone],
        values: counts[tone],
      })),
    [counts, t],
  );
  const lateness = useMemo<Layer[]>(() => {
    const only = (isLate: boolean) =>
      latest.map((value) => (value > lateAfterMs === isLate ? value : 0));
    return [
      { tone: "plain", label: t.overview.onTime, values: only(false) },
      { tone: "late", label: t.overview.tooLate, values: only(true) },
    ];
  }, [latest, lateAfterMs, t]);

  const called = (index: number) => stamp(from + index * bucketMs, locale);
  const runs = (index: number, state?: string) => {
    const asked = new URLSearchParams({
      from: new Date(from + index * bucketMs).toISOString(),
      to: new Date(from + (index + 1) * bucketMs).toISOString(),
    });
    if (state) asked.set("state", state);
    return `${to("runs")}?${asked}`;
  };
  const ran = (index: number) => outcomes.some((layer) => (layer.values[index] ?? 0) > 0);
  const number = (value: number) => value.toLocaleString(locale);
  const most = Math.max(...latest);
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, lg: 6 }}>
        <BarChart
          title={t.overview.outcomes}
          says={t.overview.outcomesSay(
            sum(counts.done),
            sum(counts.failed),
            sum(counts.cancelled),
            sum(counts.running),
          )}
          layers={outcomes}
          called={called}
          what={t.charts.from}
          ticks={ticks}
          steps={COUNTS}
          format={number}
          whole={(layer) => number(sum(layer.values))}
          to={(index) => {
            if ((counts.failed[index] ?? 0) > 0) return runs(index, "failed");
            return ran(index) ? runs(index) : null;
          }}
        />
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 6 }} id={LATENESS} ref={lateChart} tabIndex={-1}>
        <BarChart
          title={t.overview.lateness}
          says={t.overview.latenessSays(duration(most), called(latest.indexOf(most)))}
          layers={lateness}
          called={called}
          what={t.charts.from}
          ticks={ticks}
          steps={MILLISECONDS}
          format={duration}
          whole={(layer) => duration(Math.max(...layer.values))}
          limit={lateAfterMs}
          to={(index) => (ran(index) ? runs(index) : null)}
        />
      </Grid.Col>
    </Grid>
  );
}
