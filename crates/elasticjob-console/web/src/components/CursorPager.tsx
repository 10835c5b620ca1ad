import { Button, Group } from "@mantine/core";

import { useText } from "../i18n";

/** Buttons for the next older page of a list and for its newest page. */
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
