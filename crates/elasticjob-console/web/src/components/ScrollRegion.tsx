import { Box } from "@mantine/core";
import type { ReactNode } from "react";

/** A box in which wide tables scroll, also by keyboard. */
export function ScrollRegion({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Box
      role="region"
      aria-label={label}
      tabIndex={0}
      style={{ overflowX: "auto", position: "relative" }}
    >
      {children}
    </Box>
  );
}
