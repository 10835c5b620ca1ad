import { Box, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";

import { useCronCheck, useCronNext } from "../../../api/queries";
import { FireList } from "../../../components/FireList";
import { useText } from "../../../i18n";

/** A cron field that shows the next fires while the user types. */
export function CronField({
  value,
  zone,
  dst,
  error,
  isReadOnly,
  onChange,
}: {
  value: string;
  zone: string;
  dst: string;
  error?: string;
  isReadOnly: boolean;
  onChange: (value: string) => void;
}) {
  const t = useText();
  const { label = "cron", about } = t.config.fields.cron ?? {};
  const [expression] = useDebouncedValue(value.trim(), 250);
  const [debouncedZone] = useDebouncedValue(zone.trim(), 250);
  const checked = useCronCheck(expression);
  const next = useCronNext(expression, debouncedZone, 3, dst);
  const isValid = expression !== "" && next.isSuccess && !next.isPlaceholderData;
  return (
    <Box>
      <TextInput
        label={label}
        description={about}
        placeholder={t.config.example("0 0/5 * * * ?")}
        value={value}
        error={error}
        disabled={isReadOnly}
        data-key="cron"
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      {isValid && !error && (
        <Stack gap={2} mt={6} px="xs" py={4} bg="var(--row)" style={{ borderRadius: 6 }}>
          <Text size="xs" c="dimmed">
            {t.config.nextFires}
          </Text>
          <FireList fires={next.data} zone={zone || null} />
          {checked.data?.warnings.map((warning) => (
            <Text key={warning.message} size="xs" c="var(--warn)">
              {warning.message}
            </Text>
          ))}
        </Stack>
      )}
    </Box>
  );
}
