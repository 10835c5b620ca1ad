import { expect, test } from "vitest";

import { levels, peak } from "./heatLevels";

test("an even load has level 2 and no peak", () => {
  expect(levels([50, 52, 49])).toEqual([2, 2, 2]);
  expect(peak([50, 52, 49])).toBeNull();
});

test("a peak has level 4, and only zero has level 0", () => {
  expect(levels([0, 1, 10, 10, 10, 90])).toEqual([0, 1, 1, 1, 1, 4]);
  expect(peak([0, 1, 10, 10, 10, 90])).toBe(5);
  expect(levels([0, 0])).toEqual([0, 0]);
});
