import { Tooltip } from "@mantine/core";
import type { ReactElement } from "react";

import type { Role } from "../api/types";
import { useMay } from "../app/registry";
import { useText } from "../i18n";

/** A button for those who may; the others see that it is there, and what it takes. */
export function Allowed({
  needs,
  children,
}: {
  needs: Role;
  children: (isRefused: boolean) => ReactElement;
}) {
  const t = useText();
  const may = useMay(needs);
  if (may) return children(false);
  return (
    <Tooltip label={t.needsRole(t.roles[needs])}>
      <span>{children(true)}</span>
    </Tooltip>
  );
}
