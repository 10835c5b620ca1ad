import { Grid, Stack, Table, Text } from "@mantine/core";

import { useSession } from "../../app/session";
import { Card } from "../../components/Card";
import { PageHeader } from "../../components/PageHeader";
import { EmptyState } from "../../components/states";
import { useText } from "../../i18n";
import { PasswordForm } from "./PasswordForm";
import { Tokens } from "./Tokens";

/** The user's own account: roles, password and API tokens. */
export function AccountPage() {
  const t = useText();
  const session = useSession();
  return (
    <>
      <PageHeader title={t.nav.account} about={session.username} />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 8 }}>
          {session.hasAccount ? (
            <Card title={t.account.tokens} isFlush>
              <Tokens />
            </Card>
          ) : (
            <Card>
              <EmptyState icon="key" title={t.account.externalLogin}>
                {t.account.externalLoginAbout}
              </EmptyState>
            </Card>
          )}
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 4 }}>
          <Stack gap="md">
            <Card title={t.account.roles}>
              <Table withRowBorders={false}>
                <Table.Tbody>
                  {Object.entries(session.roles).map(([registry, role]) => (
                    <Table.Tr key={registry}>
                      <Table.Td>{registry === "*" ? t.account.everywhere : registry}</Table.Td>
                      <Table.Td>
                        <Text size="sm" fw={600}>
                          {t.roles[role]}
                        </Text>
                        <Text size="xs" c="dimmed">
                          {t.rolesAbout[role]}
                        </Text>
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Card>
            {session.hasAccount && (
              <Card title={t.account.password}>
                <PasswordForm />
              </Card>
            )}
          </Stack>
        </Grid.Col>
      </Grid>
    </>
  );
}
