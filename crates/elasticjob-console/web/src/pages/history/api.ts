import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { queryString, request } from "../../api/client";
import { queryKeys, registryPath } from "../../api/queries";
import type { Execution, FailureGroup, MissedFires, Trace } from "../../api/types";
import type { ListFilters } from "../../components/filters";
import { useHistoryPage } from "../runs/api";

type Table = "executions" | "traces";

/** Links to export all rows that match the filters. */
export function exportLinks(registry: string, table: Table, filters: ListFilters) {
  const at = (extension: string) =>
    `/api/v1${registryPath(registry)}/${table}.${extension}${queryString(filters.toQuery())}`;
  return { CSV: at("csv"), JSON: at("json") };
}

export const useExecutions = (registry: string, filters: ListFilters) =>
  useHistoryPage<Execution>(registry, "executions", filters);

export const useTraces = (registry: string, filters: ListFilters) =>
  useHistoryPage<Trace>(registry, "traces", filters);

const useReport = <Row>(registry: string, report: "failures" | "missed", filters: ListFilters) =>
  useQuery({
    queryKey: [...queryKeys.of(registry), report, filters.key],
    queryFn: () =>
      request<Row[]>(
        "GET",
        `${registryPath(registry)}/${report}${queryString({ ...filters.toQuery(), limit: 100 })}`,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const useFailures = (registry: string, filters: ListFilters) =>
  useReport<FailureGroup>(registry, "failures", filters);

export const useMissed = (registry: string, filters: ListFilters) =>
  useReport<MissedFires>(registry, "missed", filters);
