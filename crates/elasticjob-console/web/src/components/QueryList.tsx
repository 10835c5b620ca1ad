import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { toProblem } from "../api/problem";
import { NoHistory } from "./NoHistory";
import { ErrorState, Loading } from "./states";

/** Renders a query: skeleton, error, empty state or its data. */
export function QueryList<T>({
  query,
  empty,
  isEmpty,
  children,
}: {
  query: UseQueryResult<T>;
  empty: ReactNode;
  isEmpty: (found: T) => boolean;
  children: (found: T) => ReactNode;
}) {
  if (query.isPending) return <Loading />;
  if (query.data === undefined) {
    if (toProblem(query.error).code === "noHistory") return <NoHistory />;
    return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  }
  return isEmpty(query.data) ? empty : children(query.data);
}
