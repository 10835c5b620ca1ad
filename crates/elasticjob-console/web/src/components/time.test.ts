import { expect, test } from "vitest";

import { dateTime, relativeTime, shortTime, toIanaZone } from "./time";

const NOON = Date.parse("2026-03-29T12:00:00Z");

test("relative time uses the largest fitting unit", () => {
  expect(relativeTime(NOON + 5_000, NOON, "en-GB")).toContain("5");
  expect(relativeTime(NOON - 3 * 3_600_000, NOON, "en-GB")).toContain("3");
  expect(relativeTime(NOON + 2 * 86_400_000, NOON, "zh-CN")).toContain("后天");
});

test("offset zones of Java ElasticJob are converted to IANA names", () => {
  expect(dateTime(NOON, "en-GB", toIanaZone("GMT+8:00"))).toContain("20:00:00");
  expect(toIanaZone("Europe/Paris")).toBe("Europe/Paris");
  expect(toIanaZone("Nowhere/At-all")).toBeUndefined();
});

test("short time omits the date of today", () => {
  expect(shortTime(NOON, "en-GB", NOON, "UTC")).toBe("12:00:00");
  expect(shortTime(NOON, "en-GB", NOON + 86_400_000, "UTC")).toContain("2026");
});
