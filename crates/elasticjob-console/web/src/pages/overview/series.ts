import type { Buckets, RunState } from "../../api/types";

export interface Series {
  /** When the first piece begins. */
  from: number;
  counts: Record<RunState, number[]>;
  /** How late the latest run of each piece began. */
  latest: number[];
}

/** Pieces of time without gaps, out of those in which something ran. */
export function toSeries({ from, bucketMs, items }: Buckets, count: number): Series {
  const start = Date.parse(from ?? "");
  const none = () => Array.from({ length: count }, () => 0);
  const counts = { done: none(), failed: none(), cancelled: none(), running: none() };
  const latest = none();
  for (const item of items) {
    const index = Math.round((Date.parse(item.from) - start) / bucketMs);
    // Time goes on while an answer is under way.
    if (index < 0 || index >= count) continue;
    counts[item.state][index] = (counts[item.state][index] ?? 0) + item.runs;
    latest[index] = Math.max(latest[index] ?? 0, item.latestMs ?? 0);
  }
  return { from: start, counts, latest };
}

export const sum = (values: number[]) => values.reduce((all, value) => all + value, 0);
