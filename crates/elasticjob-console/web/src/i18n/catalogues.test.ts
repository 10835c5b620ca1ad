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

test("everything the server names by a word is said in Chinese, and in its own words in English", () => {
  const said = (catalogue: typeof en) => [
    ...Object.keys(en.overview.kinds).map((kind) =>
      catalogue.overview.says(kind, "as it was told"),
    ),
    ...Object.keys(en.explain.topics).map((topic) =>
      catalogue.explain.says(topic, "as it was told"),
    ),
    ...Object.keys(en.doctor.checks).flatMap((check) => [
      catalogue.doctor.says(check, true, "as it was told"),
      catalogue.doctor.says(check, false, "as it was told"),
    ]),
  ];
  expect(new Set(said(en))).toEqual(new Set(["as it was told"]));
  expect(said(zh).filter((text) => !/\p{Script=Han}/u.test(text))).toEqual([]);
  expect(zh.overview.says("something new", "as it was told")).toBe("as it was told");
});
