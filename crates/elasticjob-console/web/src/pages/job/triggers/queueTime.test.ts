import { expect, test } from "vitest";

import type { Trigger } from "../../../api/types";
import { pendingQueueTime, runQueueTime } from "./queueTime";

const REQUESTED_AT = "2026-11-15T06:36:07Z";
const now = new Date("2026-11-15T06:36:17Z").getTime();

const trigger = (state: Trigger["state"]): Trigger => ({
  runId: "46861c8b-90ef-4172-9305-d3e7862768d2",
  state,
  by: "ann",
  requestedAt: REQUESTED_AT,
  expiresAt: null,
  endedAt: null,
  at: null,
  isWhole: true,
  parameter: null,
  parameterBytes: 0,
  shardCount: 2,
  counts: null,
  problem: null,
});

test("a pending trigger waits since it was requested", () => {
  expect(pendingQueueTime(trigger("pending"), now)).toBe(10_000);
  expect(pendingQueueTime(trigger("running"), now)).toBeNull();
  expect(pendingQueueTime({ ...trigger("pending"), requestedAt: null }, now)).toBeNull();
});

test("a run waited until its first shard started", () => {
  const startedAt = "2026-11-15T06:36:09Z";
  expect(runQueueTime(trigger("ended"), { startedAt })).toBe(2_000);
  expect(runQueueTime(trigger("running"), { startedAt: null })).toBeNull();
});

test("clocks that differ give no negative time", () => {
  const startedAt = "2026-11-15T06:36:00Z";
  expect(runQueueTime(trigger("ended"), { startedAt })).toBe(0);
});
