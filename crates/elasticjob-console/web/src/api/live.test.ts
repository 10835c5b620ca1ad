import { expect, test } from "vitest";

import { withRows } from "./live";
import type { JobRow, JobsPage } from "./types";

const row = (jobName: string, status: JobRow["status"] = "OK", runningCount = 0) =>
  ({ jobName, status, runningCount }) as JobRow;

const page = (...items: JobRow[]) => ({ items, total: items.length }) as JobsPage;

test("a row that changed is put in, and only that", () => {
  const before = page(row("a"), row("b"));
  const after = withRows(before, new Map([["b", row("b", "OK", 3)]]));

  expect(after.page.items[0]).toBe(before.items[0]);
  expect(after.page.items[1]?.runningCount).toBe(3);
  expect(after.isStale).toBe(false);
});

test("a job that is gone is taken away, and the page is asked for again", () => {
  const after = withRows(page(row("a"), row("b")), new Map([["a", null]]));

  expect(after.page.items.map((each) => each.jobName)).toEqual(["b"]);
  expect(after.isStale).toBe(true);
});

test("another status, or a job of another page, makes the page stale", () => {
  expect(withRows(page(row("a")), new Map([["a", row("a", "CRASHED")]])).isStale).toBe(true);
  expect(withRows(page(row("a")), new Map([["z", row("z")]])).isStale).toBe(true);
});
