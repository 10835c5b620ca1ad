import { expect, test } from "vitest";

import type { Trace } from "../../api/types";
import { newestFirst } from "./traceOrder";

const trace = (second: number, state: string): Trace =>
  ({ creationTime: new Date(second * 1_000).toISOString(), state, taskId: "settle" }) as Trace;

test("status changes of the same instant are in causal order, newest first", () => {
  const mixed = [
    trace(1, "TASK_RUNNING"),
    trace(1, "TASK_FINISHED"),
    trace(2, "TASK_STAGING"),
    trace(1, "TASK_STAGING"),
  ];

  expect(newestFirst(mixed).map(({ state }) => state)).toEqual([
    "TASK_STAGING",
    "TASK_FINISHED",
    "TASK_RUNNING",
    "TASK_STAGING",
  ]);
});

test("every state that ends a task is above its start", () => {
  for (const end of ["TASK_FAILED", "TASK_ERROR", "TASK_KILLED", "TASK_LOST"]) {
    expect(newestFirst([trace(1, "TASK_RUNNING"), trace(1, end)])[0]?.state).toBe(end);
  }
});
