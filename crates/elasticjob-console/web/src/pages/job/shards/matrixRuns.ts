import { skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import type { LastRunState, RecordedRun, Shard } from "../../../api/types";

export interface Cell {
  /** `OVER`: the next run started before the outcome was observed. */
  state: LastRunState | "OVER" | "CANCELLED" | "TIMED_OUT" | "FENCED";
  attempt: number;
  instanceId: string | null;
  /** When the attempt was first observed running, by the registry's clock. */
  startedAt: string | null;
  endedAt: string | null;
}

export interface MatrixRun {
  runId: string;
  /** Null for a triggered run. */
  dueAt: string | null;
  /** When the run was first observed; orders runs without `dueAt`. */
  since: string;
  cells: Record<number, Cell>;
}

export const MAX_RUNS = 40;

/** Adds the last run of each shard to the observed runs. */
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
          // A shard keeps its last due time through triggered runs, so that time is not theirs.
          dueAt: run.runId.includes("/") ? run.dueAt : null,
          since: run.since ?? run.dueAt ?? "",
          cells: { [shard.item]: changed },
        };
    next = [...next.filter((each) => each.runId !== run.runId).map(endPrevious(shard.item)), round];
  }
  if (next === rounds) return rounds;
  return next.sort((a, b) => timeOf(a) - timeOf(b)).slice(-MAX_RUNS);
}

/** A shard has one run at a time, so its previous run has ended. */
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

/** Runs from the history store, oldest first. */
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

/** Merges recorded runs with observed ones that are newer than the history store. */
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

/** The history store has more details but lags behind. */
const isNewer = (seen: Cell, known: Cell) =>
  seen.attempt > known.attempt ||
  (known.state === "RUNNING" && seen.state !== "RUNNING" && seen.state !== "OVER");

const timeOf = (round: MatrixRun) => Date.parse(round.dueAt ?? round.since) || 0;

/** The runs observed by this page. They live in the query cache, so they survive navigation and expire like responses. */
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

/** Outside the registry's keys, because observed runs cannot be refetched. */
const observedKey = (registry: string, job: string) => ["seen", registry, job] as const;
