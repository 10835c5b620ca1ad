import { Group, Text } from "@mantine/core";
import { type KeyboardEvent, type UIEvent, useLayoutEffect, useRef, useState } from "react";
import { Link } from "react-router";

import type { Instance, Shard } from "../../../api/types";
import { useRegistryLink } from "../../../app/registry";
import type { Tone } from "../../../components/Badge";
import { useNow } from "../../../components/now";
import { formatDuration, shortTime } from "../../../components/time";
import { useText } from "../../../i18n";
import type { Cell, MatrixRun } from "./matrixRuns";
import classes from "./RunMatrix.module.css";

const TONES: Record<Cell["state"], Tone> = {
  OVER: "off",
  FRESH: "off",
  RUNNING: "busy",
  DONE: "ok",
  FAILED: "bad",
  LOST: "bad",
  TIMED_OUT: "bad",
  CANCELLED: "warn",
  FENCED: "warn",
};

/** Distance (px) from the newest run that still counts as there: less than a cell. */
const END_TOLERANCE = 12;

/** Steps of the arrow keys, in runs and shards. */
const ARROWS: Record<string, [run: number, shard: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Runs from left to right, shards from top to bottom. */
export function RunMatrix({
  runs,
  shards,
  known,
  isRecorded,
}: {
  runs: MatrixRun[];
  shards: Shard[];
  known: Instance[];
  /** The runs are in the history store, so their cells link to them. */
  isRecorded: boolean;
}) {
  const t = useText();
  const to = useRegistryLink();
  const now = useNow();
  const box = useRef<HTMLElement>(null);
  const [hovered, setHovered] = useState<string | null>(null);
  const isAtNewest = useRef(true);
  // New runs appear on the right and recorded ones on the left; both make the box wider. It stays at the newest run
  // unless the user scrolled back.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect runs when the runs change, and reads none of them.
  useLayoutEffect(() => {
    if (box.current && isAtNewest.current) box.current.scrollLeft = box.current.scrollWidth;
  }, [runs]);
  const onScroll = ({ currentTarget }: UIEvent<HTMLElement>) => {
    const { scrollWidth, scrollLeft, clientWidth } = currentTarget;
    isAtNewest.current = scrollWidth - scrollLeft - clientWidth < END_TOLERANCE;
  };

  const runLabel = (run: MatrixRun) =>
    run.dueAt
      ? t.runMatrix.due(shortTime(run.dueAt, now))
      : t.runMatrix.triggered(shortTime(run.since, now));
  const cellLabel = (run: MatrixRun, item: number, cell: Cell | undefined) => {
    if (!cell) return `${runLabel(run)} · ${t.explain.ofShard(item)}: ${t.runMatrix.didNotRun}`;
    const name = known.find((each) => each.instanceId === cell.instanceId)?.labels?.name;
    const parts = [runLabel(run), t.explain.ofShard(item), t.runMatrix.states[cell.state]];
    if (cell.attempt > 1) parts.push(t.shards.attempt(cell.attempt));
    if (cell.startedAt && cell.endedAt) {
      parts.push(formatDuration(Date.parse(cell.endedAt) - Date.parse(cell.startedAt)));
    }
    if (name ?? cell.instanceId) parts.push(name ?? cell.instanceId ?? "");
    return parts.join(" · ");
  };

  /** The table is one tab stop; arrow keys move the focus between cells. */
  const moveFocus = (event: KeyboardEvent<HTMLTableElement>) => {
    const step = ARROWS[event.key];
    const from = (event.target as HTMLElement).dataset;
    if (!step || from.column === undefined || from.row === undefined) return;
    const [column, row] = [Number(from.column) + step[0], Number(from.row) + step[1]];
    const next = event.currentTarget.querySelector<HTMLElement>(
      `[data-column="${column}"][data-row="${row}"]`,
    );
    if (!next) return;
    event.preventDefault();
    next.focus();
  };

  return (
    <>
      <section
        ref={box}
        aria-label={t.runMatrix.title}
        tabIndex={isRecorded ? -1 : 0}
        className={classes.box}
        onScroll={onScroll}
      >
        <table
          className={classes.matrix}
          onKeyDown={moveFocus}
          onMouseLeave={() => setHovered(null)}
        >
          <tbody>
            {shards.map(({ item }, row) => (
              <tr key={item}>
                <th scope="row">{item}</th>
                {runs.map((run, column) => {
                  const cell = run.cells[item];
                  const label = cellLabel(run, item, cell);
                  const attributes = {
                    className: classes.cell,
                    "data-tone": cell && TONES[cell.state],
                    "data-retried": (cell && cell.attempt > 1) || undefined,
                    "data-triggered": run.dueAt === null || undefined,
                    "aria-label": label,
                    onMouseEnter: () => setHovered(label),
                  };
                  const isTabStop = row === 0 && column === runs.length - 1;
                  return (
                    <td key={run.runId}>
                      {isRecorded ? (
                        <Link
                          {...attributes}
                          to={to("runs", run.runId)}
                          data-column={column}
                          data-row={row}
                          tabIndex={isTabStop ? 0 : -1}
                          onFocus={() => setHovered(label)}
                        />
                      ) : (
                        <span {...attributes} role="img" />
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <Group gap="md" mt={6} data-legend>
        {(["triggered", "retried"] as const).map((sign) => (
          <Group gap={6} key={sign} wrap="nowrap">
            <span
              className={classes.cell}
              data-tone="ok"
              {...{ [`data-${sign}`]: true }}
              aria-hidden="true"
            />
            <Text size="xs" c="dimmed">
              {t.runMatrix.signs[sign]}
            </Text>
          </Group>
        ))}
      </Group>
      <Text size="xs" c="dimmed" mt={6} className="wrap" aria-hidden="true">
        {hovered ?? (isRecorded ? t.runMatrix.hint : t.runMatrix.hintObserved)}
      </Text>
    </>
  );
}
