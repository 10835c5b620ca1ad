import { Alert, Button, Code, CopyButton, Group, Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { useAct } from "../../api/act";
import { ask, segment } from "../../api/client";
import { keys, useTokens } from "../../api/queries";
import type { Role, Token } from "../../api/types";
import { useText } from "../../i18n";
import { DataTable } from "../../parts/DataTable";
import { Listed } from "../../parts/Listed";
import { RemoveButton } from "../../parts/RowMenu";
import { Empty } from "../../parts/states";
import { When } from "../../parts/When";

const ROLES: Role[] = ["viewer", "operator", "admin"];

/** Keys for programs. What one is, is shown once. */
export function Tokens() {
  const t = useText();
  const tokens = useTokens();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [days, setDays] = useState("90");
  const [made, setMade] = useState<Token | null>(null);
  const make = useAct<void, Token>({
    run: () => {
      const lasts = Number(days) * 86_400_000;
      const expiresAt = lasts > 0 ? new Date(Date.now() + lasts).toISOString() : undefined;
      return ask("POST", "/tokens", { name, role, expiresAt });
    },
    touches: [keys.tokens],
    after: (token) => {
      setMade(token);
      setName("");
    },
  });
  const remove = useAct<Token, unknown>({
    run: (token) => ask("DELETE", `/tokens/${segment(token.id)}`),
    done: (_, token) => t.account.tokenRemoved(token.name),
    touches: [keys.tokens],
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
          make.mutate();
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
        <Button type="submit" loading={make.isPending} disabled={!name.trim()}>
          {t.account.makeToken}
        </Button>
      </Group>
      {made?.token && (
        <Alert
          color="green"
          variant="light"
          mx="md"
          mb="md"
          title={t.account.tokenMade(made.name)}
          withCloseButton
          closeButtonLabel={t.close}
          onClose={() => setMade(null)}
        >
          <Text size="sm">{t.account.tokenOnce}</Text>
          <Group gap="xs" mt="xs">
            <Code className="wrap">{made.token}</Code>
            <CopyButton value={made.token}>
              {({ copied, copy }) => (
                <Button size="compact-sm" variant="default" onClick={copy}>
                  {copied ? t.copied : t.copy}
                </Button>
              )}
            </CopyButton>
          </Group>
        </Alert>
      )}
      <Listed
        asked={tokens}
        isEmpty={(found) => found.length === 0}
        empty={
          <Empty icon="key" title={t.account.noTokens}>
            {t.account.noTokensAbout}
          </Empty>
        }
      >
        {(found) => (
          <DataTable
            label={t.account.tokens}
            rows={found}
            keyOf={(token) => token.id}
            columns={[
              { head: t.account.tokenName, cell: (token) => token.name },
              { head: t.account.tokenRole, cell: (token) => t.roles[token.role] },
              { head: t.account.created, cell: (token) => <When at={token.createdAt} /> },
              {
                head: t.account.expires,
                cell: (token) =>
                  token.expiresAt ? <When at={token.expiresAt} isRelative /> : t.account.never,
              },
              {
                head: t.jobs.actions,
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
      </Listed>
    </>
  );
}
