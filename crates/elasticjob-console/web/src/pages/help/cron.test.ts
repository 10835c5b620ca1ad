import { expect, test } from "vitest";

import { assembled, EVERY_DAY, PRESETS, parted } from "./cron";

test("what is taken apart is put together the same", () => {
  expect(PRESETS).not.toHaveLength(0);
  for (const { expression } of PRESETS) {
    const parts = parted(expression);
    expect(parts && assembled(parts)).toBe(expression);
  }
});

test("day and weekday are never both said", () => {
  expect(assembled({ ...EVERY_DAY, weekday: "MON-FRI" })).toBe("0 0 3 ? * MON-FRI");
  expect(assembled({ ...EVERY_DAY, day: "?" })).toBe("0 0 3 * * ?");
});

test("five fields are no cron of Quartz", () => {
  expect(parted("* * * * *")).toBeNull();
});
