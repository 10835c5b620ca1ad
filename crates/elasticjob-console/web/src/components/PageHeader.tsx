import { Box, Group, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";

import { useRegistry } from "../app/registry";

/** Title and actions of a page; also sets the title of the browser tab. */
export function PageHeader({
  title,
  tabTitle,
  about,
  badge,
  children,
}: {
  title: string;
  /** What tells the browser tab from others with the same title. */
  tabTitle?: string;
  about?: ReactNode;
  badge?: ReactNode;
  children?: ReactNode;
}) {
  usePageTitle(title, tabTitle);
  return (
    <Group justify="space-between" align="flex-start" mb="md" gap="sm">
      <Box miw={0}>
        <Group gap="sm">
          <Title order={1} size="h3" className="wrap">
            {title}
          </Title>
          {badge}
        </Group>
        {about && (
          <Text component="div" size="sm" c="dimmed" mt={2} className="wrap">
            {about}
          </Text>
        )}
      </Box>
      {children && <Group gap="xs">{children}</Group>}
    </Group>
  );
}

/** Sets the title of the browser tab: the page, its part, and the registry if it belongs to one. */
export function usePageTitle(title: string, part?: string) {
  const registry = useRegistry();
  useEffect(() => {
    document.title = [title, part, registry, "ElasticJob"].filter(Boolean).join(" · ");
  }, [title, part, registry]);
}
