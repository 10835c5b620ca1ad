import type { Buckets, Outcome } from "../../api/history";

export interface Series {
  /** When the first piece begins. */
  from: number;
  counts: Record<Outcome, number[]>;
  /** How late the latest run of each piece began. */
  latest: number[];
}

/** Pieces of time without gaps, out of those in which something ran. */
export function seriesOf({ from, bucketMs, items }: Buckets, count: number): Series {
  const start = Date.parse(from ?? "");
  const none = () => Array.from({ length: count }, () => 0);
  const counts = { done: none(), failed: none(), cancelled: none(), running: none() };
  const latest = none();
  for (const item of items) {
    const place = Math.round((Date.parse(item.from) - start) / bucketMs);
    // Time goes on while an answer is under way.
    if (place < 0 || place >= count) continue;
    counts[item.state][place] = (counts[item.state][place] ?? 0) + item.runs;
    latest[place] = Math.max(latest[place] ?? 0, item.latestMs ?? 0);
  }
  return { from: start, counts, latest };
}

export const sum = (values: number[]) => values.reduce((all, value) => all + value, 0);
