import { expect, test } from "vitest";

import { EVERY_DAY, joinFields, PRESETS, splitFields } from "./cron";

test("splitting and joining the fields returns the same expression", () => {
  expect(PRESETS).not.toHaveLength(0);
  for (const { expression } of PRESETS) {
    const parts = splitFields(expression);
    expect(parts && joinFields(parts)).toBe(expression);
  }
});

test("either day or weekday is a question mark", () => {
  expect(joinFields({ ...EVERY_DAY, weekday: "MON-FRI" })).toBe("0 0 3 ? * MON-FRI");
  expect(joinFields({ ...EVERY_DAY, day: "?" })).toBe("0 0 3 * * ?");
});

test("an expression with five fields is rejected", () => {
  expect(splitFields("* * * * *")).toBeNull();
});
