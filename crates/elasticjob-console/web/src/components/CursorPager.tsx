import { Button, Group } from "@mantine/core";

import { useText } from "../i18n";

/** The way through a list that goes back in time. */
export function CursorPager({
  after,
  next,
  onChange,
}: {
  after: string;
  next: string | null;
  onChange: (after: string) => void;
}) {
  const t = useText();
  if (!after && !next) return null;
  return (
    <Group justify="flex-end" p="sm" gap="xs">
      {after && (
        <Button variant="default" size="compact-sm" onClick={() => onChange("")}>
          {t.runs.newest}
        </Button>
      )}
      {next && (
        <Button variant="default" size="compact-sm" onClick={() => onChange(next)}>
          {t.runs.older}
        </Button>
      )}
    </Group>
  );
}
