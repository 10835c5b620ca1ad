import { Text } from "@mantine/core";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Link } from "react-router";

import type { Instance, Shard } from "../../../api/types";
import { useTo } from "../../../app/registry";
import { useLocale, useText } from "../../../i18n";
import type { Tone } from "../../../parts/Badge";
import { useNow } from "../../../parts/now";
import { brief, duration } from "../../../parts/time";
import classes from "./RoundMatrix.module.css";
import type { Cell, Round } from "./rounds";

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

/** Which way an arrow key leads, in rounds and in shards. */
const ARROWS: Record<string, [round: number, shard: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Rounds from left to right, shards from top to bottom: one look says which went wrong, and when. */
export function RoundMatrix({
  rounds,
  shards,
  known,
  isRecorded,
}: {
  rounds: Round[];
  shards: Shard[];
  known: Instance[];
  /** Whether there is more to see of a round. */
  isRecorded: boolean;
}) {
  const t = useText();
  const to = useTo();
  const locale = useLocale();
  const now = useNow();
  const box = useRef<HTMLElement>(null);
  const [said, setSaid] = useState<string | null>(null);
  const newest = rounds.at(-1)?.runId;
  // New ones come at the right.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round makes the box wider; what it is called is not read.
  useEffect(() => {
    if (box.current) box.current.scrollLeft = box.current.scrollWidth;
  }, [newest]);

  const called = (round: Round) =>
    round.dueAt
      ? t.rounds.due(brief(round.dueAt, locale, now))
      : t.rounds.asked(brief(round.since, locale, now));
  const says = (round: Round, item: number, cell: Cell | undefined) => {
    if (!cell) return `${called(round)} · ${t.explain.ofShard(item)}: ${t.rounds.nothing}`;
    const who = known.find((each) => each.instanceId === cell.instanceId)?.labels?.name;
    const parts = [called(round), t.explain.ofShard(item), t.rounds.states[cell.state]];
    if (cell.attempt > 1) parts.push(t.shards.attempt(cell.attempt));
    if (cell.startedAt && cell.endedAt) {
      parts.push(duration(Date.parse(cell.endedAt) - Date.parse(cell.startedAt)));
    }
    if (who ?? cell.instanceId) parts.push(who ?? cell.instanceId ?? "");
    return parts.join(" · ");
  };

  /** One stop of the tab key; from there arrows lead on. */
  const walk = (event: KeyboardEvent<HTMLTableElement>) => {
    const step = ARROWS[event.key];
    const from = (event.target as HTMLElement).dataset;
    if (!step || from.round === undefined || from.row === undefined) return;
    const [round, row] = [Number(from.round) + step[0], Number(from.row) + step[1]];
    const next = event.currentTarget.querySelector<HTMLElement>(
      `[data-round="${round}"][data-row="${row}"]`,
    );
    if (!next) return;
    event.preventDefault();
    next.focus();
  };

  return (
    <>
      <section
        ref={box}
        aria-label={t.rounds.title}
        tabIndex={isRecorded ? -1 : 0}
        className={classes.box}
      >
        <table className={classes.matrix} onKeyDown={walk} onMouseLeave={() => setSaid(null)}>
          <tbody>
            {shards.map(({ item }, row) => (
              <tr key={item}>
                <th scope="row">{item}</th>
                {rounds.map((round, place) => {
                  const cell = round.cells[item];
                  const label = says(round, item, cell);
                  const shown = {
                    className: classes.cell,
                    "data-tone": cell && TONES[cell.state],
                    "data-again": (cell && cell.attempt > 1) || undefined,
                    "data-asked": round.dueAt === null || undefined,
                    "aria-label": label,
                    onMouseEnter: () => setSaid(label),
                  };
                  const isStop = row === 0 && place === rounds.length - 1;
                  return (
                    <td key={round.runId}>
                      {isRecorded ? (
                        <Link
                          {...shown}
                          to={to("runs", round.runId)}
                          data-round={place}
                          data-row={row}
                          tabIndex={isStop ? 0 : -1}
                          onFocus={() => setSaid(label)}
                        />
                      ) : (
                        <span {...shown} role="img" />
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
        {said ?? (isRecorded ? t.rounds.hint : t.rounds.hintSeen)}
      </Text>
    </>
  );
}
