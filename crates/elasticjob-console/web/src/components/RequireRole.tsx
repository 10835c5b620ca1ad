import { Tooltip } from "@mantine/core";
import type { ReactElement } from "react";

import type { Role } from "../api/types";
import { useHasRole } from "../app/registry";
import { useText } from "../i18n";

/** A button for those who may; the others see that it is there, and what it takes. */
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
