import { Group, SegmentedControl, Text, Tooltip } from "@mantine/core";
import { useState } from "react";

import { useForecast } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { useLocale, useText } from "../../i18n";
import { Failure, Loading } from "../../parts/states";
import { stamp } from "../../parts/time";
import classes from "./HeatStrip.module.css";
import { labelled, levels, peak } from "./heat";

const BUCKETS = 48;

/** How much is due in the hours to come: where it gathers is seen before it hurts. */
export function HeatStrip() {
  const t = useText();
  const locale = useLocale();
  const registry = useRegistry();
  const [hours, setHours] = useState("24");
  const heat = useForecast(registry, Number(hours), BUCKETS);
  if (heat.isPending) return <Loading rows={2} />;
  if (!heat.data) return <Failure error={heat.error} again={() => void heat.refetch()} />;
  const { from, bucketMs, counts, isEstimated } = heat.data;
  const start = new Date(from).getTime();
  const at = (index: number) => start + index * bucketMs;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const hottest = peak(counts);
  const says =
    total === 0
      ? t.overview.heatNone
      : t.overview.heatSays(total, Number(hours), isEstimated) +
        (hottest === null
          ? ""
          : t.overview.heatPeak(counts[hottest] ?? 0, stamp(at(hottest), locale)));
  return (
    <div>
      <Group justify="space-between" mb="xs" gap="xs">
        <Text size="sm" c="dimmed">
          {says}
        </Text>
        <SegmentedControl
          size="xs"
          aria-label={t.overview.heatRange}
          value={hours}
          onChange={setHours}
          data={["1", "6", "24"].map((value) => ({
            value,
            label: t.overview.hours(Number(value)),
          }))}
        />
      </Group>
      <div className={classes.strip} role="img" aria-label={says}>
        {levels(counts).map((level, index) => (
          <Tooltip
            // biome-ignore lint/suspicious/noArrayIndexKey: a cell is its place in the strip; the time it stands for moves on with every look.
            key={index}
            label={t.overview.heatCell(stamp(at(index), locale), counts[index] ?? 0)}
            openDelay={0}
          >
            <span className={classes.cell} data-level={level} />
          </Tooltip>
        ))}
      </div>
      <div className={classes.axis} aria-hidden="true">
        {labelled(BUCKETS).map((index) => (
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
