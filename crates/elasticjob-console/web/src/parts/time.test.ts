import { expect, test } from "vitest";

import { brief, relative, stamp, zoneName } from "./time";

const NOON = Date.parse("2026-03-29T12:00:00Z");

test("how far away something is, is said in the unit that says most", () => {
  expect(relative(NOON + 5_000, NOON, "en-GB")).toContain("5");
  expect(relative(NOON - 3 * 3_600_000, NOON, "en-GB")).toContain("3");
  expect(relative(NOON + 2 * 86_400_000, NOON, "zh-CN")).toContain("后天");
});

test("the ancestor's way to write a zone is understood", () => {
  expect(stamp(NOON, "en-GB", zoneName("GMT+8:00"))).toContain("20:00:00");
  expect(zoneName("Europe/Paris")).toBe("Europe/Paris");
  expect(zoneName("Nowhere/At-all")).toBeUndefined();
});

test("what is today has no date", () => {
  expect(brief(NOON, "en-GB", NOON, "UTC")).toBe("12:00:00");
  expect(brief(NOON, "en-GB", NOON + 86_400_000, "UTC")).toContain("2026");
});
