import { Text } from "@mantine/core";

import type { Problem } from "../api/problem";

/** Detail and hint of a problem. */
export function ProblemText({ problem }: { problem: Problem }) {
  return (
    <>
      {problem.detail && <Text size="sm">{problem.detail}</Text>}
      {problem.hint && (
        <Text size="sm" c="dimmed">
          {problem.hint}
        </Text>
      )}
    </>
  );
}
