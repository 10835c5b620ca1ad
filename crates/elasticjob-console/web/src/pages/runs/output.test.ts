import { expect, test } from "vitest";

import { type Line, MOST, NOTHING, plain, withLines } from "./output";

const line = (text: string): Line => ({
  shardingItem: 0,
  attemptId: "a",
  at: null,
  stream: "stdout",
  text,
});

test("of very much output the end is kept, and what is left out is counted", () => {
  const many = Array.from({ length: MOST }, (_, number) => line(String(number)));

  const printed = withLines(withLines(NOTHING, many), [line("last"), line("very last")]);

  expect(printed.lines).toHaveLength(MOST);
  expect(printed.lines.at(-1)?.text).toBe("very last");
  expect(printed.lines[0]?.text).toBe("2");
  expect(printed.left).toBe(2);
});

test("what colours a terminal is not shown", () => {
  expect(plain("\u001b[31mred\u001b[0m and \u001b[1;32mgreen")).toBe("red and green");
});
