import { Alert, Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useState } from "react";

import { useAct } from "../../api/act";
import { ask } from "../../api/client";
import type { Problem } from "../../api/problem";
import { keys } from "../../api/queries";
import { useText } from "../../i18n";
import { ProblemText } from "../../parts/ProblemText";

interface Tried {
  isReachable: boolean;
  jobCount: number | null;
  problem: string | null;
}

export function AddRegistry({ onClose }: { onClose: () => void }) {
  const t = useText();
  const [name, setName] = useState("");
  const [url, setUrl] = useState("zookeeper://");
  const [problem, setProblem] = useState<Problem | null>(null);
  const failed = (problem: Problem) => {
    setProblem(problem);
    return true;
  };
  const test = useAct<void, Tried>({
    run: () => ask("POST", "/registries/test", { url }),
    failed,
    then: () => setProblem(null),
  });
  const add = useAct({
    run: () => ask("POST", "/registries", { name: name.trim(), url: url.trim() }),
    done: () => t.registries.added(name),
    touches: [keys.registries],
    failed,
    then: onClose,
  });
  const tried = test.data;
  return (
    <Modal
      opened
      onClose={onClose}
      title={t.registries.add}
      closeButtonProps={{ "aria-label": t.close }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate();
        }}
      >
        <Stack gap="sm">
          <TextInput
            label={t.registries.name}
            description={t.registries.nameAbout}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
          />
          <TextInput
            label={t.registries.url}
            description={t.registries.urlAbout}
            value={url}
            autoComplete="off"
            onChange={(event) => {
              setUrl(event.currentTarget.value);
              test.reset();
            }}
          />
          {tried && (
            <Alert color={tried.isReachable ? "green" : "red"} variant="light" role="status">
              {tried.isReachable ? t.registries.reachable(tried.jobCount ?? 0) : tried.problem}
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
            <Button type="submit" loading={add.isPending} disabled={!name.trim()}>
              {t.registries.add}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
