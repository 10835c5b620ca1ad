import { expect, test } from "vitest";

import type { Buckets, RunState } from "../../api/types";
import { toSeries } from "./series";

const item = (minute: number, state: RunState, runs: number, latestMs: number | null) => ({
  from: `2026-11-15T17:0${minute}:00Z`,
  state,
  runs,
  longestMs: null,
  latestMs,
});

test("buckets are placed by time, and gaps are zero", () => {
  const buckets: Buckets = {
    from: "2026-11-15T17:00:00Z",
    to: "2026-11-15T17:02:30Z",
    bucketMs: 60_000,
    items: [
      item(0, "done", 3, 12),
      item(0, "failed", 1, 90),
      item(1, "incomplete", 1, null),
      item(2, "running", 2, null),
    ],
  };

  const series = toSeries(buckets, 3);

  expect(series.counts.done).toEqual([3, 0, 0]);
  expect(series.counts.failed).toEqual([1, 0, 0]);
  expect(series.counts.incomplete).toEqual([0, 1, 0]);
  expect(series.counts.running).toEqual([0, 0, 2]);
  expect(series.latest).toEqual([90, 0, 0]);
});

test("a bucket after the requested range is ignored", () => {
  const buckets: Buckets = {
    from: "2026-11-15T17:00:00Z",
    to: "2026-11-15T17:01:01Z",
    bucketMs: 60_000,
    items: [item(1, "done", 3, 12)],
  };

  expect(toSeries(buckets, 1).counts.done).toEqual([0]);
});
