import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { throttle } from "./throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("throttle calls at once, then per interval, and after the last schedule", () => {
  const callback = vi.fn();
  const throttled = throttle(2_000, callback);

  for (let tick = 0; tick < 50; tick += 1) {
    throttled.schedule();
    vi.advanceTimersByTime(100);
  }

  expect(callback).toHaveBeenCalledTimes(3);
  vi.advanceTimersByTime(10_000);
  expect(callback).toHaveBeenCalledTimes(4);
});

test("cancel prevents a scheduled call", () => {
  const callback = vi.fn();
  const throttled = throttle(2_000, callback);
  throttled.schedule();

  throttled.cancel();
  vi.advanceTimersByTime(10_000);

  expect(callback).not.toHaveBeenCalled();
});
