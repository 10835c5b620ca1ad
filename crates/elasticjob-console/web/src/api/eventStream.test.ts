import { afterEach, expect, test, vi } from "vitest";

import { openStream } from "./eventStream";
import { FakeEventSource, stubBrowser } from "./fakeEventSource.testing";

afterEach(() => void vi.unstubAllGlobals());

const paths = () => FakeEventSource.open.map((source) => source.url);

test("a hidden page closes its stream and reopens it when visible", () => {
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

test("only the newest stream of a page is open", () => {
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

test("a page opened in the background opens no stream until it is visible", () => {
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

test("a rejected stream is reopened unless it has been closed", () => {
  vi.useFakeTimers();
  stubBrowser();
  const end = openStream("/a", { onEvent: {} });
  const refuse = () => {
    const [source] = FakeEventSource.open;
    source?.close();
    source?.onerror?.();
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
