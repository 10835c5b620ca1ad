import { ActionIcon, Button, Group, Table, Text } from "@mantine/core";
import { useState } from "react";

import { useAct } from "../../api/act";
import { ask, segment } from "../../api/client";
import { keys, useAccounts } from "../../api/queries";
import type { Account } from "../../api/types";
import { rules, useSession } from "../../app/session";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { Confirm } from "../../parts/Confirm";
import { HiddenHead } from "../../parts/HiddenHead";
import { Icon } from "../../parts/Icon";
import { PageHead } from "../../parts/PageHead";
import { Scroll } from "../../parts/Scroll";
import { Empty, Failure, Loading } from "../../parts/states";
import { AccountForm } from "./AccountForm";

export function AccountsPage() {
  const t = useText();
  const session = useSession();
  return rules(session) ? <List /> : <Empty icon="block" title={t.needsRole(t.roles.admin)} />;
}

function List() {
  const t = useText();
  const session = useSession();
  const accounts = useAccounts();
  const [edited, setEdited] = useState<Account | "new" | null>(null);
  const [removed, setRemoved] = useState<Account | null>(null);
  const remove = useAct<string>({
    run: (username) => ask("DELETE", `/accounts/${segment(username)}`),
    done: (_, username) => t.accounts.removed(username),
    touches: [keys.accounts],
  });
  return (
    <>
      <PageHead title={t.nav.accounts} about={t.accounts.about}>
        <Button leftSection={<Icon name="plus" />} onClick={() => setEdited("new")}>
          {t.accounts.add}
        </Button>
      </PageHead>
      <Card isFlush>
        {accounts.isPending ? (
          <Loading />
        ) : !accounts.data ? (
          <Failure error={accounts.error} again={() => void accounts.refetch()} />
        ) : (
          <Scroll label={t.nav.accounts}>
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t.login.username}</Table.Th>
                  <Table.Th>{t.accounts.roles}</Table.Th>
                  <Table.Th>{t.account.tokens}</Table.Th>
                  <HiddenHead width={90} label={t.jobs.actions} />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {accounts.data.map((account) => (
                  <Table.Tr key={account.username}>
                    <Table.Td>
                      <Text size="sm" fw={600}>
                        {account.username}
                        {account.username === session.username && ` (${t.accounts.you})`}
                      </Text>
                    </Table.Td>
                    <Table.Td>
                      {Object.entries(account.roles).map(([registry, role]) => (
                        <Text key={registry} size="sm">
                          {registry === "*" ? t.account.everywhere : registry}: {t.roles[role]}
                        </Text>
                      ))}
                    </Table.Td>
                    <Table.Td className="numeric">{account.tokens.length}</Table.Td>
                    <Table.Td>
                      <Group gap={4} wrap="nowrap" justify="flex-end">
                        <Button
                          variant="subtle"
                          size="compact-sm"
                          onClick={() => setEdited(account)}
                        >
                          {t.edit}
                        </Button>
                        <ActionIcon
                          variant="subtle"
                          color="gray"
                          c="dimmed"
                          disabled={account.username === session.username}
                          aria-label={t.accounts.remove(account.username)}
                          onClick={() => setRemoved(account)}
                        >
                          <Icon name="trash" />
                        </ActionIcon>
                      </Group>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Scroll>
        )}
      </Card>
      {edited && (
        <AccountForm account={edited === "new" ? null : edited} onClose={() => setEdited(null)} />
      )}
      {removed && (
        <Confirm
          title={t.accounts.remove(removed.username)}
          happens={t.accounts.removeHappens(removed.tokens.length)}
          button={t.job.remove}
          isBusy={remove.isPending}
          onConfirm={() => remove.mutate(removed.username, { onSuccess: () => setRemoved(null) })}
          onClose={() => setRemoved(null)}
        />
      )}
    </>
  );
}
