import { Button, Chip, Group, List, Modal, Radio, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { SHARDS_PER_PAGE, useShards } from "../../api/queries";
import type { JobDetails, TriggerRequest, TriggerResponse } from "../../api/types";
import { useRegistry } from "../../app/registry";
import { InstanceName } from "../../components/InstanceName";
import { Pager } from "../../components/Pager";
import { fromLocalInput, toLocalInput } from "../../components/timeRange";
import { useText } from "../../i18n";
import { useJobActions } from "./actions";
import { laneOf } from "./shards/lanes";

const toNumbers = (items: string[]) => items.map(Number).sort((a, b) => a - b);

/** Triggers all or selected shards, with an optional parameter and logical time. */
export function TriggerDialog({
  job,
  initial = {},
  note,
  onTriggered,
  onClose,
}: {
  job: JobDetails;
  /** Initial values. */
  initial?: TriggerRequest;
  /** Remark on the initial values. */
  note?: string;
  onTriggered?: (response: TriggerResponse) => void;
  onClose: () => void;
}) {
  const t = useText();
  const registry = useRegistry();
  const [page, setPage] = useState(1);
  const shards = useShards(registry, job.jobName, page);
  const { trigger } = useJobActions(job.jobName);
  const [scope, setScope] = useState<"all" | "some">(initial.shards ? "some" : "all");
  const [chosen, setChosen] = useState<string[]>(initial.shards?.map(String) ?? []);
  const [parameter, setParameter] = useState(initial.parameter ?? "");
  const initialTime = initial.at ? toLocalInput(initial.at, "second") : "";
  const [logicalTime, setLogicalTime] = useState(initialTime);
  const hasJava = job.instanceList.some((each) => each.language === "java");
  const isRustOnly = scope === "some" || parameter !== "" || logicalTime !== "";

  // Owners of the chosen shards; those of another page of shards are not known here.
  const owners = new Set(
    shards.data?.items.filter(({ item }) => chosen.includes(String(item))).map(laneOf),
  );
  const runners =
    scope === "all"
      ? job.instanceList
      : job.instanceList.filter(({ instanceId }) => owners.has(instanceId));

  const submit = () =>
    trigger.mutate(
      {
        shards: scope === "some" ? toNumbers(chosen) : undefined,
        parameter: parameter || undefined,
        // An unchanged time is sent as it was, because the input drops milliseconds.
        at: logicalTime === initialTime ? initial.at : fromLocalInput(logicalTime) || undefined,
      },
      {
        onSuccess: (done) => {
          onClose();
          onTriggered?.(done);
        },
      },
    );

  return (
    <Modal
      opened
      onClose={onClose}
      title={t.job.triggerTitle(job.jobName)}
      closeButtonProps={{ "aria-label": t.close }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Stack gap="md">
          {note && (
            <Text size="sm" c="dimmed">
              {note}
            </Text>
          )}
          <Radio.Group
            label={t.job.triggerShards}
            value={scope}
            onChange={(value) => setScope(value as "all" | "some")}
          >
            <Group mt={6}>
              <Radio value="all" label={t.job.triggerAll(job.shardingTotalCount ?? 0)} />
              <Radio value="some" label={t.job.triggerChosen} />
            </Group>
          </Radio.Group>
          {scope === "some" && (
            <Chip.Group multiple value={chosen} onChange={setChosen}>
              <Group gap={6} role="group" aria-label={t.job.triggerChosen}>
                {(shards.data?.items ?? []).map((shard) => (
                  <Chip key={shard.item} value={String(shard.item)} size="xs">
                    {shard.item}
                    {shard.parameter ? ` · ${shard.parameter}` : ""}
                  </Chip>
                ))}
              </Group>
            </Chip.Group>
          )}
          {scope === "some" && (shards.data?.total ?? 0) > SHARDS_PER_PAGE && (
            <Pager
              page={page}
              pageSize={SHARDS_PER_PAGE}
              total={shards.data?.total ?? 0}
              onPage={setPage}
            />
          )}
          <TextInput
            label={t.job.triggerParameter}
            description={t.job.triggerParameterAbout}
            value={parameter}
            onChange={(event) => setParameter(event.currentTarget.value)}
            autoComplete="off"
          />
          <TextInput
            type="datetime-local"
            step={1}
            label={t.job.triggerLogicalTime}
            description={t.job.triggerLogicalTimeAbout}
            value={logicalTime}
            onChange={(event) => setLogicalTime(event.currentTarget.value)}
          />
          <div>
            <Text size="sm">{t.consequences}</Text>
            <List size="sm" mt={4}>
              <List.Item>
                {job.instanceList.length === 0
                  ? t.job.triggerNoInstance
                  : scope === "some"
                    ? t.job.triggerConsequenceChosen(toNumbers(chosen))
                    : t.job.triggerConsequence(job.instanceList.length)}
              </List.Item>
              {runners.length > 0 && runners.length <= 6 && (
                <List.Item>
                  {runners.map((each, index) => (
                    <span key={each.instanceId}>
                      {index > 0 && <>, </>}
                      <InstanceName id={each.instanceId} known={job.instanceList} />
                    </span>
                  ))}
                </List.Item>
              )}
              {isRustOnly && hasJava && <List.Item>{t.job.triggerJava}</List.Item>}
            </List>
          </div>
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {t.cancel}
            </Button>
            <Button
              type="submit"
              loading={trigger.isPending}
              disabled={scope === "some" && chosen.length === 0}
              data-autofocus
            >
              {t.job.trigger}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
