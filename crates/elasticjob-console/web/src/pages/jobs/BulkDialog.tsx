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

import { request } from "../../api/client";
import { toProblem } from "../../api/problem";
import { queryKeys, registryPath } from "../../api/queries";
import type { BulkAction, BulkResult } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { DANGER } from "../../components/ConfirmDialog";
import { useText } from "../../i18n";

/** Jobs per request. After each request the progress is shown and the user can stop. */
const BATCH_SIZE = 20;

/** Applies an action to many jobs, with progress and a list of failures. */
export function BulkDialog({
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
  const [failed, setFailed] = useState<{ name: string; reason: string }[]>([]);
  const [state, setState] = useState<"asks" | "runs" | "over">("asks");
  const isStopped = useRef(false);

  const run = async () => {
    setState("runs");
    for (let from = 0; from < names.length && !isStopped.current; from += BATCH_SIZE) {
      const jobs = names.slice(from, from + BATCH_SIZE);
      const failedItems = await request<BulkResult>("POST", `${registryPath(registry)}/bulk`, {
        action,
        jobs,
      })
        .then(({ items }) => items.filter(({ problem }) => problem !== null))
        // It is unknown which of them were done, so all are reported as failed.
        .catch((error: unknown) => jobs.map((jobName) => ({ jobName, problem: toProblem(error) })));
      const failures = failedItems.map(({ jobName, problem }) => ({
        name: jobName,
        reason: [problem?.detail, problem?.hint].filter(Boolean).join(" "),
      }));
      setFailed((before) => [...before, ...failures]);
      setDone(from + jobs.length);
    }
    setState("over");
    void client.invalidateQueries({ queryKey: queryKeys.of(registry) });
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
            <Text size="sm">{t.jobs.bulkConsequences[action]}</Text>
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
                {failed.map(({ name, reason }) => (
                  <List.Item key={name}>
                    <b>{name}</b>: {reason}
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
              color={action === "shutdown" ? DANGER : undefined}
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
