import { Button, PasswordInput, Stack } from "@mantine/core";
import { useState } from "react";

import { useAction } from "../../api/action";
import { request } from "../../api/client";
import { useText } from "../../i18n";

export function PasswordForm() {
  const t = useText();
  const [oldPassword, setOld] = useState("");
  const [newPassword, setNew] = useState("");
  const [error, setError] = useState<Record<string, string>>({});
  const change = useAction({
    send: () => request("POST", "/password", { oldPassword, newPassword }),
    successMessage: () => t.account.changed,
    onSuccess: () => {
      setOld("");
      setNew("");
      setError({});
    },
    onProblem: (problem) => {
      if (!problem.field) return false;
      setError({ [problem.field]: `${problem.detail} ${problem.hint ?? ""}` });
      return true;
    },
  });
  const toggle = { "aria-label": t.login.show };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate();
      }}
    >
      <Stack gap="sm">
        <PasswordInput
          label={t.account.oldPassword}
          autoComplete="current-password"
          value={oldPassword}
          error={error.oldPassword}
          onChange={(event) => setOld(event.currentTarget.value)}
          visibilityToggleButtonProps={toggle}
        />
        <PasswordInput
          label={t.account.newPassword}
          autoComplete="new-password"
          value={newPassword}
          error={error.newPassword}
          onChange={(event) => setNew(event.currentTarget.value)}
          visibilityToggleButtonProps={toggle}
        />
        <Button type="submit" loading={change.isPending} disabled={!oldPassword || !newPassword}>
          {t.account.change}
        </Button>
      </Stack>
    </form>
  );
}
