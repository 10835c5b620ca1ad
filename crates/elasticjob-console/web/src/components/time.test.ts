import { expect, test } from "vitest";

import { dateTime, relativeTime, shortTime, toIanaZone } from "./time";

const NOON = Date.parse("2026-03-29T12:00:00Z");

test("how far away something is, is said in the unit that says most", () => {
  expect(relativeTime(NOON + 5_000, NOON, "en-GB")).toContain("5");
  expect(relativeTime(NOON - 3 * 3_600_000, NOON, "en-GB")).toContain("3");
  expect(relativeTime(NOON + 2 * 86_400_000, NOON, "zh-CN")).toContain("后天");
});

test("the ancestor's way to write a zone is understood", () => {
  expect(dateTime(NOON, "en-GB", toIanaZone("GMT+8:00"))).toContain("20:00:00");
  expect(toIanaZone("Europe/Paris")).toBe("Europe/Paris");
  expect(toIanaZone("Nowhere/At-all")).toBeUndefined();
});

test("what is today has no date", () => {
  expect(shortTime(NOON, "en-GB", NOON, "UTC")).toBe("12:00:00");
  expect(shortTime(NOON, "en-GB", NOON + 86_400_000, "UTC")).toContain("2026");
});
