import { skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import type { LastRunState, RecordedRun, Shard } from "../../../api/types";

export interface Cell {
  /** `OVER`: the next one had begun before it was seen how this one ended. */
  state: LastRunState | "OVER" | "CANCELLED" | "TIMED_OUT" | "FENCED";
  attempt: number;
  instanceId: string | null;
  /** When it was first seen to run, by the registry's clock. */
  startedAt: string | null;
  /** When it came to an end. */
  endedAt: string | null;
}

export interface MatrixRun {
  runId: string;
  /** None if somebody asked for it. */
  dueAt: string | null;
  /** When it was first heard of: what rounds are ordered by. */
  since: string;
  cells: Record<number, Cell>;
}

/** How many rounds are kept. */
export const MAX_RUNS = 40;

/** What has been seen, and what each shard says of its newest run. */
export function addObserved(rounds: MatrixRun[], shards: Shard[]): MatrixRun[] {
  let next = rounds;
  for (const shard of shards) {
    const run = shard.lastRun;
    if (!run?.runId || run.state === "FRESH") continue;
    const before = next.find((round) => round.runId === run.runId);
    const cell = before?.cells[shard.item];
    if (cell?.state === run.state && cell.attempt === run.attempt) continue;
    const isOver = run.state !== "RUNNING";
    const changed: Cell = {
      state: run.state,
      attempt: run.attempt,
      instanceId: run.instanceId,
      startedAt: isOver ? (cell?.startedAt ?? null) : run.since,
      endedAt: isOver ? run.since : null,
    };
    const round: MatrixRun = before
      ? { ...before, cells: { ...before.cells, [shard.item]: changed } }
      : {
          runId: run.runId,
          // A shard keeps its last due time through rounds that somebody asked for.
          dueAt: run.runId.includes("/") ? run.dueAt : null,
          since: run.since ?? run.dueAt ?? "",
          cells: { [shard.item]: changed },
        };
    next = [...next.filter((each) => each.runId !== run.runId).map(endPrevious(shard.item)), round];
  }
  if (next === rounds) return rounds;
  return next.sort((a, b) => timeOf(a) - timeOf(b)).slice(-MAX_RUNS);
}

/** A shard does one thing at a time: what it did before is over. */
const endPrevious = (item: number) => (round: MatrixRun) => {
  const cell = round.cells[item];
  if (cell?.state !== "RUNNING") return round;
  return { ...round, cells: { ...round.cells, [item]: { ...cell, state: "OVER" as const } } };
};

const STATES: Record<RecordedRun["items"][number]["state"], Cell["state"]> = {
  running: "RUNNING",
  done: "DONE",
  failed: "FAILED",
  cancelled: "CANCELLED",
  timed_out: "TIMED_OUT",
  fenced: "FENCED",
  lost: "LOST",
};

/** Rounds that history knows, the oldest first. */
export const fromHistory = (past: RecordedRun[]): MatrixRun[] =>
  past
    .map(({ run, items }) => ({
      runId: run.runId,
      dueAt: run.runId.includes("/") ? run.dueAt : null,
      since: run.startedAt ?? run.dueAt ?? "",
      cells: Object.fromEntries(
        items.map((item) => [
          item.item,
          {
            state: STATES[item.state],
            attempt: item.attempts,
            instanceId: item.instance,
            startedAt: item.startedAt,
            endedAt: item.endedAt,
          },
        ]),
      ),
    }))
    .reverse();

/** What history knows, and what was seen that it does not know yet. */
export function mergeRuns(past: MatrixRun[], seen: MatrixRun[]): MatrixRun[] {
  if (past.length === 0) return seen;
  const rounds = new Map(past.map((round) => [round.runId, round]));
  for (const round of seen) {
    const known = rounds.get(round.runId);
    if (!known) {
      rounds.set(round.runId, round);
      continue;
    }
    const cells = { ...known.cells };
    for (const [item, cell] of Object.entries(round.cells)) {
      const before = cells[Number(item)];
      if (!before || isNewer(cell, before)) cells[Number(item)] = cell;
    }
    rounds.set(round.runId, { ...known, cells });
  }
  return [...rounds.values()].sort((a, b) => timeOf(a) - timeOf(b)).slice(-MAX_RUNS);
}

/** History says more, but a moment later. */
const isNewer = (seen: Cell, known: Cell) =>
  seen.attempt > known.attempt ||
  (known.state === "RUNNING" && seen.state !== "RUNNING" && seen.state !== "OVER");

const timeOf = (round: MatrixRun) => Date.parse(round.dueAt ?? round.since) || 0;

/** The rounds that this page has seen; they are kept while one looks at something else, and forgotten as answers are. */
export function useObservedRuns(registry: string, job: string, shards: Shard[]): MatrixRun[] {
  const client = useQueryClient();
  const { data } = useQuery<MatrixRun[]>({
    queryKey: observedKey(registry, job),
    queryFn: skipToken,
  });
  useEffect(() => {
    client.setQueryData<MatrixRun[]>(observedKey(registry, job), (before) =>
      addObserved(before ?? [], shards),
    );
  }, [client, registry, job, shards]);
  return data ?? NONE;
}

const NONE: MatrixRun[] = [];

/** Not below the registry: nobody can be asked for them again. */
const observedKey = (registry: string, job: string) => ["seen", registry, job] as const;
