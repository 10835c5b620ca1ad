import { expect, test } from "vitest";

import { levels, peak } from "./heatLevels";

test("an even load is mild, and has no peak", () => {
  expect(levels([50, 52, 49])).toEqual([2, 2, 2]);
  expect(peak([50, 52, 49])).toBeNull();
});

test("a crowd is hot, a little is seen, nothing is cold", () => {
  expect(levels([0, 1, 10, 10, 10, 90])).toEqual([0, 1, 1, 1, 1, 4]);
  expect(peak([0, 1, 10, 10, 10, 90])).toBe(5);
  expect(levels([0, 0])).toEqual([0, 0]);
});
