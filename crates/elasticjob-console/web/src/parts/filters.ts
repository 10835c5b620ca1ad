import { useSearchParams } from "react-router";

import { type RangeName, spanOf } from "./range";

export type Filters = Record<string, string>;

/** What a list is narrowed to and how far back it was turned, in the URL. */
export function useFilters(keys: readonly string[], usual: RangeName = "all") {
  const [params, setParams] = useSearchParams();
  const said = (names: readonly string[]): Filters =>
    Object.fromEntries(
      names.map((key) => [key, params.get(key) ?? ""]).filter(([, value]) => value !== ""),
    );
  const times = said(["range", "from", "to"]);
  const words = said(keys);
  return {
    /** What the field of this name says. */
    value: (key: string) => params.get(key) ?? "",
    /** Everything that is said; what the cache goes by. */
    key: { ...words, ...times, usual },
    /** What the server is asked, if it is asked now. */
    asked: (): Filters => ({ ...words, ...spanOf(times, usual, Date.now()) }),
    isNarrowed: Object.keys(words).length + Object.keys(times).length > 0,
    after: params.get("after") ?? "",
    usual,
    change: (changes: Filters) => {
      const next = new URLSearchParams(params);
      next.delete("after");
      for (const [key, value] of Object.entries(changes)) {
        if (value) next.set(key, value);
        else next.delete(key);
      }
      setParams(next, { replace: true });
    },
    turn: (after: string) => {
      const next = new URLSearchParams(params);
      if (after) next.set("after", after);
      else next.delete("after");
      setParams(next);
    },
    clear: () => setParams({}, { replace: true }),
  };
}

export type Narrowing = ReturnType<typeof useFilters>;
