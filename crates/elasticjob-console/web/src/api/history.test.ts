import { expect, test } from "vitest";

import { mergeRuns } from "./history";
import type { JobFigures, Run } from "./types";

/** A run with the properties that a list row shows. */
const run = (jobName: string, second: number, state: Run["state"] = "done") =>
  ({
    runId: `${jobName}/${second}`,
    jobName,
    state,
    dueAt: null,
    startedAt: new Date(second * 1_000).toISOString(),
    durationMs: 5,
    latenessMs: 0,
  }) as Run;

const of = (jobName: string, ...lastRuns: Run[]): JobFigures => ({
  jobName,
  figures: null,
  lastRuns,
});

test("a changed run is inserted once, in order of start", () => {
  const before = [of("a", run("a", 20, "running"), run("a", 10)), of("b", run("b", 10))];

  const after = mergeRuns(before, [run("a", 30, "running"), run("a", 20, "failed")]);

  expect(after[0]?.lastRuns.map((each) => [each.runId, each.state])).toEqual([
    ["a/30", "running"],
    ["a/20", "failed"],
    ["a/10", "done"],
  ]);
  expect(after[1]).toBe(before[1]);
});

test("runs of unlisted jobs are ignored", () => {
  const before = [of("a", run("a", 10))];

  expect(mergeRuns(before, [run("z", 20)])).toBe(before);
});

test("the oldest runs are dropped", () => {
  const many = Array.from({ length: 20 }, (_, index) => run("a", 100 - index));

  const [after] = mergeRuns([of("a", ...many)], [run("a", 101)]);

  expect(after?.lastRuns).toHaveLength(20);
  expect(after?.lastRuns[0]?.runId).toBe("a/101");
  expect(after?.lastRuns.at(-1)?.runId).toBe("a/82");
});
