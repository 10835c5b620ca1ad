import { expect, test } from "vitest";

import { fromLocalInput, toLocalInput, toTimeSpan } from "./timeRange";

const NOW = Date.parse("2026-11-15T12:00:42Z");

test("a range ends at the current minute", () => {
  expect(toTimeSpan({ range: "1h" }, "all", NOW)).toEqual({ from: "2026-11-15T11:00:00.000Z" });
  expect(toTimeSpan({}, "24h", NOW)).toEqual({ from: "2026-11-14T12:00:00.000Z" });
});

test("the range all needs a start only if it is not the default", () => {
  expect(toTimeSpan({}, "all", NOW)).toEqual({});
  expect(toTimeSpan({ range: "all" }, "24h", NOW)).toEqual({ from: "1970-01-01T00:00:00.000Z" });
});

test("custom instants override a range, and an unknown range is the default", () => {
  const from = "2026-11-01T00:00:00Z";
  expect(toTimeSpan({ range: "1h", from }, "all", NOW)).toEqual({ from });
  expect(toTimeSpan({ range: "since yesterday" }, "all", NOW)).toEqual({});
});

test("a local input value converts back to the same instant", () => {
  const at = "2026-11-15T12:30:00.000Z";
  expect(fromLocalInput(toLocalInput(at))).toBe(at);
  expect(fromLocalInput(toLocalInput("2026-11-15T12:30:07Z", "second"))).toBe(
    "2026-11-15T12:30:07.000Z",
  );
  expect(toLocalInput("no time")).toBe("");
  expect(fromLocalInput("")).toBe("");
});
