import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { FakeEventSource, stubBrowser } from "./fakeEventSource.testing";
import { mergeRows, subscribe } from "./live";
import type { JobRow, JobsPage } from "./types";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const row = (jobName: string, status: JobRow["status"] = "OK", runningCount = 0) =>
  ({ jobName, status, runningCount }) as JobRow;

const page = (...items: JobRow[]) => ({ items, total: items.length }) as JobsPage;

/** Subscribes to the registry `r` and records the cache keys that are refetched. */
function startSubscription() {
  const browser = stubBrowser();
  const client = new QueryClient();
  const refetched: (readonly unknown[] | undefined)[] = [];
  vi.spyOn(client, "invalidateQueries").mockImplementation((filters) => {
    refetched.push(filters?.queryKey);
    return Promise.resolve();
  });
  const connections: string[] = [];
  const end = subscribe(client, "r", (connection) => connections.push(connection));
  const connect = () => {
    FakeEventSource.open[0]?.onopen?.();
    FakeEventSource.open[0]?.emit("connection", { isConnected: true });
  };
  connect();
  const emit = (name: string, data: unknown) => FakeEventSource.open[0]?.emit(name, data);
  return { ...browser, client, refetched, connections, connect, emit, end };
}

test("everything is refetched when a hidden page becomes visible", () => {
  const { setVisible, connect, refetched, end } = startSubscription();
  vi.advanceTimersByTime(10_000);
  expect(refetched).toEqual([]);

  setVisible(false);
  setVisible(true);
  connect();
  vi.advanceTimersByTime(1_000);

  expect(refetched).toEqual([["r", "r"]]);
  end();
});

test("a shards event updates the counts of its job only", () => {
  const { client, emit, end } = startSubscription();
  const key = ["r", "r", "jobs", {}];
  const before = page(row("a"), row("b", "OK", 1));
  client.setQueryData(key, before);

  emit("shards", { jobName: "a", runningItems: [0, 2], awaitingFailoverItems: [1] });
  vi.advanceTimersByTime(300);

  const after = client.getQueryData<JobsPage>(key);
  expect(after?.items[0]).toMatchObject({ runningCount: 2, awaitingFailoverCount: 1 });
  expect(after?.items[1]).toBe(before.items[1]);
  end();
});

test("shards events refetch the list at a limited rate", () => {
  const { emit, refetched, end } = startSubscription();
  for (let tick = 0; tick < 100; tick += 1) {
    emit("shards", { jobName: "a", runningItems: [tick], awaitingFailoverItems: [] });
    vi.advanceTimersByTime(100);
  }

  const lists = refetched.filter((key) => key?.[2] === "jobs");
  expect(lists.length).toBeGreaterThanOrEqual(2);
  expect(lists.length).toBeLessThanOrEqual(3);
  end();
});

test("reload events refetch everything at most every five seconds", () => {
  const { emit, refetched, end } = startSubscription();
  for (let second = 0; second < 20; second += 1) {
    emit("reload", {});
    vi.advanceTimersByTime(1_000);
  }

  const everything = refetched.filter((key) => key?.length === 2);
  expect(everything.length).toBeGreaterThanOrEqual(4);
  expect(everything.length).toBeLessThanOrEqual(5);
  end();
});

test("a job event replaces its row and keeps the others", () => {
  const { client, emit, end } = startSubscription();
  const key = ["r", "r", "jobs", {}];
  const before = page(row("a"), row("b"));
  client.setQueryData(key, before);

  emit("job", { jobName: "b", job: row("b", "DISABLED") });
  vi.advanceTimersByTime(300);

  const after = client.getQueryData<JobsPage>(key);
  expect(after?.items[0]).toBe(before.items[0]);
  expect(after?.items[1]?.status).toBe("DISABLED");
  end();
});

test("a removed job is deleted from the page and makes it stale", () => {
  const after = mergeRows(page(row("a"), row("b")), new Map([["a", null]]));

  expect(after.page.items.map((each) => each.jobName)).toEqual(["b"]);
  expect(after.isStale).toBe(true);
});

test("a new status or an unlisted job makes the page stale", () => {
  expect(mergeRows(page(row("a")), new Map([["a", row("a", "CRASHED")]])).isStale).toBe(true);
  expect(mergeRows(page(row("a")), new Map([["z", row("z")]])).isStale).toBe(true);
});
