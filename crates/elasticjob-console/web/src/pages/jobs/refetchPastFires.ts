import type { UseQueryResult } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import type { JobsPage } from "../../api/types";
import { useNow } from "../../components/now";

/** Minimum interval (ms) between refetches. */
const MIN_INTERVAL = 2_500;

/** Refetches the list when a next fire time has passed. */
export function useRefetchPastFires({ data, refetch }: UseQueryResult<JobsPage>) {
  const now = useNow();
  const lastRefetch = useRef(0);
  const isPast = data?.items.some(
    (row) => row.nextFireTime !== null && new Date(row.nextFireTime).getTime() < now - 300,
  );
  useEffect(() => {
    if (!isPast || document.hidden || now - lastRefetch.current < MIN_INTERVAL) return;
    lastRefetch.current = now;
    void refetch();
  }, [isPast, now, refetch]);
}
