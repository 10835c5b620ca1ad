import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { standIn, Told } from "./heard.testing";
import { follow, withRows } from "./live";
import type { JobRow, JobsPage } from "./types";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const row = (jobName: string, status: JobRow["status"] = "OK", runningCount = 0) =>
  ({ jobName, status, runningCount }) as JobRow;

const page = (...items: JobRow[]) => ({ items, total: items.length }) as JobsPage;

/** Somebody who follows the registry `r`; what is asked for again is written down. */
function follower() {
  const seen = standIn();
  const client = new QueryClient();
  const asked: (readonly unknown[] | undefined)[] = [];
  vi.spyOn(client, "invalidateQueries").mockImplementation((filters) => {
    asked.push(filters?.queryKey);
    return Promise.resolve();
  });
  const lines: string[] = [];
  const end = follow(client, "r", (line) => lines.push(line));
  const connect = () => {
    Told.open[0]?.onopen?.();
    Told.open[0]?.say("connection", { isConnected: true });
  };
  connect();
  const say = (name: string, data: unknown) => Told.open[0]?.say(name, data);
  return { ...seen, client, asked, lines, connect, say, end };
}

test("what happened while nobody looked is looked at again", () => {
  const { see, connect, asked, end } = follower();
  vi.advanceTimersByTime(10_000);
  expect(asked).toEqual([]);

  see(false);
  see(true);
  connect();
  vi.advanceTimersByTime(1_000);

  expect(asked).toEqual([["r", "r"]]);
  end();
});

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
