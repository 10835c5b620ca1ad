import { expect, test } from "vitest";

import { dateTime, relativeTime, shortTime, toIanaZone } from "./time";

const NOON = Date.parse("2026-03-29T12:00:00Z");

test("relative time uses the largest fitting unit", () => {
  expect(relativeTime(NOON + 5_000, NOON, "en-GB")).toContain("5");
  expect(relativeTime(NOON - 3 * 3_600_000, NOON, "en-GB")).toContain("3");
});

test("relative time names no calendar day", () => {
  const hours = (count: number, locale = "en-GB") =>
    relativeTime(NOON + count * 3_600_000, NOON, locale);

  expect(hours(25)).toBe("in 25 hr");
  expect(hours(47)).toBe("in 47 hr");
  expect(hours(49)).toBe("in 2 days");
  expect(hours(-30)).toBe("30 hr ago");
  expect(hours(48, "zh-CN")).toBe("2天后");
});

test("offset zones of Java ElasticJob are converted to IANA names", () => {
  expect(dateTime(NOON, toIanaZone("GMT+8:00"))).toBe("2026-03-29 20:00:00");
  expect(toIanaZone("Europe/Paris")).toBe("Europe/Paris");
  expect(toIanaZone("Nowhere/At-all")).toBeUndefined();
});

test("short time omits the date of today", () => {
  expect(shortTime(NOON, NOON, "UTC")).toBe("12:00:00");
  expect(shortTime(NOON, NOON + 86_400_000, "UTC")).toBe("2026-03-29 12:00:00");
});

test("midnight begins a day at 00:00:00", () => {
  expect(dateTime(Date.parse("2026-11-18T00:00:00Z"), "UTC")).toBe("2026-11-18 00:00:00");
});
