import {
  Alert,
  Button,
  Center,
  Divider,
  Group,
  PasswordInput,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";

import { request } from "../../api/client";
import { type Problem, toProblem } from "../../api/problem";
import type { LoginMethods, Session } from "../../api/types";
import { LanguageSwitch } from "../../app/LanguageSwitch";
import { SchemeSwitch } from "../../app/SchemeSwitch";
import { useSessionControl } from "../../app/session";
import { Icon } from "../../components/Icon";
import { ProblemText } from "../../components/ProblemText";
import { useText } from "../../i18n";

/** Return path for an OpenID Connect login, and the outcome of a previous attempt. */
function oidcReturn() {
  const search = new URLSearchParams(location.search);
  const outcome = search.get("oidc");
  search.delete("oidc");
  const rest = search.size > 0 ? `?${search}` : "";
  return { outcome, to: encodeURIComponent(location.pathname + rest) };
}

/** The login form. The URL stays, so that the requested page opens after login. */
export function LoginPage() {
  const t = useText();
  const { state, logIn, refresh } = useSessionControl();
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [methods, setMethods] = useState<LoginMethods>({ oidc: null });
  const { outcome, to } = oidcReturn();

  useEffect(() => {
    document.title = `${t.login.title} · ElasticJob`;
  }, [t]);

  useEffect(() => {
    // Without an answer, only the password login is offered.
    request<LoginMethods>("GET", "/login/methods").then(setMethods, () => {});
  }, []);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      logIn(await request<Session>("POST", "/login", { username, password }));
    } catch (error) {
      setProblem(toProblem(error));
      setBusy(false);
    }
  };

  return (
    <Center component="main" mih="100vh" p="md">
      <Stack w="100%" maw={360} gap="md">
        <Group justify="space-between">
          <Group gap="sm">
            <img src="/icon.svg" width={32} height={32} alt="" />
            <Title order={1} size="h3">
              ElasticJob
            </Title>
          </Group>
          <Group gap={4}>
            <LanguageSwitch />
            <SchemeSwitch />
          </Group>
        </Group>
        <form className="card" onSubmit={(event) => void submit(event)} aria-label={t.login.title}>
          <Stack p="lg" gap="md">
            {state.status === "loggedOut" && state.hasExpired && !problem && (
              <Alert color="yellow" variant="light" icon={<Icon name="clock" />}>
                {t.login.expired}
              </Alert>
            )}
            {state.status === "loggedOut" && state.isUnreachable && !problem && (
              <Alert color="red" variant="light" icon={<Icon name="alert" />}>
                <Text size="sm">{t.problems.offline}</Text>
                <Button mt="xs" size="compact-sm" variant="default" onClick={() => void refresh()}>
                  {t.tryAgain}
                </Button>
              </Alert>
            )}
            {outcome && !problem && (
              <Alert color="red" variant="light" role="alert" icon={<Icon name="alert" />}>
                <Text size="sm">
                  {t.login.oidcOutcomes[outcome] ?? t.login.oidcOutcomes.failed}
                </Text>
                {outcome === "unreachable" && methods.oidc?.problem && (
                  <Text size="xs" c="dimmed">
                    {methods.oidc.problem}
                  </Text>
                )}
              </Alert>
            )}
            <TextInput
              label={t.login.username}
              autoComplete="username"
              autoFocus
              required
              withAsterisk={false}
              value={username}
              onChange={(event) => setUsername(event.currentTarget.value)}
            />
            <PasswordInput
              label={t.login.password}
              autoComplete="current-password"
              required
              withAsterisk={false}
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              visibilityToggleButtonProps={{ "aria-label": t.login.show }}
            />
            {problem && (
              <Alert color="red" variant="light" role="alert" icon={<Icon name="alert" />}>
                <Text size="sm" fw={600}>
                  {problem.code === "notAuthenticated"
                    ? t.login.wrong
                    : problem.code === "tooManyRequests"
                      ? t.login.wait(problem.retryAfter ?? 1)
                      : (t.problems[problem.code] ?? t.problems.internal)}
                </Text>
                {problem.code !== "notAuthenticated" && <ProblemText problem={problem} />}
              </Alert>
            )}
            <Button type="submit" loading={isBusy} fullWidth>
              {t.login.button}
            </Button>
            {methods.oidc && (
              <>
                <Divider label={t.login.or} />
                <Button
                  component="a"
                  href={`${methods.oidc.href}?to=${to}`}
                  variant="default"
                  fullWidth
                >
                  {t.login.with(methods.oidc.label)}
                </Button>
              </>
            )}
          </Stack>
        </form>
        {location.hostname === "127.0.0.1" || location.hostname === "localhost" ? (
          <Text size="xs" c="dimmed" ta="center">
            {t.login.devHint}
          </Text>
        ) : null}
      </Stack>
    </Center>
  );
}
