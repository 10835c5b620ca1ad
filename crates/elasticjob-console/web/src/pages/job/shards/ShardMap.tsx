import { Group, Text, Tooltip } from "@mantine/core";

import type { Instance, JobDetails, Shard } from "../../../api/types";
import { Icon } from "../../../components/Icon";
import { InstanceName } from "../../../components/InstanceName";
import { EmptyState } from "../../../components/states";
import { isJobDisabled } from "../../../components/statuses";
import { useText } from "../../../i18n";
import { laneOf, statusOf, toneOf } from "./lanes";
import classes from "./ShardMap.module.css";

/** Shard assignment with one lane per instance. When an instance dies, its shards move to other lanes. */
export function ShardMap({ job, shards }: { job: JobDetails; shards: Shard[] }) {
  const t = useText();
  if (shards.length === 0 && job.instanceList.length === 0) {
    return (
      <EmptyState icon="instance" title={t.shards.noInstance}>
        {t.shards.noInstanceAbout}
      </EmptyState>
    );
  }
  const isOff = isJobDisabled(job.status, job.config.properties?.disabled === true);
  const online = new Set(job.instanceList.map((each) => each.instanceId));
  const unassigned = shards.filter((shard) => !online.has(laneOf(shard) ?? ""));
  return (
    <div className={classes.lanes}>
      {unassigned.length > 0 && (
        <div className={classes.lane} data-unassigned={isOff ? "disabled" : "lost"}>
          <div className={classes.instance}>
            <Text size="sm" fw={600} c={isOff ? undefined : "var(--bad)"}>
              {t.shards.unassigned}
            </Text>
            <Text size="xs" c="dimmed">
              {isOff ? t.shards.unassignedDisabled : t.shards.unassignedAbout}
            </Text>
          </div>
          <Chips shards={unassigned} isOff={isOff} />
        </div>
      )}
      {job.instanceList.map((instance) => (
        <Lane
          key={instance.instanceId}
          instance={instance}
          job={job}
          shards={shards.filter((shard) => laneOf(shard) === instance.instanceId)}
        />
      ))}
      <Legend />
    </div>
  );
}

function Lane({ instance, job, shards }: { instance: Instance; job: JobDetails; shards: Shard[] }) {
  const t = useText();
  const isOff = isJobDisabled(job.status, job.config.properties?.disabled === true);
  return (
    <div className={classes.lane} data-instance={instance.instanceId}>
      <div className={classes.instance}>
        <Group gap={6} wrap="nowrap">
          <Text size="sm" fw={600} component="div">
            <InstanceName id={instance.instanceId} known={job.instanceList} />
          </Text>
          {job.leader === instance.instanceId && (
            <Tooltip label={t.shards.leaderAbout}>
              <span className={classes.leader}>
                <Icon name="crown" size={13} />
                {t.shards.leader}
              </span>
            </Tooltip>
          )}
        </Group>
        <Text size="xs" c="dimmed">
          {instance.serverIp}
          {instance.language && ` · ${t.languages[instance.language]}`}
        </Text>
      </div>
      {shards.length > 0 ? (
        <Chips shards={shards} isOff={isOff} />
      ) : (
        <Text size="xs" c="dimmed">
          {t.shards.noneHere}
        </Text>
      )}
    </div>
  );
}

function Chips({ shards, isOff }: { shards: Shard[]; isOff: boolean }) {
  const t = useText();
  return (
    <div className={classes.chips}>
      {shards.map((shard) => {
        const label = t.shards.label(
          shard.item,
          t.shardStatus[statusOf(shard, isOff)],
          shard.parameter,
        );
        return (
          <Tooltip key={shard.item} label={label}>
            <span
              className={classes.chip}
              data-tone={toneOf(shard, isOff)}
              data-shard={shard.item}
              role="img"
              aria-label={label}
            >
              {shard.item}
            </span>
          </Tooltip>
        );
      })}
    </div>
  );
}

function Legend() {
  const t = useText();
  return (
    <Group gap="md" mt={4} aria-hidden="true">
      {(["ok", "busy", "warn", "bad", "off"] as const).map((tone) => (
        <Group gap={6} key={tone}>
          <span className={classes.swatch} data-tone={tone} />
          <Text size="xs" c="dimmed">
            {t.shards.tones[tone]}
          </Text>
        </Group>
      ))}
    </Group>
  );
}
