import { Alert, Button, Code, CopyButton, Group, Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { useAction } from "../../api/action";
import { encodeSegment, request } from "../../api/client";
import { queryKeys, useTokens } from "../../api/queries";
import type { NewToken, Role, Token } from "../../api/types";
import { DataTable } from "../../components/DataTable";
import { QueryList } from "../../components/QueryList";
import { RemoveButton } from "../../components/RowMenu";
import { EmptyState } from "../../components/states";
import { Timestamp } from "../../components/Timestamp";
import { useText } from "../../i18n";

const ROLES: Role[] = ["viewer", "operator", "admin"];

/** API tokens for programs. A token is shown only once. */
export function Tokens() {
  const t = useText();
  const tokens = useTokens();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [days, setDays] = useState("90");
  const [created, setCreated] = useState<NewToken | null>(null);
  const create = useAction<void, NewToken>({
    send: () => {
      const lasts = Number(days) * 86_400_000;
      const expiresAt = lasts > 0 ? new Date(Date.now() + lasts).toISOString() : undefined;
      return request("POST", "/tokens", { name, role, expiresAt });
    },
    invalidates: [queryKeys.tokens],
    onSuccess: (token) => {
      setCreated(token);
      setName("");
    },
  });
  const remove = useAction<Token, unknown>({
    send: (token) => request("DELETE", `/tokens/${encodeSegment(token.id)}`),
    successMessage: (_, token) => t.account.tokenRemoved(token.name),
    invalidates: [queryKeys.tokens],
  });
  return (
    <>
      <Group
        px="md"
        pb="md"
        gap="sm"
        align="flex-end"
        component="form"
        onSubmit={(event: { preventDefault: () => void }) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        <TextInput
          label={t.account.tokenName}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          flex={1}
          miw={160}
        />
        <Select
          label={t.account.tokenRole}
          data={ROLES.map((value) => ({ value, label: t.roles[value] }))}
          value={role}
          allowDeselect={false}
          onChange={(value) => setRole((value ?? "viewer") as Role)}
          w={140}
        />
        <Select
          label={t.account.tokenLasts}
          data={["7", "30", "90", "365", "0"].map((value) => ({
            value,
            label: t.account.days(Number(value)),
          }))}
          value={days}
          allowDeselect={false}
          onChange={(value) => setDays(value ?? "90")}
          w={150}
        />
        <Button type="submit" loading={create.isPending} disabled={!name.trim()}>
          {t.account.createToken}
        </Button>
      </Group>
      {created?.token && (
        <Alert
          color="green"
          variant="light"
          mx="md"
          mb="md"
          title={t.account.tokenCreated(created.name)}
          withCloseButton
          closeButtonLabel={t.close}
          onClose={() => setCreated(null)}
        >
          <Text size="sm">{t.account.tokenOnce}</Text>
          <Group gap="xs" mt="xs">
            <Code className="wrap">{created.token}</Code>
            <CopyButton value={created.token}>
              {({ copied, copy }) => (
                <Button size="compact-sm" variant="default" onClick={copy}>
                  {copied ? t.copied : t.copy}
                </Button>
              )}
            </CopyButton>
          </Group>
        </Alert>
      )}
      <QueryList
        query={tokens}
        isEmpty={(found) => found.length === 0}
        empty={
          <EmptyState icon="key" title={t.account.noTokens}>
            {t.account.noTokensAbout}
          </EmptyState>
        }
      >
        {(found) => (
          <DataTable
            label={t.account.tokens}
            rows={found}
            keyOf={(token) => token.id}
            columns={[
              { header: t.account.tokenName, cell: (token) => token.name },
              { header: t.account.tokenRole, cell: (token) => t.roles[token.role] },
              { header: t.account.created, cell: (token) => <Timestamp at={token.createdAt} /> },
              {
                header: t.account.expires,
                cell: (token) =>
                  token.expiresAt ? <Timestamp at={token.expiresAt} isRelative /> : t.account.never,
              },
              {
                header: t.jobs.actions,
                isActions: true,
                width: 44,
                cell: (token) => (
                  <RemoveButton
                    label={t.account.removeToken(token.name)}
                    onClick={() => remove.mutate(token)}
                  />
                ),
              },
            ]}
          />
        )}
      </QueryList>
    </>
  );
}
