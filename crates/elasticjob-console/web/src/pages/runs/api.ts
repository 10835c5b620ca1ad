import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { ask, query } from "../../api/client";
import type { HistoryState, Run, RunItem } from "../../api/history";
import { asProblem } from "../../api/problem";
import { atRegistry, keys } from "../../api/queries";
import type { Narrowing } from "../../parts/filters";

/** An attempt of a shard. */
export interface Execution {
  id: string;
  jobName: string;
  runId: string | null;
  taskId: string;
  hostname: string;
  ip: string;
  shardingItem: number;
  executionSource: string;
  success: boolean;
  outcome: HistoryState | null;
  failureCause: string | null;
  startTime: string | null;
  completeTime: string | null;
  durationMs: number | null;
  latenessMs: number | null;
  attempt: number | null;
  reason: string | null;
  /** Text: it is beyond what numbers are exact to here. */
  token: string | null;
  instance: string | null;
  traceId: string | null;
}

/** An instance's part of a run changed its state. */
export interface Trace {
  id: string;
  jobName: string;
  runId: string | null;
  originalTaskId: string;
  taskId: string;
  slaveId: string;
  executionType: string;
  shardingItems: string;
  state: string;
  message: string;
  creationTime: string | null;
}

export interface RunDetails extends Run {
  items: RunItem[];
  executions: Execution[];
  traces: Trace[];
}

/** How an attempt stands; the ancestor says only whether it succeeded. */
export function stateOf(attempt: Execution): HistoryState {
  if (attempt.outcome) return attempt.outcome;
  if (attempt.success) return "done";
  return attempt.completeTime || attempt.failureCause ? "failed" : "running";
}

/** A run's id as one segment of a path: a tilde for its slash, which not every proxy lets through. */
export const segmentOf = (runId: string) => encodeURIComponent(runId.replace(/\/(?=-?\d+$)/, "~"));

export const atRun = (registry: string, runId: string) =>
  `${atRegistry(registry)}/runs/${segmentOf(runId)}`;

/** A page of a list of history, newest rows first. */
export const useHistoryPage = <Row>(
  registry: string,
  list: "runs" | "executions" | "traces",
  filters: Narrowing,
) =>
  useQuery({
    queryKey: [...keys.of(registry), list, filters.key, filters.after],
    queryFn: () =>
      ask<{ items: Row[]; next: string | null }>(
        "GET",
        `${atRegistry(registry)}/${list}${query({ ...filters.asked(), after: filters.after })}`,
      ),
    placeholderData: keepPreviousData,
    // Older pages do not change any more.
    refetchInterval: filters.after ? false : 5_000,
  });

export const useRuns = (registry: string, filters: Narrowing) =>
  useHistoryPage<Run>(registry, "runs", filters);

export const useRun = (registry: string, runId: string) =>
  useQuery({
    queryKey: keys.run(registry, runId),
    queryFn: () => ask<RunDetails>("GET", atRun(registry, runId)),
    retry: false,
    refetchInterval: ({ state }) => {
      // What was just triggered is recorded a moment later.
      if (state.error && asProblem(state.error).code === "notFound") return 2_000;
      return state.data?.state === "running" ? 2_000 : 15_000;
    },
  });
