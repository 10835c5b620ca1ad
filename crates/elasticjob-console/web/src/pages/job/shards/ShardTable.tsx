import { ActionIcon, Group, Stack, Table, Text, Tooltip } from "@mantine/core";
import { useState } from "react";

import type { JobDetails, Shard } from "../../../api/types";
import { Badge } from "../../../components/Badge";
import { Icon } from "../../../components/Icon";
import { InstanceName } from "../../../components/InstanceName";
import { RequireRole } from "../../../components/RequireRole";
import { ScrollRegion } from "../../../components/ScrollRegion";
import { EmptyState } from "../../../components/states";
import { isJobDisabled, RunStateBadge, ShardStatusBadge } from "../../../components/statuses";
import { Timestamp } from "../../../components/Timestamp";
import { useText } from "../../../i18n";
import { useJobActions } from "../actions";
import { CancelDialog } from "../CancelDialog";
import { statusOf } from "./lanes";

export function ShardTable({ job, shards }: { job: JobDetails; shards: Shard[] }) {
  const t = useText();
  const actions = useJobActions(job.jobName);
  // Beside the rows, because the button of a shard disappears when it ends.
  const [cancelled, setCancelled] = useState<number | null>(null);
  const isOff = isJobDisabled(job.status, job.config.properties?.disabled === true);
  if (shards.length === 0)
    return (
      <EmptyState icon="info" title={t.shards.none}>
        {t.shards.noneAbout}
      </EmptyState>
    );
  return (
    // Many shards scroll here, so that what follows them stays in reach.
    <ScrollRegion label={t.shards.title} maxHeight="80vh">
      <Table miw={640} stickyHeader>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.shards.item}</Table.Th>
            <Table.Th>{t.shards.status}</Table.Th>
            <Table.Th>{t.shards.owner}</Table.Th>
            <Table.Th>{t.shards.lastRun}</Table.Th>
            <Table.Th w={90} ta="right">
              {t.shards.actions}
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shards.map((shard) => (
            <Table.Tr key={shard.item} data-shard-row={shard.item}>
              <Table.Td>
                <Text span fw={600} className="numeric">
                  {shard.item}
                </Text>
                {shard.parameter && (
                  <Text span size="sm" c="dimmed" ml={6} className="wrap">
                    {shard.parameter}
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <Stack gap={2} align="flex-start">
                  <ShardStatusBadge status={statusOf(shard, isOff)} />
                  {shard.running?.since && (
                    <Text size="xs" c="dimmed" component="div">
                      {t.shards.since} <Timestamp at={shard.running.since} isRelative />
                    </Text>
                  )}
                  <ShardBadges shard={shard} />
                </Stack>
              </Table.Td>
              <Table.Td>
                {shard.instanceId ? (
                  <Text size="sm" component="div">
                    <InstanceName id={shard.instanceId} known={job.instanceList} />
                  </Text>
                ) : (
                  <Text size="sm" c="dimmed">
                    {t.shards.unassigned}
                  </Text>
                )}
                {shard.instanceId && !shard.isOwnerOnline && (
                  <Text size="xs" c="var(--bad)">
                    {t.shards.ownerOffline}
                  </Text>
                )}
                {shard.failoverInstanceId && (
                  <Text size="xs" c="var(--warn)" component="div">
                    {t.shards.takenOver}{" "}
                    <InstanceName id={shard.failoverInstanceId} known={job.instanceList} />
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <LastRun shard={shard} />
              </Table.Td>
              <Table.Td>
                <Group gap={4} justify="flex-end" wrap="nowrap">
                  <ShardActions
                    shard={shard}
                    acts={actions}
                    onCancel={() => setCancelled(shard.item)}
                  />
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {cancelled !== null && (
        <CancelDialog
          job={job.jobName}
          request={{ shards: [cancelled] }}
          onClose={() => setCancelled(null)}
        />
      )}
    </ScrollRegion>
  );
}

function ShardBadges({ shard }: { shard: Shard }) {
  const t = useText();
  return (
    <>
      {shard.awaitsFailover && <Badge tone="bad">{t.shards.awaitsFailover}</Badge>}
      {shard.misfire && <Badge tone="warn">{t.shards.misfire}</Badge>}
      {shard.problem && (
        <Text size="xs" c="var(--bad)">
          {shard.problem}
        </Text>
      )}
    </>
  );
}

function LastRun({ shard }: { shard: Shard }) {
  const t = useText();
  const run = shard.lastRun;
  if (!run) {
    return (
      <Text size="sm" c="dimmed">
        –
      </Text>
    );
  }
  return (
    <Stack gap={2} align="flex-start">
      <RunStateBadge state={run.state} />
      <Text size="xs" c="dimmed" component="div">
        {run.dueAt && (
          <>
            {t.shards.due} <Timestamp at={run.dueAt} />
          </>
        )}
        {run.attempt > 1 && ` · ${t.shards.attempt(run.attempt)}`}
      </Text>
    </Stack>
  );
}

function ShardActions({
  shard,
  acts,
  onCancel,
}: {
  shard: Shard;
  acts: ReturnType<typeof useJobActions>;
  onCancel: () => void;
}) {
  const t = useText();
  const { item } = shard;
  const toggle = shard.disabled ? t.shards.enable(item) : t.shards.disable(item);
  return (
    <RequireRole minimum="operator">
      {(isRefused) => (
        <Group gap={4} wrap="nowrap">
          {shard.running && (
            <Tooltip label={t.shards.cancel(item)}>
              <ActionIcon
                variant="subtle"
                color="gray"
                c="dimmed"
                disabled={isRefused}
                aria-label={t.shards.cancel(item)}
                onClick={onCancel}
              >
                <Icon name="stop" />
              </ActionIcon>
            </Tooltip>
          )}
          <Tooltip label={t.shards.trigger(item)}>
            <ActionIcon
              variant="subtle"
              color="gray"
              c="dimmed"
              disabled={isRefused}
              aria-label={t.shards.trigger(item)}
              onClick={() => acts.trigger.mutate({ shards: [item] })}
            >
              <Icon name="play" />
            </ActionIcon>
          </Tooltip>
          <Tooltip label={toggle}>
            <ActionIcon
              variant="subtle"
              color="gray"
              c="dimmed"
              disabled={isRefused}
              aria-label={toggle}
              onClick={() => acts.shard.mutate({ item, enable: shard.disabled })}
            >
              <Icon name={shard.disabled ? "check" : "pause"} />
            </ActionIcon>
          </Tooltip>
        </Group>
      )}
    </RequireRole>
  );
}
