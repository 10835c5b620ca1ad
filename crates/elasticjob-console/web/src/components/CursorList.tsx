import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useText } from "../i18n";
import { CursorPager } from "./CursorPager";
import type { ListFilters } from "./filters";
import { QueryList } from "./QueryList";
import { EmptyState } from "./states";

/** A filtered history list, newest first, with cursor paging. */
export function CursorList<T>({
  query,
  filters,
  emptyTitle,
  children,
}: {
  query: UseQueryResult<{ items: T[]; next: string | null }>;
  filters: ListFilters;
  /** Title if there are no items even without filters. */
  emptyTitle: string;
  children: (items: T[]) => ReactNode;
}) {
  const t = useText();
  return (
    <QueryList
      query={query}
      isEmpty={({ items }) => items.length === 0}
      empty={
        <EmptyState icon="history" title={filters.isFiltered ? t.nothingFound : emptyTitle}>
          {filters.isFiltered && t.history.wholeNames}
        </EmptyState>
      }
    >
      {({ items, next }) => (
        <>
          {children(items)}
          <CursorPager after={filters.after} next={next} onChange={filters.setAfter} />
        </>
      )}
    </QueryList>
  );
}
