import { expect, test } from "vitest";

import { levels } from "./heat";

test("nothing is cold, the most is hottest, and a little is seen", () => {
  expect(levels([0, 1, 500, 1000])).toEqual([0, 1, 2, 4]);
  expect(levels([0, 0])).toEqual([0, 0]);
});
