import { expect, test } from "vitest";

import { en } from "./en";
import { zh } from "./zh";

/** Every place where something is said, and what kind of thing stands there. */
function shape(value: unknown, at = ""): string[] {
  if (Array.isArray(value)) return [`${at}: ${value.length} entries`];
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([key, inner]) => shape(inner, `${at}/${key}`));
  }
  return [`${at}: ${typeof value}`];
}

function texts(value: unknown, at = ""): [string, string][] {
  if (typeof value === "string") return [[at, value]];
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([key, inner]) => texts(inner, `${at}/${key}`));
  }
  return [];
}

test("both languages say the same things", () => {
  expect(shape(zh).sort()).toEqual(shape(en).sort());
});

test("nothing is left empty that is not empty in the other language", () => {
  const english = new Map(texts(en));
  const empty = texts(zh).filter(([at, text]) => (text === "") !== (english.get(at) === ""));
  expect(empty).toEqual([]);
});

test("Chinese is Chinese", () => {
  const same = new Map(texts(en));
  const kept = texts(zh).filter(
    ([at, text]) => same.get(at) === text && /[a-z]{4,} [a-z]{3,}/i.test(text),
  );
  expect(kept).toEqual([]);
});
