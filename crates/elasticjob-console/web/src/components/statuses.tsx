import type { JobStatus, LastRunState, ShardStatus } from "../api/types";
import { useText } from "../i18n";
import { Badge, type Tone } from "./Badge";

export const JOB_TONES: Record<JobStatus, Tone> = {
  OK: "ok",
  DISABLED: "off",
  CRASHED: "bad",
  SHARDING_FLAG: "warn",
};

const SHARD_TONES: Record<ShardStatus, Tone> = {
  PENDING: "ok",
  RUNNING: "busy",
  DISABLED: "off",
  SHARDING_FLAG: "warn",
};

const RUN_TONES: Record<LastRunState, Tone> = {
  FRESH: "off",
  RUNNING: "busy",
  DONE: "ok",
  FAILED: "bad",
  LOST: "bad",
};

export function JobStatusBadge({ status }: { status: JobStatus }) {
  return <Badge tone={JOB_TONES[status]}>{useText().jobStatus[status]}</Badge>;
}

export function ShardStatusBadge({ status }: { status: ShardStatus }) {
  return (
    <Badge tone={SHARD_TONES[status]} isAlive={status === "RUNNING"}>
      {useText().shardStatus[status]}
    </Badge>
  );
}

export function RunStateBadge({ state }: { state: LastRunState }) {
  return (
    <Badge tone={RUN_TONES[state]} isAlive={state === "RUNNING"}>
      {useText().runState[state]}
    </Badge>
  );
}
