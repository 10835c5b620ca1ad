import { Box } from "@mantine/core";
import type { ReactNode } from "react";

/** A box in which wide tables scroll, also by keyboard; long ones too, if it has a greatest height. */
export function ScrollRegion({
  label,
  maxHeight,
  children,
}: {
  label: string;
  maxHeight?: string;
  children: ReactNode;
}) {
  return (
    <Box
      role="region"
      aria-label={label}
      tabIndex={0}
      style={{ overflow: "auto", position: "relative", maxHeight }}
    >
      {children}
    </Box>
  );
}
