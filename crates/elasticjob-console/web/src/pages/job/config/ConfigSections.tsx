import { Grid, Stack } from "@mantine/core";

import { Card } from "../../../components/Card";
import { useText } from "../../../i18n";
import { CronField } from "./CronField";
import type { Draft } from "./draft";
import { SECTIONS } from "./fields";
import { OtherProperties } from "./OtherProperties";
import { PropertyField } from "./PropertyField";

interface Props {
  draft: Draft;
  errors: Record<string, string>;
  isReadOnly: boolean;
  onChange: (key: string, value: string | boolean) => void;
  onOthers: (others: Draft["others"]) => void;
}

/** The fields of a configuration in two columns. */
export function ConfigSections(props: Props) {
  const t = useText();
  const { draft, errors, isReadOnly, onOthers } = props;
  return (
    <Grid gap="md">
      {([0, 1] as const).map((column) => (
        <Grid.Col key={column} span={{ base: 12, md: 6 }}>
          <Stack gap="md">
            {SECTIONS.filter((section) => section.column === column).map((section) => (
              <Card key={section.name} title={t.config.sections[section.name]}>
                <Stack gap="sm">
                  {section.fields.map((field) => (
                    <SectionField key={field.key} field={field} {...props} />
                  ))}
                </Stack>
              </Card>
            ))}
            {column === 0 && (
              <Card title={t.config.others}>
                <OtherProperties
                  rows={draft.others}
                  errors={errors}
                  isReadOnly={isReadOnly}
                  onChange={onOthers}
                />
              </Card>
            )}
          </Stack>
        </Grid.Col>
      ))}
    </Grid>
  );
}

function SectionField({
  field,
  draft,
  errors,
  isReadOnly,
  onChange,
}: Props & { field: (typeof SECTIONS)[number]["fields"][number] }) {
  const change = (value: string | boolean) => onChange(field.key, value);
  if (field.key === "cron") {
    return (
      <CronField
        value={String(draft.values.cron ?? "")}
        zone={String(draft.values.timeZone ?? "")}
        dst={String(draft.values["props.elasticjob.dst"] ?? "")}
        error={errors.cron}
        isReadOnly={isReadOnly}
        onChange={change}
      />
    );
  }
  return (
    <PropertyField
      field={field}
      value={draft.values[field.key] ?? ""}
      error={errors[field.key]}
      isReadOnly={isReadOnly}
      onChange={change}
    />
  );
}
