import type { Execution } from "../../api/types";

export interface Bar {
  attempt: Execution;
  /** Position and width in percent of the run's duration. */
  left: number;
  width: number;
  tookMs: number | null;
}

export interface Timeline {
  bars: Bar[];
  from: number | null;
  lengthMs: number;
  /** Number of attempts without a bar. */
  omitted: number;
}

export const INITIAL_LIMIT = 100;

/** Attempts of a run by shard and time. If there are more than `limit`, unsuccessful attempts come first. */
export function toTimeline(attempts: Execution[], now: number, limit = INITIAL_LIMIT): Timeline {
  const starts = attempts.flatMap(({ startTime }) => (startTime ? [Date.parse(startTime)] : []));
  const from = starts.length > 0 ? Math.min(...starts) : null;
  const endOf = (attempt: Execution) => {
    if (attempt.completeTime) return Date.parse(attempt.completeTime);
    if (attempt.state === "running") return now;
    return Date.parse(attempt.startTime ?? "") || now;
  };
  const to = Math.max(from ?? 0, ...attempts.map(endOf));
  const lengthMs = Math.max(1, to - (from ?? to));
  const chosen =
    attempts.length <= limit
      ? attempts
      : [...attempts].sort((a, b) => rank(a) - rank(b)).slice(0, limit);
  const bars = chosen
    .map((attempt): Bar => {
      const start = attempt.startTime ? Date.parse(attempt.startTime) : (from ?? to);
      const end = Math.max(start, endOf(attempt));
      return {
        attempt,
        left: ((start - (from ?? to)) / lengthMs) * 100,
        width: ((end - start) / lengthMs) * 100,
        tookMs: attempt.durationMs ?? (attempt.state === "running" ? end - start : null),
      };
    })
    .sort(
      (a, b) =>
        a.attempt.shardingItem - b.attempt.shardingItem ||
        a.left - b.left ||
        (a.attempt.attempt ?? 0) - (b.attempt.attempt ?? 0),
    );
  return { bars, from, lengthMs, omitted: attempts.length - chosen.length };
}

const rank = (attempt: Execution) => {
  const state = attempt.state;
  return state === "done" ? 2 : state === "running" ? 1 : 0;
};
