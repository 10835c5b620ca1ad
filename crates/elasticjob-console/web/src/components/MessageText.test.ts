import { expect, test } from "vitest";

import { tokenize } from "./MessageText";

test("tokenize finds instants and instances and keeps the whole text", () => {
  const text =
    "the fire of 2026-11-15T15:47:10Z was started by 127.0.0.1@-@17327-0a19bc5d: running, attempt 1";

  const found = tokenize(text);

  expect(found.map((token) => token.text).join("")).toBe(text);
  expect(found.filter((token) => token.kind !== "text").map((token) => token.text)).toEqual([
    "2026-11-15T15:47:10Z",
    "127.0.0.1@-@17327-0a19bc5d",
  ]);
});

test("tokenize takes quoted text as code, without the backticks", () => {
  expect(tokenize("`/` separates names; a lone ` stays")).toEqual([
    { kind: "code", text: "/" },
    { kind: "text", text: " separates names; a lone ` stays" },
  ]);
});
