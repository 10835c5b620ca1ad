import { Button, Group } from "@mantine/core";

import { useText } from "../i18n";

/** The way through a list that goes back in time. */
export function Older({
  after,
  next,
  onAfter,
}: {
  after: string;
  next: string | null;
  onAfter: (after: string) => void;
}) {
  const t = useText();
  if (!after && !next) return null;
  return (
    <Group justify="flex-end" p="sm" gap="xs">
      {after && (
        <Button variant="default" size="compact-sm" onClick={() => onAfter("")}>
          {t.runs.newest}
        </Button>
      )}
      {next && (
        <Button variant="default" size="compact-sm" onClick={() => onAfter(next)}>
          {t.runs.older}
        </Button>
      )}
    </Group>
  );
}
