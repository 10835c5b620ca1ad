import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { useAct } from "../../api/act";
import { ask, segment } from "../../api/client";
import { keys, useAccounts } from "../../api/queries";
import type { Account } from "../../api/types";
import { rules, useSession } from "../../app/session";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { Confirm } from "../../parts/Confirm";
import { DataTable } from "../../parts/DataTable";
import { Icon } from "../../parts/Icon";
import { Listed } from "../../parts/Listed";
import { PageHead } from "../../parts/PageHead";
import { RemoveButton } from "../../parts/RowMenu";
import { Empty } from "../../parts/states";
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
        <Listed asked={accounts} isEmpty={() => false} empty={null}>
          {(found) => (
            <DataTable
              label={t.nav.accounts}
              rows={found}
              keyOf={(account) => account.username}
              columns={[
                {
                  head: t.login.username,
                  cell: (account) => (
                    <Text size="sm" fw={600}>
                      {account.username}
                      {account.username === session.username && ` (${t.accounts.you})`}
                    </Text>
                  ),
                },
                {
                  head: t.accounts.roles,
                  cell: (account) =>
                    Object.entries(account.roles).map(([registry, role]) => (
                      <Text key={registry} size="sm">
                        {registry === "*" ? t.account.everywhere : registry}: {t.roles[role]}
                      </Text>
                    )),
                },
                {
                  head: t.account.tokens,
                  className: "numeric",
                  cell: (account) => account.tokens.length,
                },
                {
                  head: t.jobs.actions,
                  isActions: true,
                  width: 90,
                  cell: (account) => (
                    <Group gap={4} wrap="nowrap" justify="flex-end">
                      <Button variant="subtle" size="compact-sm" onClick={() => setEdited(account)}>
                        {t.edit}
                      </Button>
                      <RemoveButton
                        label={t.accounts.remove(account.username)}
                        isRefused={account.username === session.username}
                        onClick={() => setRemoved(account)}
                      />
                    </Group>
                  ),
                },
              ]}
            />
          )}
        </Listed>
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
