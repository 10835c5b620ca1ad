import {
  Alert,
  Button,
  Group,
  Modal,
  PasswordInput,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useState } from "react";

import { useAction } from "../../api/action";
import { encodeSegment, request } from "../../api/client";
import type { Problem } from "../../api/problem";
import { queryKeys, useRegistries } from "../../api/queries";
import type { Account, Role } from "../../api/types";
import { ProblemText } from "../../components/ProblemText";
import { useText } from "../../i18n";

const ROLES: Role[] = ["viewer", "operator", "admin"];

/** Creates an account, or changes its roles and password. */
export function AccountForm({
  account,
  onClose,
}: {
  account: Account | null;
  onClose: () => void;
}) {
  const t = useText();
  const registries = useRegistries();
  const [username, setUsername] = useState(account?.username ?? "");
  const [password, setPassword] = useState("");
  const [roles, setRoles] = useState<Record<string, Role>>(account?.roles ?? { "*": "viewer" });
  const [problem, setProblem] = useState<Problem | null>(null);
  const store = useAction({
    send: () =>
      request("PUT", `/accounts/${encodeSegment(username.trim())}`, {
        password: password || undefined,
        roles,
      }),
    successMessage: () => t.accounts.stored(username),
    invalidates: [queryKeys.accounts],
    onSuccess: onClose,
    onProblem: (problem) => {
      setProblem(problem);
      return true;
    },
  });
  const scopes = ["*", ...(registries.data?.map((each) => each.name) ?? [])];
  const choose = (registry: string, role: string | null) => {
    const next = { ...roles };
    if (role) next[registry] = role as Role;
    else delete next[registry];
    setRoles(next);
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={account ? t.accounts.edit(account.username) : t.accounts.add}
      closeButtonProps={{ "aria-label": t.close }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          store.mutate();
        }}
      >
        <Stack gap="sm">
          {!account && (
            <TextInput
              label={t.login.username}
              value={username}
              autoComplete="off"
              onChange={(event) => setUsername(event.currentTarget.value)}
              data-autofocus
            />
          )}
          <PasswordInput
            label={account ? t.accounts.newPassword : t.login.password}
            autoComplete="new-password"
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
            visibilityToggleButtonProps={{ "aria-label": t.login.show }}
          />
          <Text size="sm" fw={500}>
            {t.accounts.roles}
          </Text>
          {scopes.map((registry) => (
            <Select
              key={registry}
              label={registry === "*" ? t.account.everywhere : registry}
              data={ROLES.map((value) => ({
                value,
                label: `${t.roles[value]} – ${t.rolesAbout[value]}`,
              }))}
              value={roles[registry] ?? null}
              placeholder={t.accounts.noRole}
              clearable
              clearButtonProps={{ "aria-label": t.config.clear }}
              onChange={(value) => choose(registry, value)}
            />
          ))}
          {problem && (
            <Alert color="red" variant="light" role="alert">
              <ProblemText problem={problem} />
            </Alert>
          )}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {t.cancel}
            </Button>
            <Button
              type="submit"
              loading={store.isPending}
              disabled={!username.trim() || (!account && !password)}
            >
              {t.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
