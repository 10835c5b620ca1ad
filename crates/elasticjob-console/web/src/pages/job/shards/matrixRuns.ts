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
export function addObserved(runs: MatrixRun[], shards: Shard[]): MatrixRun[] {
  let next = runs;
  for (const shard of shards) {
    const run = shard.lastRun;
    if (!run?.runId || run.state === "FRESH") continue;
    const previous = next.find((entry) => entry.runId === run.runId);
    const cell = previous?.cells[shard.item];
    if (cell?.state === run.state && cell.attempt === run.attempt) continue;
    const isOver = run.state !== "RUNNING";
    const changed: Cell = {
      state: run.state,
      attempt: run.attempt,
      instanceId: run.instanceId,
      startedAt: isOver ? (cell?.startedAt ?? null) : run.since,
      endedAt: isOver ? run.since : null,
    };
    const entry: MatrixRun = previous
      ? { ...previous, cells: { ...previous.cells, [shard.item]: changed } }
      : {
          runId: run.runId,
          // A shard keeps its last due time through triggered runs, so that time is not theirs.
          dueAt: run.runId.includes("/") ? run.dueAt : null,
          since: run.since ?? run.dueAt ?? "",
          cells: { [shard.item]: changed },
        };
    next = [...next.filter((each) => each.runId !== run.runId).map(endPrevious(shard.item)), entry];
  }
  if (next === runs) return runs;
  return next.sort((a, b) => timeOf(a) - timeOf(b)).slice(-MAX_RUNS);
}

/** A shard has one run at a time, so its previous run has ended. */
const endPrevious = (item: number) => (entry: MatrixRun) => {
  const cell = entry.cells[item];
  if (cell?.state !== "RUNNING") return entry;
  return { ...entry, cells: { ...entry.cells, [item]: { ...cell, state: "OVER" as const } } };
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
export const fromHistory = (recorded: RecordedRun[]): MatrixRun[] =>
  recorded
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
export function mergeRuns(recorded: MatrixRun[], observed: MatrixRun[]): MatrixRun[] {
  if (recorded.length === 0) return observed;
  const runs = new Map(recorded.map((entry) => [entry.runId, entry]));
  for (const entry of observed) {
    const known = runs.get(entry.runId);
    if (!known) {
      runs.set(entry.runId, entry);
      continue;
    }
    const cells = { ...known.cells };
    for (const [item, cell] of Object.entries(entry.cells)) {
      const previous = cells[Number(item)];
      if (!previous || isNewer(cell, previous)) cells[Number(item)] = cell;
    }
    runs.set(entry.runId, { ...known, cells });
  }
  return [...runs.values()].sort((a, b) => timeOf(a) - timeOf(b)).slice(-MAX_RUNS);
}

/** The history store has more details but lags behind. */
const isNewer = (observed: Cell, known: Cell) =>
  observed.attempt > known.attempt ||
  (known.state === "RUNNING" && observed.state !== "RUNNING" && observed.state !== "OVER");

const timeOf = (entry: MatrixRun) => Date.parse(entry.dueAt ?? entry.since) || 0;

/** The runs observed by this page. They live in the query cache, so they survive navigation and expire like responses. */
export function useObservedRuns(registry: string, job: string, shards: Shard[]): MatrixRun[] {
  const client = useQueryClient();
  const { data } = useQuery<MatrixRun[]>({
    queryKey: observedKey(registry, job),
    queryFn: skipToken,
  });
  useEffect(() => {
    client.setQueryData<MatrixRun[]>(observedKey(registry, job), (previous) =>
      addObserved(previous ?? [], shards),
    );
  }, [client, registry, job, shards]);
  return data ?? NONE;
}

const NONE: MatrixRun[] = [];

/** Outside the registry's keys, because observed runs cannot be refetched. */
const observedKey = (registry: string, job: string) => ["observed", registry, job] as const;
