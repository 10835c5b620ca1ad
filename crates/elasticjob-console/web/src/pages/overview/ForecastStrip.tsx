import { Group, SegmentedControl, Text, Tooltip } from "@mantine/core";
import { useState } from "react";

import { useForecast } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { ErrorState, Loading } from "../../components/states";
import { dateTime } from "../../components/time";
import { useLocale, useText } from "../../i18n";
import classes from "./ForecastStrip.module.css";
import { labelledCells, levels, peak } from "./heatLevels";

const BUCKETS = 48;

/** Heat map of upcoming fires, which shows load peaks in advance. */
export function ForecastStrip() {
  const t = useText();
  const locale = useLocale();
  const registry = useRegistry();
  const [hours, setHours] = useState("24");
  const forecast = useForecast(registry, Number(hours), BUCKETS);
  if (forecast.isPending) return <Loading rows={2} />;
  if (!forecast.data)
    return <ErrorState error={forecast.error} onRetry={() => void forecast.refetch()} />;
  const { from, bucketMs, counts, isEstimated } = forecast.data;
  const start = new Date(from).getTime();
  const at = (index: number) => start + index * bucketMs;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const busiest = peak(counts);
  const summary =
    total === 0
      ? t.overview.forecastEmpty
      : t.overview.forecastSummary(total, Number(hours), isEstimated) +
        (busiest === null
          ? ""
          : t.overview.forecastPeak(counts[busiest] ?? 0, dateTime(at(busiest))));
  return (
    <div>
      <Group justify="space-between" mb="xs" gap="xs">
        <Text size="sm" c="dimmed">
          {summary}
        </Text>
        <SegmentedControl
          size="xs"
          aria-label={t.overview.forecastRange}
          value={hours}
          onChange={setHours}
          data={["1", "6", "24"].map((value) => ({
            value,
            label: t.overview.hours(Number(value)),
          }))}
        />
      </Group>
      <div className={classes.strip} role="img" aria-label={summary}>
        {levels(counts).map((level, index) => (
          <Tooltip
            // biome-ignore lint/suspicious/noArrayIndexKey: a cell is identified by its position; its time changes with every refetch.
            key={index}
            label={t.overview.forecastCell(dateTime(at(index)), counts[index] ?? 0)}
            openDelay={0}
          >
            <span className={classes.cell} data-level={level} />
          </Tooltip>
        ))}
      </div>
      <div className={classes.axis} aria-hidden="true">
        {labelledCells(BUCKETS).map((index) => (
          <span key={index}>
            {new Intl.DateTimeFormat(locale, {
              hour: "2-digit",
              minute: "2-digit",
              hourCycle: "h23",
            }).format(at(index))}
          </span>
        ))}
      </div>
    </div>
  );
}
