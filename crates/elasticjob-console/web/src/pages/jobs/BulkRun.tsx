import {
  Alert,
  Button,
  Group,
  List,
  Modal,
  Progress,
  ScrollArea,
  Stack,
  Text,
} from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";

import { ask } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { atJob, keys } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";

export type BulkAction = "trigger" | "enable" | "disable" | "shutdown";

/** How many are asked at once: the registry has others to serve. */
const AT_ONCE = 6;

/** Does one thing to many jobs; shows how far it is, and what did not work. */
export function BulkRun({
  action,
  names,
  onClose,
}: {
  action: BulkAction;
  names: string[];
  onClose: () => void;
}) {
  const t = useText();
  const registry = useRegistry();
  const client = useQueryClient();
  const [done, setDone] = useState(0);
  const [failed, setFailed] = useState<{ name: string; problem: Problem }[]>([]);
  const [state, setState] = useState<"asks" | "runs" | "over">("asks");
  const isStopped = useRef(false);

  const run = async () => {
    setState("runs");
    const queue = [...names];
    const worker = async () => {
      for (
        let name = queue.shift();
        name !== undefined && !isStopped.current;
        name = queue.shift()
      ) {
        const job = name;
        try {
          await ask("POST", `${atJob(registry, job)}/${action}`);
        } catch (error) {
          setFailed((before) => [...before, { name: job, problem: asProblem(error) }]);
        }
        setDone((before) => before + 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    setState("over");
    void client.invalidateQueries({ queryKey: keys.of(registry) });
  };

  const close = () => {
    isStopped.current = true;
    onClose();
  };

  return (
    <Modal
      opened
      onClose={close}
      title={t.jobs.bulkTitle(t.job[action], names.length)}
      closeButtonProps={{ "aria-label": t.close }}
    >
      <Stack gap="sm">
        {state === "asks" && (
          <>
            <Text size="sm">{t.jobs.bulkHappens[action]}</Text>
            <ScrollArea.Autosize mah={160}>
              <Text size="sm" className="mono wrap" c="dimmed">
                {names.slice(0, 50).join(", ")}
                {names.length > 50 && ` … (+${names.length - 50})`}
              </Text>
            </ScrollArea.Autosize>
          </>
        )}
        {state !== "asks" && (
          <>
            <Progress
              value={(100 * done) / names.length}
              aria-label={t.jobs.bulkProgress}
              color={failed.length > 0 ? "red" : undefined}
            />
            <Text size="sm" className="numeric" aria-live="polite">
              {t.jobs.bulkDone(done - failed.length, names.length, failed.length)}
            </Text>
          </>
        )}
        {failed.length > 0 && (
          <Alert color="red" variant="light" title={t.jobs.bulkFailed}>
            <ScrollArea.Autosize mah={180}>
              <List size="sm">
                {failed.map(({ name, problem }) => (
                  <List.Item key={name}>
                    <b>{name}</b>: {problem.detail} {problem.hint}
                  </List.Item>
                ))}
              </List>
            </ScrollArea.Autosize>
          </Alert>
        )}
        <Group justify="flex-end" gap="xs">
          {state !== "over" && (
            <Button variant="default" onClick={close}>
              {state === "runs" ? t.jobs.bulkStop : t.cancel}
            </Button>
          )}
          {state === "asks" && (
            <Button
              color={action === "shutdown" ? "red" : undefined}
              onClick={() => void run()}
              data-autofocus
            >
              {t.job[action]}
            </Button>
          )}
          {state === "over" && <Button onClick={close}>{t.close}</Button>}
        </Group>
      </Stack>
    </Modal>
  );
}
