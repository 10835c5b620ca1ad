import { expect, test } from "vitest";

import type { LastRun, RunState } from "../../api/types";
import { bars, countByState, MAX_BARS, percent } from "./sparklineBars";

const run = (id: number, state: RunState, durationMs: number | null): LastRun => ({
  runId: `a/${id}`,
  state,
  startedAt: null,
  durationMs,
  latenessMs: null,
});

test("the newest bar is on the right, and each state has its own shape", () => {
  const states: RunState[] = ["running", "cancelled", "failed", "incomplete", "done"];
  const drawn = bars(states.map((state, index) => run(9 - index, state, 100)));

  expect(drawn.map((bar) => bar.state)).toEqual([...states].reverse());
  expect(new Set(drawn.map((bar) => bar.path.replace(/[-\d. ]/g, ""))).size).toBe(states.length);
  expect(drawn.at(-1)?.path).toContain(`M${(MAX_BARS - 1) * 5} `);
});

test("bar height grows with duration from a minimum", () => {
  const [short, long] = bars([run(2, "done", 10_000), run(1, "done", 0)]);

  expect(short?.path).toContain("v-5h");
  expect(long?.path).toContain("v-22h");
});

test("only the shown runs are counted", () => {
  const runs = Array.from({ length: 30 }, (_, index) => run(index, "failed", 1));

  expect(countByState(runs)).toEqual({
    done: 0,
    incomplete: 0,
    failed: MAX_BARS,
    cancelled: 0,
    running: 0,
  });
});

test("a rate below 100 % is never rounded up to it", () => {
  expect([1_000, 999, 950, 942, 0].map(percent)).toEqual([
    "100 %",
    "99.9 %",
    "95.0 %",
    "94 %",
    "0 %",
  ]);
});
