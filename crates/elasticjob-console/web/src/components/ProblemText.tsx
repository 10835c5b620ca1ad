import { Text } from "@mantine/core";

import type { Problem } from "../api/problem";
import { MessageText } from "./MessageText";

/** Detail and hint of a problem. */
export function ProblemText({ problem }: { problem: Problem }) {
  return (
    <>
      {problem.detail && (
        <Text size="sm" component="div">
          <MessageText text={problem.detail} />
        </Text>
      )}
      {problem.hint && (
        <Text size="sm" c="dimmed" component="div">
          <MessageText text={problem.hint} />
        </Text>
      )}
    </>
  );
}
