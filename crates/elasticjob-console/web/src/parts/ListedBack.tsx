import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useText } from "../i18n";
import type { Narrowing } from "./filters";
import { Listed } from "./Listed";
import { Older } from "./Older";
import { Empty } from "./states";

/** A list that goes back in time, narrowed by filters. */
export function ListedBack<T>({
  asked,
  filters,
  none,
  children,
}: {
  asked: UseQueryResult<{ items: T[]; next: string | null }>;
  filters: Narrowing;
  /** What is said if there is nothing at all. */
  none: string;
  children: (items: T[]) => ReactNode;
}) {
  const t = useText();
  return (
    <Listed
      asked={asked}
      isEmpty={({ items }) => items.length === 0}
      empty={
        <Empty icon="history" title={filters.isNarrowed ? t.nothingFound : none}>
          {filters.isNarrowed && t.history.wholeNames}
        </Empty>
      }
    >
      {({ items, next }) => (
        <>
          {children(items)}
          <Older after={filters.after} next={next} onAfter={filters.turn} />
        </>
      )}
    </Listed>
  );
}
