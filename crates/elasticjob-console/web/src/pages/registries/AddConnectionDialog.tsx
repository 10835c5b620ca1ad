import { Alert, Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { useAction } from "../../api/action";
import { request } from "../../api/client";
import type { Problem } from "../../api/problem";
import type { ConnectionTest } from "../../api/types";
import { ProblemText } from "../../components/ProblemText";
import { useText } from "../../i18n";

interface Props {
  /** API path to add a connection; `/test` below it tests the URL. */
  path: "/registries" | "/histories";
  title: string;
  /** Identifying properties of the request; null while they are incomplete. */
  identity: Record<string, string> | null;
  /** Input for the identity. */
  identityField: ReactNode;
  urlAbout: string;
  initialUrl: string;
  successMessage: string;
  invalidates: readonly (readonly unknown[])[];
  onClose: () => void;
}

/** Adds a registry or history store by URL; the URL can be tested first. */
export function AddConnectionDialog(props: Props) {
  const {
    path,
    title,
    identity,
    identityField,
    urlAbout,
    initialUrl,
    successMessage,
    invalidates,
    onClose,
  } = props;
  const t = useText();
  const [url, setUrl] = useState(initialUrl);
  const [problem, setProblem] = useState<Problem | null>(null);
  const onProblem = (problem: Problem) => {
    setProblem(problem);
    return true;
  };
  const test = useAction<void, ConnectionTest>({
    send: () => request("POST", `${path}/test`, { url: url.trim() }),
    onProblem,
    onSuccess: () => setProblem(null),
  });
  const add = useAction({
    send: () => request("POST", path, { ...identity, url: url.trim() }),
    successMessage: () => successMessage,
    invalidates,
    onProblem,
    onSuccess: onClose,
  });
  const result = test.data;
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ "aria-label": t.close }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate();
        }}
      >
        <Stack gap="sm">
          {identityField}
          <TextInput
            label={t.registries.url}
            description={urlAbout}
            value={url}
            autoComplete="off"
            onChange={(event) => {
              setUrl(event.currentTarget.value);
              test.reset();
            }}
          />
          {result && (
            <Alert color={result.isReachable ? "green" : "red"} variant="light" role="status">
              {result.isReachable ? t.registries.reachable(result.jobCount ?? 0) : result.problem}
            </Alert>
          )}
          {problem && (
            <Alert color="red" variant="light" role="alert">
              <ProblemText problem={problem} />
            </Alert>
          )}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" loading={test.isPending} onClick={() => test.mutate()}>
              {t.registries.test}
            </Button>
            <Button type="submit" loading={add.isPending} disabled={identity === null}>
              {title}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
