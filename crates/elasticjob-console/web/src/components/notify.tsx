import { Anchor } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMemo } from "react";
import { Link } from "react-router";

import type { Problem } from "../api/problem";
import { useText } from "../i18n";
import { ProblemText } from "./ProblemText";

/** Where a notification leads: to what the action made. */
export interface NotificationLink {
  to: string;
  label: string;
}

/** Shows notifications. */
export function useNotify() {
  const t = useText();
  return useMemo(
    () => ({
      success: (message: string, link?: NotificationLink) =>
        notifications.show({
          message: link ? (
            <>
              {message}{" "}
              <Anchor component={Link} size="sm" to={link.to}>
                {link.label}
              </Anchor>
            </>
          ) : (
            message
          ),
          color: "green",
          // A link needs time to be read and clicked.
          autoClose: link ? 10_000 : 5_000,
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
