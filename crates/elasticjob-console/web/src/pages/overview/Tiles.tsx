import { Text } from "@mantine/core";
import { Link } from "react-router";

import type { Overview } from "../../api/types";
import { useTo } from "../../app/registry";
import { useText } from "../../i18n";
import type { Tone } from "../../parts/Badge";
import classes from "./Tiles.module.css";

interface Tile {
  label: string;
  value: number;
  to: string;
  /** Its tone when it is not zero. */
  tone?: Tone;
}

/** A registry in numbers; each leads to what it counts. */
export function Tiles({ seen }: { seen: Overview }) {
  const t = useText();
  const to = useTo();
  const jobs = (search: string) =>
    `${to("jobs")}?${new URLSearchParams(search ? { q: search } : {})}`;
  const status = (name: string) => `${to("jobs")}?status=${name}`;
  const tiles: Tile[] = [
    { label: t.overview.tiles.jobs, value: seen.jobCount, to: to("jobs") },
    {
      label: t.overview.tiles.running,
      value: seen.runningCount,
      to: jobs("is:running"),
      tone: "busy",
    },
    {
      label: t.overview.tiles.waiting,
      value: seen.waitingForFailoverCount,
      to: jobs("is:waiting"),
      tone: "bad",
    },
    {
      label: t.overview.tiles.misfired,
      value: seen.misfiredCount,
      to: jobs("is:misfired"),
      tone: "warn",
    },
    {
      label: t.overview.tiles.crashed,
      value: seen.statuses.CRASHED,
      to: status("CRASHED"),
      tone: "bad",
    },
    {
      label: t.overview.tiles.disabled,
      value: seen.statuses.DISABLED,
      to: status("DISABLED"),
      tone: "off",
    },
    {
      label: t.overview.tiles.unreadable,
      value: seen.unreadableCount,
      to: jobs("is:unreadable"),
      tone: "bad",
    },
    { label: t.overview.tiles.shards, value: seen.shardCount, to: to("jobs") },
    { label: t.overview.tiles.instances, value: seen.instanceCount, to: to("instances") },
    { label: t.overview.tiles.servers, value: seen.serverCount, to: to("servers") },
  ];
  return (
    <div className={classes.tiles}>
      {tiles.map((tile) => (
        <Link
          key={tile.label}
          to={tile.to}
          className={classes.tile}
          data-tone={tile.value > 0 ? tile.tone : undefined}
        >
          <Text size="xs" c="dimmed">
            {tile.label}
          </Text>
          <span className={classes.value}>{tile.value.toLocaleString()}</span>
        </Link>
      ))}
    </div>
  );
}
