import { expect, test } from "vitest";

import { EVERY_DAY, joinFields, PRESETS, splitFields } from "./cron";

test("what is taken apart is put together the same", () => {
  expect(PRESETS).not.toHaveLength(0);
  for (const { expression } of PRESETS) {
    const parts = splitFields(expression);
    expect(parts && joinFields(parts)).toBe(expression);
  }
});

test("day and weekday are never both said", () => {
  expect(joinFields({ ...EVERY_DAY, weekday: "MON-FRI" })).toBe("0 0 3 ? * MON-FRI");
  expect(joinFields({ ...EVERY_DAY, day: "?" })).toBe("0 0 3 * * ?");
});

test("five fields are no cron of Quartz", () => {
  expect(splitFields("* * * * *")).toBeNull();
});
