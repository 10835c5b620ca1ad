import { afterEach, expect, test, vi } from "vitest";

import { freshKey, Intent } from "./intent";

afterEach(() => void vi.unstubAllGlobals());

test("a key is made where a browser has no randomUUID: over plain http", () => {
  const { getRandomValues } = crypto;
  vi.stubGlobal("crypto", { getRandomValues: getRandomValues.bind(crypto) });

  expect(freshKey()).toMatch(/^[0-9a-f]{32}$/);
  expect(freshKey()).not.toBe(freshKey());
});

test("what failed and is tried again has the same key, whatever happens in between", () => {
  const intent = new Intent();

  const first = intent.keyOf({ shards: [1] });

  expect(intent.keyOf({ shards: [1] })).toBe(first);
});

test("something else has another key, and so has the same once it was done", () => {
  const intent = new Intent();
  const first = intent.keyOf({ shards: [1] });

  expect(intent.keyOf({ shards: [2] })).not.toBe(first);
  const second = intent.keyOf({});
  intent.done();
  expect(intent.keyOf({})).not.toBe(second);
});

test("what is asked for much later is another wish", () => {
  const intent = new Intent();
  const first = intent.keyOf({}, 0);

  expect(intent.keyOf({}, 60_000)).toBe(first);
  expect(intent.keyOf({}, 3_600_000)).not.toBe(first);
});
