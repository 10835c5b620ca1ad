import { Box } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import type { Page } from "../api/types";
import { useText } from "../i18n";
import type { Icon } from "./Icon";
import type { useListParams } from "./listParams";
import { Pager } from "./Pager";
import { QueryList } from "./QueryList";
import { SearchField } from "./SearchField";
import { EmptyState } from "./states";

/** A searchable list with numbered pages. */
export function PagedList<T>({
  query,
  params,
  icon,
  texts,
  children,
}: {
  query: UseQueryResult<Page<T>>;
  params: ReturnType<typeof useListParams>;
  icon: Parameters<typeof Icon>[0]["name"];
  texts: { search: string; none: string; noneAbout: string };
  children: (items: T[]) => ReactNode;
}) {
  const t = useText();
  const { search, setSearch, setPage } = params;
  return (
    <Box className="card">
      <SearchField label={texts.search} value={search} onChange={setSearch} />
      <QueryList
        query={query}
        isEmpty={({ items }) => items.length === 0}
        empty={
          <EmptyState icon={icon} title={search ? t.nothingFound : texts.none}>
            {!search && texts.noneAbout}
          </EmptyState>
        }
      >
        {({ items, page, pageSize, total }) => (
          <>
            {children(items)}
            <Pager page={page} pageSize={pageSize} total={total} onPage={setPage} />
          </>
        )}
      </QueryList>
    </Box>
  );
}
