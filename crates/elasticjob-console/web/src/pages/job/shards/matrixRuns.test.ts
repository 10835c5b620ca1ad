import { expect, test } from "vitest";

import type { LastRunState, RecordedRun, Shard } from "../../../api/types";
import { addObserved, fromHistory, MAX_RUNS, mergeRuns } from "./matrixRuns";

const shard = (item: number, second: number, state: LastRunState, since: string): Shard =>
  ({
    item,
    lastRun: {
      runId: `settle/${second}`,
      dueAt: new Date(second * 1_000).toISOString(),
      attempt: 1,
      instanceId: "a",
      state,
      since,
    },
  }) as Shard;

test("shards of a run are observed to start and end", () => {
  const started = addObserved(
    [],
    [shard(0, 10, "RUNNING", "10.1"), shard(1, 10, "RUNNING", "10.2")],
  );
  const half = addObserved(started, [shard(0, 10, "DONE", "12"), shard(1, 10, "RUNNING", "10.2")]);

  expect(half).toHaveLength(1);
  expect(half[0]?.cells[0]).toMatchObject({ state: "DONE", startedAt: "10.1", endedAt: "12" });
  expect(half[0]?.cells[1]).toMatchObject({ state: "RUNNING", endedAt: null });
});

test("a run with an unobserved end is over when the next one starts", () => {
  const started = addObserved([], [shard(0, 10, "RUNNING", "10.1")]);
  const next = addObserved(started, [shard(0, 20, "RUNNING", "20.1")]);

  expect(next.map((entry) => entry.cells[0]?.state)).toEqual(["OVER", "RUNNING"]);
});

test("an unchanged observation returns the same list", () => {
  const runs = addObserved([], [shard(0, 10, "DONE", "12")]);

  expect(addObserved(runs, [shard(0, 10, "DONE", "12")])).toBe(runs);
});

test("runs are ordered by due time, and the oldest are dropped", () => {
  let runs = addObserved([], [shard(0, 500, "DONE", "1")]);
  for (let second = 1; second <= MAX_RUNS; second += 1) {
    runs = addObserved(runs, [shard(0, second, "DONE", "1")]);
  }

  expect(runs).toHaveLength(MAX_RUNS);
  expect(runs.at(-1)?.runId).toBe("settle/500");
  expect(runs[0]?.runId).toBe("settle/2");
});

const recorded = (second: number, state: RecordedRun["items"][number]["state"]): RecordedRun =>
  ({
    run: {
      runId: `settle/${second}`,
      dueAt: new Date(second * 1_000).toISOString(),
      startedAt: new Date(second * 1_000 + 5).toISOString(),
    },
    items: [{ item: 0, state, attempts: 1, instance: "a", startedAt: null, endedAt: null }],
  }) as RecordedRun;

test("recorded runs are followed by observed ones", () => {
  const runs = mergeRuns(
    fromHistory([recorded(20, "running"), recorded(15, "lost"), recorded(10, "timed_out")]),
    addObserved([], [shard(0, 30, "RUNNING", "30.1")]),
  );

  expect(runs.map((entry) => [entry.runId, entry.cells[0]?.state])).toEqual([
    ["settle/10", "TIMED_OUT"],
    ["settle/15", "LOST"],
    ["settle/20", "RUNNING"],
    ["settle/30", "RUNNING"],
  ]);
});

test("an observed end overrides a running record", () => {
  const observed = addObserved([], [shard(0, 20, "DONE", "22")]);

  expect(mergeRuns(fromHistory([recorded(20, "running")]), observed)[0]?.cells[0]?.state).toBe(
    "DONE",
  );
  expect(mergeRuns(fromHistory([recorded(20, "failed")]), observed)[0]?.cells[0]?.state).toBe(
    "FAILED",
  );
});
