import {
  Alert,
  Autocomplete,
  Button,
  Group,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useSearchParams } from "react-router";

import { toProblem } from "../../api/problem";
import { useCronCheck, useCronNext } from "../../api/queries";
import { FireList } from "../../components/FireList";
import { ProblemText } from "../../components/ProblemText";
import { viewerZone } from "../../components/time";
import { useText } from "../../i18n";
import { ZONES } from "../job/config/zones";
import { FIELDS, type FieldName, joinFields, PRESETS, splitFields } from "./cron";

/** Builds or checks a cron expression and shows its next fires. The expression is stored in the URL. */
export function CronBuilder() {
  const t = useText();
  const [params, setParams] = useSearchParams();
  const expression = params.get("cron") ?? "0 0 3 * * ?";
  const zone = params.get("zone") ?? viewerZone();
  const [debounced] = useDebouncedValue(expression.trim(), 250);
  const [debouncedZone] = useDebouncedValue(zone.trim(), 250);
  const next = useCronNext(debounced, debouncedZone, 10);
  const checked = useCronCheck(debounced);
  const parts = splitFields(expression);
  const setCron = (cron: string, newZone = zone) =>
    setParams({ cron, zone: newZone }, { replace: true });
  const problem = next.isError && !next.data ? toProblem(next.error) : null;
  const setField = (field: FieldName, value: string) => {
    if (parts) setCron(joinFields({ ...parts, [field]: value.replace(/\s+/g, "") }));
  };
  return (
    <Stack gap="sm">
      <Group gap={6}>
        {PRESETS.map((preset) => (
          <Button
            key={preset.name}
            variant="default"
            size="compact-sm"
            onClick={() => setCron(preset.expression)}
          >
            {t.help.presets[preset.name]}
          </Button>
        ))}
      </Group>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label={t.help.expression}
          value={expression}
          error={Boolean(problem)}
          onChange={(event) => setCron(event.currentTarget.value)}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
        <Autocomplete
          label={t.help.zone}
          data={ZONES}
          limit={30}
          value={zone}
          onChange={(value) => setCron(expression, value)}
        />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 2, xs: 4, sm: 7 }} spacing="xs">
        {FIELDS.map((field) => (
          <TextInput
            key={field}
            label={t.help.fields[field]}
            description={t.help.ranges[field]}
            value={parts?.[field] ?? ""}
            disabled={!parts}
            onChange={(event) => setField(field, event.currentTarget.value)}
            styles={{
              input: { fontFamily: "var(--mantine-font-family-monospace)" },
              description: { fontSize: 10 },
            }}
          />
        ))}
      </SimpleGrid>
      <Text size="xs" c="dimmed">
        {t.help.syntax}
      </Text>
      <div aria-live="polite">
        {problem ? (
          <Alert color="red" variant="light" title={t.help.invalid}>
            <ProblemText problem={problem} />
          </Alert>
        ) : (
          <Stack gap={4}>
            <Text size="sm" fw={600}>
              {t.help.nextTen}
            </Text>
            {next.data && <FireList fires={next.data} zone={zone} />}
            {checked.data?.warnings.map((warning) => (
              <Alert key={warning.message} color="yellow" variant="light">
                {warning.message}
              </Alert>
            ))}
          </Stack>
        )}
      </div>
    </Stack>
  );
}
