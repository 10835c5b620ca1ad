import { notifications } from "@mantine/notifications";
import { useMemo } from "react";

import type { Problem } from "../api/problem";
import { useText } from "../i18n";
import { ProblemText } from "./ProblemText";

/** Shows notifications. */
export function useNotify() {
  const t = useText();
  return useMemo(
    () => ({
      success: (message: string) =>
        notifications.show({
          message,
          color: "green",
          autoClose: 5_000,
          closeButtonProps: { "aria-label": t.close },
        }),
      problem: (problem: Problem) =>
        notifications.show({
          title: t.problems[problem.code] ?? t.problems.internal,
          message: <ProblemText problem={problem} />,
          color: "red",
          autoClose: 15_000,
          closeButtonProps: { "aria-label": t.close },
        }),
    }),
    [t],
  );
}
