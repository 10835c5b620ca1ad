import { afterEach, expect, test, vi } from "vitest";
import { openStream } from "./eventStream";
import { FakeEventSource, stubBrowser } from "./fakeEventSource.testing";

afterEach(() => void vi.unstubAllGlobals());

const paths = () => FakeEventSource.open.map((line) => line.url);

test("a page that nobody sees holds no line, and has one again when it is seen", () => {
  const page = stubBrowser();
  const onOpen = vi.fn();
  const end = openStream("/a", { onEvent: {}, onOpen });
  expect(paths()).toEqual(["/api/v1/a"]);

  page.setVisible(false);
  expect(paths()).toEqual([]);

  page.setVisible(true);
  expect(paths()).toEqual(["/api/v1/a"]);
  FakeEventSource.open[0]?.onopen?.();
  expect(onOpen).toHaveBeenCalledOnce();
  end();
});

test("a page has one line: that of the part that began to listen last", () => {
  stubBrowser();
  const endA = openStream("/a", { onEvent: {} });
  const endB = openStream("/b", { onEvent: {} });
  expect(paths()).toEqual(["/api/v1/b"]);

  endB();
  expect(paths()).toEqual(["/api/v1/a"]);

  endA();
  endB();
  expect(paths()).toEqual([]);
});

test("a page that was opened out of sight waits until it is seen", () => {
  const page = stubBrowser();
  page.setVisible(false);
  const end = openStream("/a", { onEvent: {} });
  expect(paths()).toEqual([]);

  page.setVisible(true);
  expect(paths()).toEqual(["/api/v1/a"]);

  end();
  page.setVisible(true);
  expect(paths()).toEqual([]);
});

test("a line that was refused is tried again, but not once nobody listens", () => {
  vi.useFakeTimers();
  stubBrowser();
  const end = openStream("/a", { onEvent: {} });
  const refuse = () => {
    const [line] = FakeEventSource.open;
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
