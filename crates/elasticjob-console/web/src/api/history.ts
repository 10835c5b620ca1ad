import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { queryString, request } from "./client";
import { Problem } from "./problem";
import { jobPath, queryKeys, registryPath } from "./queries";
import type { Buckets, JobFigures, LastRun, Matrix, Run } from "./types";

/** Cache keys of queries to the history store. */
export const historyKeys = {
  buckets: (registry: string) => [...queryKeys.of(registry), "buckets"] as const,
  figures: (registry: string) => [...queryKeys.of(registry), "figures"] as const,
  job: (registry: string, job: string) => [...queryKeys.of(registry), "past", job] as const,
};

/** The registry has no history store. Retrying is useless: adding one invalidates the queries of the registry. */
export const isNoHistoryError = (error: unknown) =>
  error instanceof Problem && error.code === "noHistory";

/** Refetch interval of a history query; it stops if the registry has no history store. */
const refetchEvery = (milliseconds: number) => (query: { state: { error: unknown } }) =>
  isNoHistoryError(query.state.error) ? false : milliseconds;

/** Runs per bucket: `count` buckets of `bucketMs`, the last of which contains the current time. */
export const useBuckets = (registry: string, count: number, bucketMs: number, job?: string) =>
  useQuery({
    queryKey: [...historyKeys.buckets(registry), count, bucketMs, job ?? ""],
    queryFn: () => {
      // Buckets start at multiples of their length.
      const last = Math.floor(Date.now() / bucketMs) * bucketMs;
      const from = new Date(last - (count - 1) * bucketMs).toISOString();
      return request<Buckets>(
        "GET",
        `${registryPath(registry)}/buckets${queryString({ from, bucketMs, job })}`,
      );
    },
    refetchInterval: refetchEvery(15_000),
  });

/** Runs shown for each job in the list. */
const LAST_RUNS = 20;

/** The history figures of all jobs on a page of the list, in one request. */
export const useFigures = (registry: string, jobs: string[]) => {
  // Sorted, so that reordering the list does not change the cache key.
  const names = [...jobs].sort();
  return useQuery({
    queryKey: [...historyKeys.figures(registry), names],
    queryFn: () => {
      const parameters = new URLSearchParams(names.map((name) => ["job", name]));
      parameters.set("last", String(LAST_RUNS));
      return request<JobFigures[]>("GET", `${registryPath(registry)}/figures?${parameters}`);
    },
    enabled: names.length > 0,
    staleTime: 10_000,
    placeholderData: keepPreviousData,
    refetchInterval: refetchEvery(30_000),
  });
};

export const useJobFigures = (registry: string, job: string, last: number) =>
  useQuery({
    queryKey: [...historyKeys.job(registry, job), "figures", last],
    queryFn: () =>
      request<JobFigures>("GET", `${jobPath(registry, job)}/figures${queryString({ last })}`),
    refetchInterval: refetchEvery(30_000),
  });

export const useMatrix = (registry: string, job: string, limit: number) =>
  useQuery({
    queryKey: [...historyKeys.job(registry, job), "matrix", limit],
    queryFn: () =>
      request<Matrix>("GET", `${jobPath(registry, job)}/matrix${queryString({ limit })}`),
    refetchInterval: refetchEvery(30_000),
  });

/** Inserts changed runs into the figures of their jobs. Runs of jobs that are not listed are ignored. */
export function mergeRuns(figures: JobFigures[], runs: Run[]): JobFigures[] {
  const byJob = new Map<string, Run[]>();
  for (const run of runs) byJob.set(run.jobName, [...(byJob.get(run.jobName) ?? []), run]);
  if (!figures.some((each) => byJob.has(each.jobName))) return figures;
  return figures.map((each) => {
    const changed = byJob.get(each.jobName);
    if (!changed) return each;
    const ids = new Set(changed.map((run) => run.runId));
    const lastRuns = [...changed, ...each.lastRuns.filter((run) => !ids.has(run.runId))]
      .sort((a, b) => startTime(b) - startTime(a))
      .slice(0, LAST_RUNS);
    return { ...each, lastRuns };
  });
}

/** A run that has not started counts as the newest. */
const startTime = (run: LastRun) => (run.startedAt ? Date.parse(run.startedAt) : Infinity);
