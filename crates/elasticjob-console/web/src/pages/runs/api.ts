import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { queryString, request } from "../../api/client";
import { toProblem } from "../../api/problem";
import { queryKeys, registryPath } from "../../api/queries";
import type { Run, RunDetails } from "../../api/types";
import type { ListFilters } from "../../components/filters";

/** A run id as one path segment: its slash becomes a tilde, because some proxies reject encoded slashes. */
export const runSegment = (runId: string) => encodeURIComponent(runId.replace(/\/(?=-?\d+$)/, "~"));

export const runPath = (registry: string, runId: string) =>
  `${registryPath(registry)}/runs/${runSegment(runId)}`;

/** A page of a list of history, newest rows first. */
export const useHistoryPage = <Row>(
  registry: string,
  list: "runs" | "executions" | "traces",
  filters: ListFilters,
) =>
  useQuery({
    queryKey: [...queryKeys.of(registry), list, filters.key, filters.after],
    queryFn: () =>
      request<{ items: Row[]; next: string | null }>(
        "GET",
        `${registryPath(registry)}/${list}${queryString({ ...filters.toQuery(), after: filters.after })}`,
      ),
    placeholderData: keepPreviousData,
    // Older pages do not change.
    refetchInterval: filters.after ? false : 5_000,
  });

export const useRuns = (registry: string, filters: ListFilters) =>
  useHistoryPage<Run>(registry, "runs", filters);

export const useRun = (registry: string, runId: string) =>
  useQuery({
    queryKey: queryKeys.run(registry, runId),
    queryFn: () => request<RunDetails>("GET", runPath(registry, runId)),
    retry: false,
    refetchInterval: ({ state }) => {
      // A run that was just triggered is recorded with a delay.
      if (state.error && toProblem(state.error).code === "notFound") return 2_000;
      return state.data?.state === "running" ? 2_000 : 15_000;
    },
  });
