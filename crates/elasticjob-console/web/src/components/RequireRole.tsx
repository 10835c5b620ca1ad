import { Tooltip } from "@mantine/core";
import type { ReactElement } from "react";

import type { Role } from "../api/types";
import { useHasRole } from "../app/registry";
import { useText } from "../i18n";

/** Passes `isDenied` to its child and, if the user lacks the role, shows which one is required. */
export function RequireRole({
  minimum,
  children,
}: {
  minimum: Role;
  children: (isDenied: boolean) => ReactElement;
}) {
  const t = useText();
  const isAllowed = useHasRole(minimum);
  if (isAllowed) return children(false);
  return (
    <Tooltip label={t.needsRole(t.roles[minimum])}>
      <span>{children(true)}</span>
    </Tooltip>
  );
}
