import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { asProblem } from "../api/problem";
import { NoHistory } from "./NoHistory";
import { Failure, Loading } from "./states";

/** A list that is asked for: where it will be, why it is not there, that it is empty, or itself. */
export function Listed<T>({
  asked,
  empty,
  isEmpty,
  children,
}: {
  asked: UseQueryResult<T>;
  empty: ReactNode;
  isEmpty: (found: T) => boolean;
  children: (found: T) => ReactNode;
}) {
  if (asked.isPending) return <Loading />;
  if (asked.data === undefined) {
    if (asProblem(asked.error).code === "noHistory") return <NoHistory />;
    return <Failure error={asked.error} again={() => void asked.refetch()} />;
  }
  return isEmpty(asked.data) ? empty : children(asked.data);
}
