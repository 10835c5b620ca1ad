import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { useTriggers } from "../../../api/queries";
import type { JobDetails, Trigger } from "../../../api/types";
import { useRegistry } from "../../../app/registry";
import { Badge, type Tone } from "../../../components/Badge";
import { Card } from "../../../components/Card";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { type Column, DataTable } from "../../../components/DataTable";
import { useNow } from "../../../components/now";
import { RequireRole } from "../../../components/RequireRole";
import { Timestamp } from "../../../components/Timestamp";
import { formatDuration } from "../../../components/time";
import { useText } from "../../../i18n";
import { useJobActions } from "../actions";
import { pendingQueueTime } from "./queueTime";
import { TriggerShards } from "./TriggerShards";

const TONES: Record<Trigger["state"], Tone> = {
  pending: "warn",
  running: "busy",
  ended: "off",
  unreadable: "bad",
};

/** Triggers that have not ended. Hidden without any. */
export function TriggersCard({ job }: { job: JobDetails }) {
  const t = useText();
  const [chosen, setChosen] = useState<Trigger | null>(null);
  const triggers = useTriggers(useRegistry(), job.jobName);
  const open = (triggers.data?.items ?? []).filter(({ state }) => state !== "ended");
  if (open.length === 0) return null;
  const columns: Column<Trigger>[] = [
    { header: t.triggers.requested, cell: (trigger) => <Timestamp at={trigger.requestedAt} /> },
    {
      header: t.triggers.state,
      isTitle: true,
      cell: ({ state }) => (
        <Badge tone={TONES[state]} isAlive={state === "running"}>
          {t.triggers.states[state] ?? state}
        </Badge>
      ),
    },
    {
      header: t.triggers.by,
      cell: ({ by, state }) => by ?? (state === "unreadable" ? "–" : t.triggers.java),
    },
    { header: t.triggers.queueTime, cell: (trigger) => <QueueTime trigger={trigger} /> },
    { header: t.triggers.shards, cell: (trigger) => <Counts trigger={trigger} /> },
    {
      header: t.triggers.parameter,
      isWide: true,
      className: "wrap",
      cell: ({ parameter, problem }) =>
        problem ? (
          <Text size="sm" c="var(--bad)">
            {t.triggers.unreadable} {problem}
          </Text>
        ) : (
          parameter && <span className="mono">{parameter}</span>
        ),
    },
    {
      header: t.triggers.actions,
      isActions: true,
      cell: (trigger) =>
        trigger.state !== "unreadable" &&
        trigger.counts?.pending !== 0 && (
          <Group justify="flex-end">
            <RequireRole minimum="operator">
              {(isRefused) => (
                <Button
                  size="compact-sm"
                  variant="default"
                  disabled={isRefused}
                  onClick={() => setChosen(trigger)}
                >
                  {t.triggers.withdraw}
                </Button>
              )}
            </RequireRole>
          </Group>
        ),
    },
  ];
  return (
    <Card title={t.triggers.title} isFlush>
      <DataTable
        label={t.triggers.title}
        columns={columns}
        rows={open}
        keyOf={({ runId }) => runId}
        attributes={({ runId }) => ({ "data-trigger": runId })}
        detail={({ runId }) => <TriggerShards job={job.jobName} runId={runId} />}
      />
      {chosen && (
        <WithdrawDialog name={job.jobName} trigger={chosen} onClose={() => setChosen(null)} />
      )}
    </Card>
  );
}

function QueueTime({ trigger }: { trigger: Trigger }) {
  const waiting = pendingQueueTime(trigger, useNow());
  return waiting === null ? "–" : formatDuration(waiting);
}

/** For example “2 pending, 1 running”. */
function Counts({ trigger }: { trigger: Trigger }) {
  const t = useText();
  if (trigger.state === "unreadable") return "–";
  if (!trigger.counts) return t.triggers.tooMany;
  const { timedOut, ...counts } = trigger.counts;
  return Object.entries({ ...counts, timed_out: timedOut })
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${t.triggers.states[state] ?? state}`)
    .join(", ");
}

function WithdrawDialog({
  name,
  trigger,
  onClose,
}: {
  name: string;
  trigger: Trigger;
  onClose: () => void;
}) {
  const t = useText();
  const { withdraw } = useJobActions(name);
  return (
    <ConfirmDialog
      title={t.triggers.withdrawTitle(name)}
      consequences={t.triggers.withdrawConsequences(trigger.counts?.pending ?? null)}
      button={t.triggers.withdraw}
      isBusy={withdraw.isPending}
      onConfirm={() => withdraw.mutate({ runId: trigger.runId }, { onSuccess: onClose })}
      onClose={onClose}
    />
  );
}
