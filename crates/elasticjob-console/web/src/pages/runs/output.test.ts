import { expect, test } from "vitest";

import type { OutputLine } from "../../api/types";
import { appendLines, MAX_LINES, NO_OUTPUT, stripAnsi } from "./output";

const line = (text: string): OutputLine => ({
  shardingItem: 0,
  attemptId: "a",
  at: null,
  stream: "stdout",
  text,
});

test("the oldest lines are dropped and counted", () => {
  const many = Array.from({ length: MAX_LINES }, (_, number) => line(String(number)));

  const printed = appendLines(appendLines(NO_OUTPUT, many), [line("last"), line("very last")]);

  expect(printed.lines).toHaveLength(MAX_LINES);
  expect(printed.lines.at(-1)?.text).toBe("very last");
  expect(printed.lines[0]?.text).toBe("2");
  expect(printed.omitted).toBe(2);
});

test("ANSI escape sequences are removed", () => {
  expect(stripAnsi("\u001b[31mred\u001b[0m and \u001b[1;32mgreen")).toBe("red and green");
});
