import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { throttle } from "./throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a storm is answered at once, then at its pace, and its end is not forgotten", () => {
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

test("nothing is done after the end", () => {
  const act = vi.fn();
  const look = throttle(2_000, act);
  look.schedule();

  look.cancel();
  vi.advanceTimersByTime(10_000);

  expect(act).not.toHaveBeenCalled();
});
