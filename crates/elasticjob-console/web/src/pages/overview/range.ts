import { useSearchParams } from "react-router";

const MINUTE = 60_000;

/** Time ranges and their buckets. */
export const RANGES = {
  "1h": { hours: 1, bucketMs: MINUTE, count: 60 },
  "6h": { hours: 6, bucketMs: 5 * MINUTE, count: 72 },
  "24h": { hours: 24, bucketMs: 15 * MINUTE, count: 96 },
  "7d": { hours: 168, bucketMs: 120 * MINUTE, count: 84 },
} as const;

export type RangeName = keyof typeof RANGES;

export const isRange = (text: string | null): text is RangeName => text !== null && text in RANGES;

/** The selected range, stored in the URL so that a link shows the same page. */
export function useRange(): [RangeName, (name: RangeName) => void] {
  const [params, setParams] = useSearchParams();
  const parameter = params.get("range");
  return [
    isRange(parameter) ? parameter : "1h",
    (name) => setParams(name === "1h" ? {} : { range: name }, { replace: true }),
  ];
}
