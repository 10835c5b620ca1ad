import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";

import type { JobsQuery } from "../../api/queries";

export const PAGE_SIZE = 50;

export interface JobsListQuery extends JobsQuery {
  search: string;
  status: string;
  sort: string;
  order: "asc" | "desc";
  page: number;
  pageSize: number;
}

/** The query of the jobs list, stored in the URL so that it can be linked and the back button works. */
export function useJobsQuery(): [JobsListQuery, (change: Partial<JobsListQuery>) => void] {
  const [params, setParams] = useSearchParams();
  const query = useMemo(() => parseQuery(params), [params]);
  const change = useCallback(
    (change: Partial<JobsListQuery>) => {
      setParams(
        (before) => toSearchParams({ ...parseQuery(before), page: 1, ...change }),
        // Typing does not add browser history entries.
        { replace: "search" in change },
      );
    },
    [setParams],
  );
  return [query, change];
}

export function parseQuery(params: URLSearchParams): JobsListQuery {
  return {
    search: params.get("q") ?? "",
    status: params.get("status") ?? "",
    sort: params.get("sort") ?? "jobName",
    order: params.get("order") === "desc" ? "desc" : "asc",
    page: Math.max(1, Number(params.get("page")) || 1),
    pageSize: PAGE_SIZE,
  };
}

export function toSearchParams(query: JobsListQuery): URLSearchParams {
  const params = new URLSearchParams();
  if (query.search) params.set("q", query.search);
  if (query.status) params.set("status", query.status);
  if (query.sort !== "jobName") params.set("sort", query.sort);
  if (query.order !== "asc") params.set("order", query.order);
  if (query.page > 1) params.set("page", String(query.page));
  return params;
}
