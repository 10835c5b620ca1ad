import { afterEach, expect, test, vi } from "vitest";

import { IdempotencyKey, randomKey } from "./idempotency";

afterEach(() => void vi.unstubAllGlobals());

test("a key is made where a browser has no randomUUID: over plain http", () => {
  const { getRandomValues } = crypto;
  vi.stubGlobal("crypto", { getRandomValues: getRandomValues.bind(crypto) });

  expect(randomKey()).toMatch(/^[0-9a-f]{32}$/);
  expect(randomKey()).not.toBe(randomKey());
});

test("what failed and is tried again has the same key, whatever happens in between", () => {
  const intent = new IdempotencyKey();

  const first = intent.keyFor({ shards: [1] });

  expect(intent.keyFor({ shards: [1] })).toBe(first);
});

test("something else has another key, and so has the same once it was done", () => {
  const intent = new IdempotencyKey();
  const first = intent.keyFor({ shards: [1] });

  expect(intent.keyFor({ shards: [2] })).not.toBe(first);
  const second = intent.keyFor({});
  intent.clear();
  expect(intent.keyFor({})).not.toBe(second);
});

test("what is asked for much later is another wish", () => {
  const intent = new IdempotencyKey();
  const first = intent.keyFor({}, 0);

  expect(intent.keyFor({}, 60_000)).toBe(first);
  expect(intent.keyFor({}, 3_600_000)).not.toBe(first);
});
