import { Alert, Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { useAct } from "../../api/act";
import { ask } from "../../api/client";
import type { Problem } from "../../api/problem";
import { useText } from "../../i18n";
import { ProblemText } from "../../parts/ProblemText";

interface Tried {
  isReachable: boolean;
  jobCount: number | null;
  problem: string | null;
}

interface Props {
  /** Where it is added; it is tried below, at `/test`. */
  path: "/registries" | "/histories";
  title: string;
  /** What it is for, as it is sent; without, it cannot be added yet. */
  named: Record<string, string> | null;
  /** Where that is said. */
  naming: ReactNode;
  urlAbout: string;
  /** What every URL begins with. */
  scheme: string;
  added: string;
  touches: readonly (readonly unknown[])[];
  onClose: () => void;
}

/** Something with a URL to be added: tried before, if one likes. */
export function AddPlace(props: Props) {
  const { path, title, named, naming, urlAbout, scheme, added, touches, onClose } = props;
  const t = useText();
  const [url, setUrl] = useState(scheme);
  const [problem, setProblem] = useState<Problem | null>(null);
  const failed = (problem: Problem) => {
    setProblem(problem);
    return true;
  };
  const test = useAct<void, Tried>({
    run: () => ask("POST", `${path}/test`, { url: url.trim() }),
    failed,
    after: () => setProblem(null),
  });
  const add = useAct({
    run: () => ask("POST", path, { ...named, url: url.trim() }),
    done: () => added,
    touches,
    failed,
    after: onClose,
  });
  const tried = test.data;
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ "aria-label": t.close }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate();
        }}
      >
        <Stack gap="sm">
          {naming}
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
            <Button type="submit" loading={add.isPending} disabled={named === null}>
              {title}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
