import type { UseQueryResult } from "@tanstack/react-query";
import { useEffect } from "react";

import type { JobsPage } from "../../api/types";
import { useNow } from "../../parts/now";

/** A fire that has passed is no next fire: the list is asked again, not too often. */
export function useFreshFires(jobs: UseQueryResult<JobsPage>) {
  const now = useNow();
  const { data, dataUpdatedAt, isFetching, refetch } = jobs;
  const isPast = data?.items.some(
    (row) => row.nextFireTime !== null && new Date(row.nextFireTime).getTime() < now - 500,
  );
  useEffect(() => {
    if (isPast && !isFetching && now - dataUpdatedAt > 2_500 && !document.hidden) void refetch();
  }, [isPast, isFetching, now, dataUpdatedAt, refetch]);
}
