import { useSearchParams } from "react-router";

import { type RangeName, toTimeSpan } from "./timeRange";

export type FilterValues = Record<string, string>;

/** Filters and cursor of a history list, stored in the URL. */
export function useFilters(keys: readonly string[], defaultRange: RangeName = "all") {
  const [params, setParams] = useSearchParams();
  const present = (names: readonly string[]): FilterValues =>
    Object.fromEntries(
      names.map((key) => [key, params.get(key) ?? ""]).filter(([, value]) => value !== ""),
    );
  const times = present(["range", "from", "to"]);
  const words = present(keys);
  return {
    /** Value of one filter; empty if unset. */
    value: (key: string) => params.get(key) ?? "",
    /** All filters, as part of the cache key. */
    key: { ...words, ...times, defaultRange },
    /** The query parameters for a request that is sent now. */
    toQuery: (): FilterValues => ({ ...words, ...toTimeSpan(times, defaultRange, Date.now()) }),
    isFiltered: Object.keys(words).length + Object.keys(times).length > 0,
    after: params.get("after") ?? "",
    defaultRange,
    change: (changes: FilterValues) => {
      const next = new URLSearchParams(params);
      next.delete("after");
      for (const [key, value] of Object.entries(changes)) {
        if (value) next.set(key, value);
        else next.delete(key);
      }
      setParams(next, { replace: true });
    },
    setAfter: (after: string) => {
      const next = new URLSearchParams(params);
      if (after) next.set("after", after);
      else next.delete("after");
      setParams(next);
    },
    clear: () => setParams({}, { replace: true }),
  };
}

export type ListFilters = ReturnType<typeof useFilters>;
