import { expect, test } from "vitest";

import type { DoctorFinding } from "../../api/types";
import { groupFindings } from "./groups";

const finding = (about: string | null, message: string, isProblem = true): DoctorFinding => ({
  check: "job",
  ...{ about, message, isProblem, hint: null },
});

test("findings that differ only in their job form one group", () => {
  const groups = groupFindings([
    finding("a", "no instance"),
    finding("b", "unreadable"),
    finding("c", "no instance"),
  ]);

  expect(groups.map(({ message, abouts }) => [message, abouts])).toEqual([
    ["no instance", ["a", "c"]],
    ["unreadable", ["b"]],
  ]);
});

test("a problem and a remark with the same words stay apart", () => {
  const groups = groupFindings([finding(null, "clock"), finding(null, "clock", false)]);

  expect(groups.map(({ isProblem, abouts }) => [isProblem, abouts])).toEqual([
    [true, []],
    [false, []],
  ]);
});
