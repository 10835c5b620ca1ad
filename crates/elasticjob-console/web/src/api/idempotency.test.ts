import { afterEach, expect, test, vi } from "vitest";

import { IdempotencyKey, randomKey } from "./idempotency";

afterEach(() => void vi.unstubAllGlobals());

test("a key is generated without randomUUID", () => {
  const { getRandomValues } = crypto;
  vi.stubGlobal("crypto", { getRandomValues: getRandomValues.bind(crypto) });

  expect(randomKey()).toMatch(/^[0-9a-f]{32}$/);
  expect(randomKey()).not.toBe(randomKey());
});

test("a retried request keeps its key", () => {
  const intent = new IdempotencyKey();

  const first = intent.keyFor({ shards: [1] });

  expect(intent.keyFor({ shards: [1] })).toBe(first);
});

test("another request, or the same after success, gets a new key", () => {
  const intent = new IdempotencyKey();
  const first = intent.keyFor({ shards: [1] });

  expect(intent.keyFor({ shards: [2] })).not.toBe(first);
  const second = intent.keyFor({});
  intent.clear();
  expect(intent.keyFor({})).not.toBe(second);
});

test("an old key is not reused", () => {
  const intent = new IdempotencyKey();
  const first = intent.keyFor({}, 0);

  expect(intent.keyFor({}, 60_000)).toBe(first);
  expect(intent.keyFor({}, 3_600_000)).not.toBe(first);
});
