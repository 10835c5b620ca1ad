import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { ask, query } from "../../api/client";
import { atRegistry, keys } from "../../api/queries";
import type { Narrowing } from "../../parts/filters";
import { type Execution, type Trace, useHistoryPage } from "../runs/api";

export interface FailureGroup {
  jobName: string;
  message: string;
  count: number;
  first: string | null;
  last: string | null;
  lastRunId: string | null;
}

export interface MissedFires {
  jobName: string;
  first: string | null;
  last: string | null;
  count: number;
  why: "skipped" | "nobody_there";
  noticedAt: string | null;
}

/** Files with all rows of what is shown. */
export function filesOf(registry: string, table: "executions" | "traces", filters: Narrowing) {
  const at = (extension: string) =>
    `/api/v1${atRegistry(registry)}/${table}.${extension}${query(filters.asked())}`;
  return { CSV: at("csv"), JSON: at("json") };
}

export const useExecutions = (registry: string, filters: Narrowing) =>
  useHistoryPage<Execution>(registry, "executions", filters);

export const useTraces = (registry: string, filters: Narrowing) =>
  useHistoryPage<Trace>(registry, "traces", filters);

const useWrong = <Row>(registry: string, what: "failures" | "missed", filters: Narrowing) =>
  useQuery({
    queryKey: [...keys.of(registry), what, filters.key],
    queryFn: () =>
      ask<Row[]>(
        "GET",
        `${atRegistry(registry)}/${what}${query({ ...filters.asked(), limit: 100 })}`,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const useFailures = (registry: string, filters: Narrowing) =>
  useWrong<FailureGroup>(registry, "failures", filters);

export const useMissed = (registry: string, filters: Narrowing) =>
  useWrong<MissedFires>(registry, "missed", filters);
