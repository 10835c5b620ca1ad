import { useSearchParams } from "react-router";

/** Search text and page number of a list, stored in the URL. */
export function useListParams() {
  const [params, setParams] = useSearchParams();
  const search = params.get("q") ?? "";
  const page = Math.max(1, Number(params.get("page")) || 1);
  return {
    search,
    page,
    setSearch: (q: string) => setParams(q ? { q } : {}, { replace: true }),
    setPage: (next: number) =>
      setParams({ ...(search && { q: search }), ...(next > 1 && { page: String(next) }) }),
  };
}
