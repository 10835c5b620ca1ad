import { afterEach, expect, test, vi } from "vitest";

import { standIn, Told } from "./heard.testing";
import { listen } from "./stream";

afterEach(() => void vi.unstubAllGlobals());

const paths = () => Told.open.map((line) => line.url);

test("a page that nobody sees holds no line, and has one again when it is seen", () => {
  const page = standIn();
  const opened = vi.fn();
  const end = listen("/a", { on: {}, opened });
  expect(paths()).toEqual(["/api/v1/a"]);

  page.see(false);
  expect(paths()).toEqual([]);

  page.see(true);
  expect(paths()).toEqual(["/api/v1/a"]);
  Told.open[0]?.onopen?.();
  expect(opened).toHaveBeenCalledOnce();
  end();
});

test("a page has one line: that of the part that began to listen last", () => {
  standIn();
  const endA = listen("/a", { on: {} });
  const endB = listen("/b", { on: {} });
  expect(paths()).toEqual(["/api/v1/b"]);

  endB();
  expect(paths()).toEqual(["/api/v1/a"]);

  endA();
  endB();
  expect(paths()).toEqual([]);
});

test("a page that was opened out of sight waits until it is seen", () => {
  const page = standIn();
  page.see(false);
  const end = listen("/a", { on: {} });
  expect(paths()).toEqual([]);

  page.see(true);
  expect(paths()).toEqual(["/api/v1/a"]);

  end();
  page.see(true);
  expect(paths()).toEqual([]);
});

test("a line that was refused is tried again, but not once nobody listens", () => {
  vi.useFakeTimers();
  standIn();
  const end = listen("/a", { on: {} });
  const refuse = () => {
    const [line] = Told.open;
    line?.close();
    line?.onerror?.();
  };

  refuse();
  vi.advanceTimersByTime(5_000);
  expect(paths()).toEqual(["/api/v1/a"]);

  refuse();
  end();
  vi.advanceTimersByTime(5_000);
  expect(paths()).toEqual([]);
  vi.useRealTimers();
});
