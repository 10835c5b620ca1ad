import { Box, Group, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";

/** Title and actions of a page; also sets the title of the browser tab. */
export function PageHeader({
  title,
  about,
  badge,
  children,
}: {
  title: string;
  about?: ReactNode;
  badge?: ReactNode;
  children?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · ElasticJob`;
  }, [title]);
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
