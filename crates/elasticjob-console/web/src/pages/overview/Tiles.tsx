import { Text, Tooltip } from "@mantine/core";
import { Link } from "react-router";

import { useForecast } from "../../api/queries";
import type { Overview } from "../../api/types";
import { useRegistry, useRegistryLink } from "../../app/registry";
import type { Tone } from "../../components/Badge";
import { useLocale, useText } from "../../i18n";
import { START_DELAY_ID } from "./Charts";
import { RANGES, type RangeName } from "./range";
import classes from "./Tiles.module.css";

interface Tile {
  label: string;
  /** Undefined if there is no history store. */
  value: number | undefined;
  /** Shown if there is no value. */
  absent?: string;
  to: string;
  /** Tone if the value is not zero. */
  tone?: Tone;
  about?: string;
}

/** Figures of a registry, each linked to what it counts: first activity, then inventory. */
export function Tiles({ overview, range }: { overview: Overview; range: RangeName }) {
  return (
    <>
      <ActivityTiles overview={overview} range={range} />
      <InventoryTiles overview={overview} />
    </>
  );
}

/** Current activity, and failures in the selected time range. */
function ActivityTiles({ overview, range }: { overview: Overview; range: RangeName }) {
  const t = useText();
  const to = useRegistryLink();
  const registry = useRegistry();
  const due = useForecast(registry, 1, 48).data?.counts.reduce((sum, count) => sum + count, 0);
  const figures = overview.lastHours ?? undefined;
  const { hours, bucketMs } = RANGES[range];
  // Rounded to the bucket, so that links stay stable while the page is open.
  const until = Math.floor(new Date(overview.asOf ?? Date.now()).getTime() / bucketMs) * bucketMs;
  const from = new Date(until - hours * 3_600_000).toISOString();
  const since = t.overview.inRange(t.overview.ranges[range] ?? range);
  const noHistory = figures ? undefined : t.history.noHistory(registry);
  // A store that does not answer may hold them.
  const notRecorded = overview.historyProblem ? undefined : t.overview.notRecorded;
  const tiles: Tile[] = [
    { label: t.overview.tiles.due, value: due, to: `${to("jobs")}?sort=nextFireTime` },
    {
      label: t.overview.tiles.running,
      value: overview.runningCount,
      to: `${to("jobs")}?q=${encodeURIComponent("is:running")}`,
      tone: "busy",
    },
    {
      label: t.overview.tiles.late,
      value: figures?.late,
      // The runs list has no filter for late runs; the chart shows each delay, and its bars link to the runs.
      to: `?${new URLSearchParams({ range })}#${START_DELAY_ID}`,
      tone: "warn",
      about: noHistory ?? t.overview.lateAbout((figures?.lateAfterMs ?? 0) / 1_000, since),
    },
    {
      label: t.overview.tiles.failed,
      value: figures?.failed,
      to: `${to("runs")}?${new URLSearchParams({ state: "failed", from })}`,
      tone: "bad",
      about: noHistory ?? t.overview.ofRuns(figures?.runs ?? 0, since),
    },
    {
      label: t.overview.tiles.incomplete,
      value: figures?.incomplete,
      to: `${to("runs")}?${new URLSearchParams({ state: "incomplete", from })}`,
      tone: "warn",
      about: noHistory ?? t.overview.incompleteAbout(since),
    },
    {
      label: t.overview.tiles.missed,
      value: figures?.missed,
      absent: notRecorded,
      to: `${to("history", "missed")}?${new URLSearchParams({ from })}`,
      tone: "bad",
      about: noHistory ?? t.overview.missedAbout(since, figures?.coalesced ?? 0),
    },
  ];
  return (
    <div className={classes.tiles}>
      {tiles.map((tile) => (
        <TileLink key={tile.label} tile={tile} />
      ))}
    </div>
  );
}

/** Counts of jobs, shards, instances and servers, and of jobs by status. */
function InventoryTiles({ overview }: { overview: Overview }) {
  const t = useText();
  const to = useRegistryLink();
  const search = (text: string) => `${to("jobs")}?q=${encodeURIComponent(text)}`;
  const status = (name: string) => `${to("jobs")}?status=${name}`;
  const names = t.overview.tiles;
  const tiles: Tile[] = [
    { label: names.jobs, value: overview.jobCount, to: to("jobs") },
    { label: names.shards, value: overview.shardCount, to: to("jobs") },
    { label: names.instances, value: overview.instanceCount, to: to("instances") },
    { label: names.servers, value: overview.serverCount, to: to("servers") },
    { label: names.crashed, value: overview.statuses.CRASHED, to: status("CRASHED"), tone: "bad" },
    {
      label: names.waiting,
      value: overview.awaitingFailoverCount,
      to: search("is:waiting"),
      tone: "bad",
    },
    {
      label: names.misfired,
      value: overview.misfiredCount,
      to: search("is:misfired"),
      tone: "warn",
    },
    {
      label: names.disabled,
      value: overview.statuses.DISABLED,
      to: status("DISABLED"),
      tone: "off",
    },
    {
      label: names.unreadable,
      value: overview.unreadableCount,
      to: search("is:unreadable"),
      tone: "bad",
    },
  ];
  return (
    <div className={classes.facts}>
      {tiles.map((tile) => (
        <TileLink key={tile.label} tile={tile} />
      ))}
    </div>
  );
}

function TileLink({ tile }: { tile: Tile }) {
  const locale = useLocale();
  const { label, value, absent = "–", to, tone, about } = tile;
  return (
    <Tooltip label={about} disabled={!about}>
      <Link to={to} className={classes.tile} data-tone={value ? tone : undefined} data-tile>
        <Text size="xs" c="dimmed" component="span">
          {label}
        </Text>
        <span className={classes.value} data-absent={value === undefined || undefined}>
          {value?.toLocaleString(locale) ?? absent}
        </span>
      </Link>
    </Tooltip>
  );
}
