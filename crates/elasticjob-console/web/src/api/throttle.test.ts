import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { throttle } from "./throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("throttle calls at once, then per interval, and after the last schedule", () => {
  const act = vi.fn();
  const look = throttle(2_000, act);

  for (let tick = 0; tick < 50; tick += 1) {
    look.schedule();
    vi.advanceTimersByTime(100);
  }

  expect(act).toHaveBeenCalledTimes(3);
  vi.advanceTimersByTime(10_000);
  expect(act).toHaveBeenCalledTimes(4);
});

test("cancel prevents a scheduled call", () => {
  const act = vi.fn();
  const look = throttle(2_000, act);
  look.schedule();

  look.cancel();
  vi.advanceTimersByTime(10_000);

  expect(act).not.toHaveBeenCalled();
});
