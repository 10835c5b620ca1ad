import { expect, test } from "vitest";

import { COUNT_STEPS, stacked } from "./layers";
import { evenTicks, timeTicks } from "./ticks";

test("stacked layers add up from bottom to top", () => {
  const layers = [
    [1, 0],
    [2, 3],
    [0, 4],
  ].map((values) => ({
    label: "",
    tone: "plain" as const,
    values,
  }));

  expect(stacked(layers)).toEqual([
    [1, 0],
    [3, 3],
    [3, 7],
  ]);
});

test("axis steps are 1, 2 and 5 times powers of ten", () => {
  expect(COUNT_STEPS.slice(0, 6)).toEqual([1, 2, 5, 10, 20, 50]);
});

test("time ticks are at round times and limited in number", () => {
  const from = Date.parse("2026-11-15T17:31:00Z");
  const hour = timeTicks(from, 60_000, 60, 7);
  const week = timeTicks(from, 7_200_000, 84, 8);

  expect(hour.map((tick) => tick.index)).toEqual([9, 19, 29, 39, 49, 59]);
  expect(hour.every((tick) => tick.label.endsWith("0"))).toBe(true);
  expect(week.length).toBeLessThanOrEqual(8);
  expect(week.every((tick) => /^11-\d\d$/.test(tick.label))).toBe(true);
});

test("even ticks always label the last bar", () => {
  expect(evenTicks(40, 5, String).map((tick) => tick.index)).toEqual([7, 15, 23, 31, 39]);
  expect(evenTicks(0, 5, String)).toEqual([]);
});
