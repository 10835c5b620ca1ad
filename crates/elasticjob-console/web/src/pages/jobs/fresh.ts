import type { UseQueryResult } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import type { JobsPage } from "../../api/types";
import { useNow } from "../../parts/now";

/** How long the list is left alone between two looks. */
const PATIENCE = 2_500;

/** A fire that has passed is no next fire: the list is asked again, not too often. */
export function useFreshFires({ data, refetch }: UseQueryResult<JobsPage>) {
  const now = useNow();
  const asked = useRef(0);
  const isPast = data?.items.some(
    (row) => row.nextFireTime !== null && new Date(row.nextFireTime).getTime() < now - 300,
  );
  useEffect(() => {
    if (!isPast || document.hidden || now - asked.current < PATIENCE) return;
    asked.current = now;
    void refetch();
  }, [isPast, now, refetch]);
}
