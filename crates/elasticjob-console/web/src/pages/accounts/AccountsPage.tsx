import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { useAction } from "../../api/action";
import { encodeSegment, request } from "../../api/client";
import { queryKeys, useAccounts } from "../../api/queries";
import type { Account } from "../../api/types";
import { isAdmin, useSession } from "../../app/session";
import { Card } from "../../components/Card";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { DataTable } from "../../components/DataTable";
import { Icon } from "../../components/Icon";
import { PageHeader } from "../../components/PageHeader";
import { QueryList } from "../../components/QueryList";
import { RemoveButton } from "../../components/RowMenu";
import { EmptyState } from "../../components/states";
import { useText } from "../../i18n";
import { AccountForm } from "./AccountForm";

export function AccountsPage() {
  const t = useText();
  const session = useSession();
  return isAdmin(session) ? (
    <AccountList />
  ) : (
    <EmptyState icon="block" title={t.needsRole(t.roles.admin)} />
  );
}

function AccountList() {
  const t = useText();
  const session = useSession();
  const accounts = useAccounts();
  const [editing, setEditing] = useState<Account | "new" | null>(null);
  const [removing, setRemoving] = useState<Account | null>(null);
  const remove = useAction<string>({
    send: (username) => request("DELETE", `/accounts/${encodeSegment(username)}`),
    successMessage: (_, username) => t.accounts.removed(username),
    invalidates: [queryKeys.accounts],
  });
  return (
    <>
      <PageHeader title={t.nav.accounts} about={t.accounts.about}>
        <Button leftSection={<Icon name="plus" />} onClick={() => setEditing("new")}>
          {t.accounts.add}
        </Button>
      </PageHeader>
      <Card isFlush>
        <QueryList query={accounts} isEmpty={() => false} empty={null}>
          {(found) => (
            <DataTable
              label={t.nav.accounts}
              rows={found}
              keyOf={(account) => account.username}
              columns={[
                {
                  header: t.login.username,
                  cell: (account) => (
                    <Text size="sm" fw={600}>
                      {account.username}
                      {account.username === session.username && ` (${t.accounts.you})`}
                    </Text>
                  ),
                },
                {
                  header: t.accounts.roles,
                  cell: (account) =>
                    Object.entries(account.roles).map(([registry, role]) => (
                      <Text key={registry} size="sm">
                        {registry === "*" ? t.account.everywhere : registry}: {t.roles[role]}
                      </Text>
                    )),
                },
                {
                  header: t.account.tokens,
                  className: "numeric",
                  cell: (account) => account.tokens.length,
                },
                {
                  header: t.jobs.actions,
                  isActions: true,
                  width: 90,
                  cell: (account) => (
                    <Group gap={4} wrap="nowrap" justify="flex-end">
                      <Button
                        variant="subtle"
                        size="compact-sm"
                        onClick={() => setEditing(account)}
                      >
                        {t.edit}
                      </Button>
                      <RemoveButton
                        label={t.accounts.remove(account.username)}
                        isRefused={account.username === session.username}
                        onClick={() => setRemoving(account)}
                      />
                    </Group>
                  ),
                },
              ]}
            />
          )}
        </QueryList>
      </Card>
      {editing && (
        <AccountForm
          account={editing === "new" ? null : editing}
          onClose={() => setEditing(null)}
        />
      )}
      {removing && (
        <ConfirmDialog
          title={t.accounts.remove(removing.username)}
          consequences={t.accounts.removeConsequences(removing.tokens.length)}
          button={t.job.remove}
          isBusy={remove.isPending}
          onConfirm={() => remove.mutate(removing.username, { onSuccess: () => setRemoving(null) })}
          onClose={() => setRemoving(null)}
        />
      )}
    </>
  );
}
