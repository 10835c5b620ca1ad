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
  const begun = addObserved([], [shard(0, 10, "RUNNING", "10.1"), shard(1, 10, "RUNNING", "10.2")]);
  const half = addObserved(begun, [shard(0, 10, "DONE", "12"), shard(1, 10, "RUNNING", "10.2")]);

  expect(half).toHaveLength(1);
  expect(half[0]?.cells[0]).toMatchObject({ state: "DONE", startedAt: "10.1", endedAt: "12" });
  expect(half[0]?.cells[1]).toMatchObject({ state: "RUNNING", endedAt: null });
});

test("a run with an unobserved end is over when the next one starts", () => {
  const begun = addObserved([], [shard(0, 10, "RUNNING", "10.1")]);
  const next = addObserved(begun, [shard(0, 20, "RUNNING", "20.1")]);

  expect(next.map((round) => round.cells[0]?.state)).toEqual(["OVER", "RUNNING"]);
});

test("an unchanged observation returns the same list", () => {
  const rounds = addObserved([], [shard(0, 10, "DONE", "12")]);

  expect(addObserved(rounds, [shard(0, 10, "DONE", "12")])).toBe(rounds);
});

test("runs are ordered by due time, and the oldest are dropped", () => {
  let rounds = addObserved([], [shard(0, 500, "DONE", "1")]);
  for (let second = 1; second <= MAX_RUNS; second += 1) {
    rounds = addObserved(rounds, [shard(0, second, "DONE", "1")]);
  }

  expect(rounds).toHaveLength(MAX_RUNS);
  expect(rounds.at(-1)?.runId).toBe("settle/500");
  expect(rounds[0]?.runId).toBe("settle/2");
});

const past = (second: number, state: RecordedRun["items"][number]["state"]): RecordedRun =>
  ({
    run: {
      runId: `settle/${second}`,
      dueAt: new Date(second * 1_000).toISOString(),
      startedAt: new Date(second * 1_000 + 5).toISOString(),
    },
    items: [{ item: 0, state, attempts: 1, instance: "a", startedAt: null, endedAt: null }],
  }) as RecordedRun;

test("recorded runs are followed by observed ones", () => {
  const rounds = mergeRuns(
    fromHistory([past(20, "running"), past(15, "lost"), past(10, "timed_out")]),
    addObserved([], [shard(0, 30, "RUNNING", "30.1")]),
  );

  expect(rounds.map((round) => [round.runId, round.cells[0]?.state])).toEqual([
    ["settle/10", "TIMED_OUT"],
    ["settle/15", "LOST"],
    ["settle/20", "RUNNING"],
    ["settle/30", "RUNNING"],
  ]);
});

test("an observed end overrides a running record", () => {
  const seen = addObserved([], [shard(0, 20, "DONE", "22")]);

  expect(mergeRuns(fromHistory([past(20, "running")]), seen)[0]?.cells[0]?.state).toBe("DONE");
  expect(mergeRuns(fromHistory([past(20, "failed")]), seen)[0]?.cells[0]?.state).toBe("FAILED");
});
