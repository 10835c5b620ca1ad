import { Tooltip } from "@mantine/core";

import type { Instance, Shard } from "../../../api/types";
import { useLocale, useText } from "../../../i18n";
import type { Tone } from "../../../parts/Badge";
import { Scroll } from "../../../parts/Scroll";
import { brief, duration } from "../../../parts/time";
import { useNow } from "../../../parts/now";
import type { Cell, Round } from "./rounds";
import classes from "./RoundMatrix.module.css";

const TONES: Record<Cell["state"], Tone> = {
  OVER: "off",
  FRESH: "off",
  RUNNING: "busy",
  DONE: "ok",
  FAILED: "bad",
  LOST: "bad",
};

/** Rounds from left to right, shards from top to bottom: one look says which went wrong, and when. */
export function RoundMatrix({
  rounds,
  shards,
  known,
}: {
  rounds: Round[];
  shards: Shard[];
  known: Instance[];
}) {
  const t = useText();
  const locale = useLocale();
  const now = useNow();
  const called = (round: Round) =>
    round.dueAt
      ? t.rounds.due(brief(round.dueAt, locale, now))
      : t.rounds.asked(brief(round.since, locale, now));
  const says = (round: Round, item: number, cell: Cell | undefined) => {
    if (!cell) return `${called(round)} · ${t.explain.ofShard(item)}: ${t.rounds.nothing}`;
    const who = known.find((each) => each.instanceId === cell.instanceId)?.labels?.name;
    const parts = [
      called(round),
      t.explain.ofShard(item),
      cell.state === "OVER" ? t.rounds.over : t.runState[cell.state],
    ];
    if (cell.attempt > 1) parts.push(t.shards.attempt(cell.attempt));
    if (cell.startedAt && cell.endedAt) {
      parts.push(duration(Date.parse(cell.endedAt) - Date.parse(cell.startedAt)));
    }
    if (who ?? cell.instanceId) parts.push(who ?? cell.instanceId ?? "");
    return parts.join(" · ");
  };
  return (
    <Scroll label={t.rounds.title}>
      <table className={classes.matrix}>
        <tbody>
          {shards.map(({ item }) => (
            <tr key={item}>
              <th scope="row">{item}</th>
              {rounds.map((round) => {
                const cell = round.cells[item];
                const label = says(round, item, cell);
                return (
                  <td key={round.runId}>
                    <Tooltip label={label} openDelay={0}>
                      <span
                        className={classes.cell}
                        data-tone={cell && TONES[cell.state]}
                        data-asked={round.dueAt === null || undefined}
                        role="img"
                        aria-label={label}
                      />
                    </Tooltip>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
