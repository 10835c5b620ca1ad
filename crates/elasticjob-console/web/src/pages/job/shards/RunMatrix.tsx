import { Text } from "@mantine/core";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Link } from "react-router";

import type { Instance, Shard } from "../../../api/types";
import { useRegistryLink } from "../../../app/registry";
import type { Tone } from "../../../components/Badge";
import { useNow } from "../../../components/now";
import { formatDuration, shortTime } from "../../../components/time";
import { useLocale, useText } from "../../../i18n";
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
  const locale = useLocale();
  const now = useNow();
  const box = useRef<HTMLElement>(null);
  const [hovered, setHovered] = useState<string | null>(null);
  const newest = runs.at(-1)?.runId;
  // New runs appear on the right, so scroll there.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new run makes the box wider; its id is not read.
  useEffect(() => {
    if (box.current) box.current.scrollLeft = box.current.scrollWidth;
  }, [newest]);

  const runLabel = (run: MatrixRun) =>
    run.dueAt
      ? t.runMatrix.due(shortTime(run.dueAt, locale, now))
      : t.runMatrix.triggered(shortTime(run.since, locale, now));
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
      <Text size="xs" c="dimmed" mt={6} className="wrap" aria-hidden="true">
        {hovered ?? (isRecorded ? t.runMatrix.hint : t.runMatrix.hintObserved)}
      </Text>
    </>
  );
}
