import { Button, Group, Skeleton, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import type { ReactNode } from "react";

import { toProblem } from "../api/problem";
import { useText } from "../i18n";
import { Icon, type IconName } from "./Icon";
import { MessageText } from "./MessageText";

/** Placeholder for a list without items, with an optional hint. */
export function EmptyState({
  icon = "info",
  title,
  children,
}: {
  icon?: IconName;
  title: string;
  children?: ReactNode;
}) {
  return (
    <Stack align="center" gap="xs" py={36} px="md" ta="center">
      <ThemeIcon variant="light" size={44} radius="xl" color="gray">
        <Icon name={icon} size={22} />
      </ThemeIcon>
      <Text fw={600}>{title}</Text>
      {children && (
        <Text component="div" size="sm" c="dimmed" maw={460}>
          {children}
        </Text>
      )}
    </Stack>
  );
}

/** Error title, detail and hint, with a retry button. */
export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const t = useText();
  const problem = toProblem(error);
  return (
    <Stack align="center" gap="xs" py={48} px="md" ta="center" role="alert">
      <ThemeIcon variant="light" size={44} radius="xl" color="red">
        <Icon name="alert" size={22} />
      </ThemeIcon>
      <Title order={2} size="h4">
        {t.problems[problem.code] ?? t.problems.internal}
      </Title>
      {problem.detail && (
        <Text size="sm" maw={560} className="wrap" component="div">
          <MessageText text={problem.detail} />
        </Text>
      )}
      {(problem.hint ?? t.hints[problem.code]) && (
        <Text size="sm" c="dimmed" maw={560} className="wrap" component="div">
          <MessageText text={problem.hint ?? t.hints[problem.code] ?? ""} />
        </Text>
      )}
      {onRetry && (
        <Group mt="xs">
          <Button variant="default" leftSection={<Icon name="refresh" />} onClick={onRetry}>
            {t.tryAgain}
          </Button>
        </Group>
      )}
    </Stack>
  );
}

/** Skeleton rows while data is loading. */
export function Loading({ rows = 6 }: { rows?: number }) {
  const t = useText();
  return (
    <Stack gap="sm" p="md" role="status" aria-label={t.loading}>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are identical and static.
        <Skeleton key={row} height={20} radius="sm" width={`${94 - ((row * 17) % 34)}%`} />
      ))}
    </Stack>
  );
}
