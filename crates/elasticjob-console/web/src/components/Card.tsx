import { Box, Group, Title } from "@mantine/core";
import type { ReactNode } from "react";

/** A titled section of a page. */
export function Card({
  title,
  right,
  children,
  isFlush = false,
}: {
  title?: string;
  right?: ReactNode;
  children: ReactNode;
  /** Without padding, for tables. */
  isFlush?: boolean;
}) {
  return (
    <Box component="section" className="card">
      {(title || right) && (
        <Group justify="space-between" px="md" pt="sm" pb={isFlush ? "xs" : 0} gap="xs">
          {title && (
            <Title order={2} size="h5">
              {title}
            </Title>
          )}
          {right}
        </Group>
      )}
      <Box p={isFlush ? 0 : "md"} pt={isFlush || !title ? undefined : "xs"}>
        {children}
      </Box>
    </Box>
  );
}
