import { ActionIcon, Button, Group, Stack, Text, TextInput } from "@mantine/core";

import { Icon } from "../../../components/Icon";
import { useText } from "../../../i18n";
import type { Draft } from "./draft";

/** Properties without a dedicated field. */
export function OtherProperties({
  rows,
  errors,
  isReadOnly,
  onChange,
}: {
  rows: Draft["others"];
  errors: Record<string, string>;
  isReadOnly: boolean;
  onChange: (rows: Draft["others"]) => void;
}) {
  const t = useText();
  const setRow = (index: number, row: Draft["others"][number]) =>
    onChange(rows.map((each, at) => (at === index ? row : each)));
  return (
    <Stack gap="xs">
      <Text size="xs" c="dimmed">
        {t.config.othersAbout}
      </Text>
      {rows.map((row, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: while typing, a key may be empty or duplicate; the fields keep no state.
        <Group key={index} gap="xs" wrap="nowrap" align="flex-start">
          <TextInput
            flex={1}
            aria-label={t.config.key}
            placeholder={t.config.key}
            value={row.key}
            disabled={isReadOnly}
            onChange={(event) => setRow(index, { ...row, key: event.currentTarget.value })}
          />
          <TextInput
            flex={1}
            aria-label={t.config.valueOf(row.key)}
            placeholder={t.config.value}
            value={row.value}
            error={errors[`props.${row.key}`]}
            disabled={isReadOnly}
            onChange={(event) => setRow(index, { ...row, value: event.currentTarget.value })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            c="dimmed"
            mt={4}
            disabled={isReadOnly}
            aria-label={t.config.remove(row.key)}
            onClick={() => onChange(rows.filter((_, at) => at !== index))}
          >
            <Icon name="close" />
          </ActionIcon>
        </Group>
      ))}
      {!isReadOnly && (
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<Icon name="plus" size={14} />}
          style={{ alignSelf: "flex-start" }}
          onClick={() => onChange([...rows, { key: "", value: "" }])}
        >
          {t.config.add}
        </Button>
      )}
    </Stack>
  );
}
