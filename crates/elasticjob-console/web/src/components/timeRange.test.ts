import { expect, test } from "vitest";

import { fromLocalInput, toLocalInput, toTimeSpan } from "./timeRange";

const NOW = Date.parse("2026-11-15T12:00:42Z");

test("a range reaches back from the minute it is", () => {
  expect(toTimeSpan({ range: "1h" }, "all", NOW)).toEqual({ from: "2026-11-15T11:00:00.000Z" });
  expect(toTimeSpan({}, "24h", NOW)).toEqual({ from: "2026-11-14T12:00:00.000Z" });
});

test("everything is not said where it is usual, and said where it is not", () => {
  expect(toTimeSpan({}, "all", NOW)).toEqual({});
  expect(toTimeSpan({ range: "all" }, "24h", NOW)).toEqual({ from: "1970-01-01T00:00:00.000Z" });
});

test("instants win over a range, and what nobody knows is as usual", () => {
  const from = "2026-11-01T00:00:00Z";
  expect(toTimeSpan({ range: "1h", from }, "all", NOW)).toEqual({ from });
  expect(toTimeSpan({ range: "since yesterday" }, "all", NOW)).toEqual({});
});

test("a time by the reader's clock comes back as the instant it was", () => {
  const at = "2026-11-15T12:30:00.000Z";
  expect(fromLocalInput(toLocalInput(at))).toBe(at);
  expect(fromLocalInput(toLocalInput("2026-11-15T12:30:07Z", "second"))).toBe(
    "2026-11-15T12:30:07.000Z",
  );
  expect(toLocalInput("no time")).toBe("");
  expect(fromLocalInput("")).toBe("");
});
