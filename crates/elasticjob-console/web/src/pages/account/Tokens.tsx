import {
  ActionIcon,
  Alert,
  Button,
  Code,
  CopyButton,
  Group,
  Select,
  Table,
  Text,
  TextInput,
} from "@mantine/core";
import { useState } from "react";

import { useAct } from "../../api/act";
import { ask, segment } from "../../api/client";
import { keys, useTokens } from "../../api/queries";
import type { Role, Token } from "../../api/types";
import { useText } from "../../i18n";
import { HiddenHead } from "../../parts/HiddenHead";
import { Icon } from "../../parts/Icon";
import { Scroll } from "../../parts/Scroll";
import { Empty, Failure, Loading } from "../../parts/states";
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
    then: (token) => {
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
      {tokens.isPending ? (
        <Loading rows={3} />
      ) : !tokens.data ? (
        <Failure error={tokens.error} again={() => void tokens.refetch()} />
      ) : tokens.data.length === 0 ? (
        <Empty icon="key" title={t.account.noTokens}>
          {t.account.noTokensAbout}
        </Empty>
      ) : (
        <Scroll label={t.account.tokens}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t.account.tokenName}</Table.Th>
                <Table.Th>{t.account.tokenRole}</Table.Th>
                <Table.Th>{t.account.created}</Table.Th>
                <Table.Th>{t.account.expires}</Table.Th>
                <HiddenHead width={44} label={t.jobs.actions} />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {tokens.data.map((token) => (
                <Table.Tr key={token.id}>
                  <Table.Td>{token.name}</Table.Td>
                  <Table.Td>{t.roles[token.role]}</Table.Td>
                  <Table.Td>
                    <When at={token.createdAt} />
                  </Table.Td>
                  <Table.Td>
                    {token.expiresAt ? <When at={token.expiresAt} isRelative /> : t.account.never}
                  </Table.Td>
                  <Table.Td>
                    <ActionIcon
                      variant="subtle"
                      color="gray"
                      c="dimmed"
                      aria-label={t.account.removeToken(token.name)}
                      onClick={() => remove.mutate(token)}
                    >
                      <Icon name="trash" />
                    </ActionIcon>
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Scroll>
      )}
    </>
  );
}
