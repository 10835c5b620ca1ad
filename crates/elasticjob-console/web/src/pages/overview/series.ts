import type { Buckets, RunState } from "../../api/types";

export interface Series {
  /** Start of the first bucket (ms since the epoch). */
  from: number;
  counts: Record<RunState, number[]>;
  /** Longest start delay (ms) in each bucket. */
  latest: number[];
}

/** Fills the gaps: the server sends only buckets with runs. */
export function toSeries({ from, bucketMs, items }: Buckets, count: number): Series {
  const start = Date.parse(from ?? "");
  const none = () => Array.from({ length: count }, () => 0);
  const counts = {
    done: none(),
    incomplete: none(),
    failed: none(),
    cancelled: none(),
    running: none(),
  };
  const latest = none();
  for (const item of items) {
    const index = Math.round((Date.parse(item.from) - start) / bucketMs);
    // A bucket may start after the request was sent.
    if (index < 0 || index >= count) continue;
    counts[item.state][index] = (counts[item.state][index] ?? 0) + item.runs;
    latest[index] = Math.max(latest[index] ?? 0, item.latestMs ?? 0);
  }
  return { from: start, counts, latest };
}

export const sum = (values: number[]) => values.reduce((all, value) => all + value, 0);
