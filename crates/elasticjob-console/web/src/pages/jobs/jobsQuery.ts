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
  const asked = useMemo(() => parseQuery(params), [params]);
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
  return [asked, change];
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

export function toSearchParams(asked: JobsListQuery): URLSearchParams {
  const params = new URLSearchParams();
  if (asked.search) params.set("q", asked.search);
  if (asked.status) params.set("status", asked.status);
  if (asked.sort !== "jobName") params.set("sort", asked.sort);
  if (asked.order !== "asc") params.set("order", asked.order);
  if (asked.page > 1) params.set("page", String(asked.page));
  return params;
}
