import { Box } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import type { Page } from "../api/types";
import { useText } from "../i18n";
import type { Icon } from "./Icon";
import { Listed } from "./Listed";
import type { useListParams } from "./listParams";
import { Pager } from "./Pager";
import { SearchField } from "./SearchField";
import { Empty } from "./states";

/** A list that is searched and looked at page by page. */
export function ListedPages<T>({
  asked,
  params,
  icon,
  words,
  children,
}: {
  asked: UseQueryResult<Page<T>>;
  params: ReturnType<typeof useListParams>;
  icon: Parameters<typeof Icon>[0]["name"];
  words: { search: string; none: string; noneAbout: string };
  children: (items: T[]) => ReactNode;
}) {
  const t = useText();
  const { search, setSearch, setPage } = params;
  return (
    <Box className="card">
      <SearchField label={words.search} value={search} onChange={setSearch} />
      <Listed
        asked={asked}
        isEmpty={({ items }) => items.length === 0}
        empty={
          <Empty icon={icon} title={search ? t.nothingFound : words.none}>
            {!search && words.noneAbout}
          </Empty>
        }
      >
        {({ items, page, pageSize, total }) => (
          <>
            {children(items)}
            <Pager page={page} pageSize={pageSize} total={total} onPage={setPage} />
          </>
        )}
      </Listed>
    </Box>
  );
}
