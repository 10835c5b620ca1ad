import { expect, test } from "vitest";

import { en } from "./en";
import { zh } from "./zh";

/** Terms that Chinese texts use in English. */
const SAME_IN_BOTH = ["Fencing token"];

/** The path of every text and its type. */
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

test("both languages have the same keys", () => {
  expect(shape(zh).sort()).toEqual(shape(en).sort());
});

test("a text is empty in both languages or in neither", () => {
  const english = new Map(texts(en));
  const empty = texts(zh).filter(([at, text]) => (text === "") !== (english.get(at) === ""));
  expect(empty).toEqual([]);
});

test("no Chinese text is left in English", () => {
  const english = new Map(texts(en));
  const untranslated = texts(zh).filter(
    ([at, text]) =>
      english.get(at) === text && /[a-z]{4,} [a-z]{3,}/i.test(text) && !SAME_IN_BOTH.includes(text),
  );
  expect(untranslated).toEqual([]);
});

test("every server code has a Chinese description and keeps its English message", () => {
  const descriptions = (catalogue: typeof en) => [
    ...Object.keys(en.overview.kinds).map((kind) =>
      catalogue.overview.describe(kind, "the server's message"),
    ),
    ...Object.keys(en.explain.topics).map((topic) =>
      catalogue.explain.describe(topic, "the server's message"),
    ),
    ...Object.keys(en.doctor.checks).flatMap((check) => [
      catalogue.doctor.describe(check, true, "the server's message"),
      catalogue.doctor.describe(check, false, "the server's message"),
    ]),
  ];
  expect(new Set(descriptions(en))).toEqual(new Set(["the server's message"]));
  expect(descriptions(zh).filter((text) => !/\p{Script=Han}/u.test(text))).toEqual([]);
  expect(zh.overview.describe("unknown kind", "the server's message")).toBe("the server's message");
});
