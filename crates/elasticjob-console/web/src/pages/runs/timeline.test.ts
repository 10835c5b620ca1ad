import { expect, test } from "vitest";

import type { Execution } from "../../api/types";
import { toTimeline } from "./timeline";

const NOW = Date.parse("2026-11-15T12:00:10Z");

function attempt(item: number, number: number, start: number, end: number | null): Execution {
  const at = (second: number) => new Date(NOW - 10_000 + second * 1_000).toISOString();
  return {
    id: `${item}/${number}`,
    jobName: "settle",
    runId: "settle/1",
    taskId: "task",
    hostname: "here",
    ip: "127.0.0.1",
    shardingItem: item,
    executionSource: "NORMAL_TRIGGER",
    success: end !== null,
    state: end === null ? "running" : "done",
    outcome: end === null ? null : "done",
    failureCause: null,
    startTime: at(start),
    completeTime: end === null ? null : at(end),
    durationMs: end === null ? null : (end - start) * 1_000,
    latenessMs: 0,
    attempt: number,
    reason: "schedule",
    token: "1",
    instance: null,
    traceId: null,
  };
}

test("attempts are ordered by shard and positioned by time", () => {
  const lost: Execution = {
    ...attempt(1, 1, 0, 4),
    success: false,
    state: "lost",
    outcome: "lost",
  };
  const { bars, lengthMs } = toTimeline([attempt(1, 2, 4, 8), attempt(0, 1, 0, 2), lost], NOW);

  expect(lengthMs).toBe(8_000);
  expect(bars.map((bar) => [bar.attempt.id, bar.left, bar.width])).toEqual([
    ["0/1", 0, 25],
    ["1/1", 0, 50],
    ["1/2", 50, 50],
  ]);
});

test("the bar of a running attempt ends now", () => {
  const { bars, lengthMs } = toTimeline([attempt(0, 1, 0, null)], NOW);

  expect(lengthMs).toBe(10_000);
  expect(bars[0]).toMatchObject({ left: 0, width: 100, tookMs: 10_000 });
});

test("unsuccessful attempts are shown first if the number is limited", () => {
  const failed: Execution = {
    ...attempt(3, 1, 0, 1),
    success: false,
    state: "failed",
    outcome: "failed",
  };
  const many = [attempt(0, 1, 0, 1), attempt(1, 1, 0, 1), attempt(2, 1, 0, 1), failed];

  const { bars, omitted } = toTimeline(many, NOW, 2);

  expect(bars.map((bar) => bar.attempt.shardingItem)).toEqual([0, 3]);
  expect(omitted).toBe(2);
});

test("a run without attempts has no bars", () => {
  expect(toTimeline([], NOW).bars).toEqual([]);
});
