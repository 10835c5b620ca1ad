import { Anchor, Grid, Stack, Table, Text } from "@mantine/core";

import { Card } from "../../components/Card";
import { PageHeader } from "../../components/PageHeader";
import { JobStatusBadge } from "../../components/statuses";
import { useText } from "../../i18n";
import { CronBuilder } from "./CronBuilder";

export function HelpPage() {
  const t = useText();
  return (
    <>
      <PageHeader title={t.nav.help} about={t.help.about} />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Card title={t.help.cron}>
            <CronBuilder />
          </Card>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Stack gap="md">
            <Card title={t.help.statuses}>
              <Table withRowBorders={false} verticalSpacing={6}>
                <Table.Tbody>
                  {(["OK", "DISABLED", "SHARDING_FLAG", "CRASHED"] as const).map((status) => (
                    <Table.Tr key={status}>
                      <Table.Td style={{ verticalAlign: "top" }}>
                        <JobStatusBadge status={status} />
                      </Table.Td>
                      <Table.Td>
                        <Text size="sm">{t.help.statusAbout[status]}</Text>
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Card>
            <Card title={t.help.glossaryTitle}>
              <Stack gap="xs">
                {t.help.glossary.map(([word, about]) => (
                  <Text key={word} size="sm">
                    <b>{word}</b> {about}
                  </Text>
                ))}
              </Stack>
            </Card>
            <Card title={t.help.more}>
              <Text size="sm">
                {t.help.keys} <kbd className="key">?</kbd>
              </Text>
              <Text size="sm" mt={6}>
                <Anchor href="/api/v1/docs" target="_blank" rel="noreferrer" size="sm">
                  {t.help.api}
                </Anchor>
              </Text>
            </Card>
          </Stack>
        </Grid.Col>
      </Grid>
    </>
  );
}
