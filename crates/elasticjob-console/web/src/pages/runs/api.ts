import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { ask, query } from "../../api/client";
import { atRegistry, keys } from "../../api/queries";

export type HistoryState = "running" | "done" | "failed" | "cancelled" | "timed_out" | "fenced";

export interface Run {
  runId: string;
  jobName: string;
  state: HistoryState;
  source: "schedule" | "trigger";
  triggeredBy: string | null;
  dueAt: string | null;
  startedAt: string | null;
  endedAt: string | null;
  durationMs: number | null;
  latenessMs: number | null;
  shardingTotalCount: number | null;
  shards: number;
  done: number;
  failed: number;
  attempts: number;
  failure: string | null;
}

export interface RunItem {
  item: number;
  state: HistoryState;
  attempts: number;
  reason: string | null;
  instance: string | null;
  startedAt: string | null;
  endedAt: string | null;
  durationMs: number | null;
}

export interface Line {
  shardingItem: number;
  at: string;
  stream: string;
  text: string;
}

/** A run's id as one segment of a path: a tilde for its slash, which not every proxy lets through. */
export const segmentOf = (runId: string) => encodeURIComponent(runId.replace(/\/(?=-?\d+$)/, "~"));

export interface RunsAsked {
  job?: string;
  state?: string;
  after?: string;
}

export const useRuns = (registry: string, asked: RunsAsked) =>
  useQuery({
    queryKey: [...keys.of(registry), "runs", asked],
    queryFn: () =>
      ask<{ items: Run[]; next: string | null }>(
        "GET",
        `${atRegistry(registry)}/runs${query({ ...asked, limit: 50 })}`,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: asked.after ? false : 3_000,
  });

export const useRun = (registry: string, runId: string) =>
  useQuery({
    queryKey: [...keys.of(registry), "run", runId],
    queryFn: () =>
      ask<Run & { items: RunItem[] }>("GET", `${atRegistry(registry)}/runs/${segmentOf(runId)}`),
    refetchInterval: (found) => (found.state.data?.state === "running" ? 1_000 : 15_000),
  });

export const useOutput = (registry: string, runId: string, isRunning: boolean) =>
  useQuery({
    queryKey: [...keys.of(registry), "output", runId],
    queryFn: () =>
      ask<{ lines: Line[]; hasMore: boolean }>(
        "GET",
        `${atRegistry(registry)}/runs/${segmentOf(runId)}/output`,
      ),
    refetchInterval: isRunning ? 1_000 : false,
  });
