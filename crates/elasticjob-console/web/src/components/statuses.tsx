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

/** Whether a job does not run because it is disabled. Without an instance, only its configuration says so. */
export const isJobDisabled = (status: JobStatus, isDisabledInConfig: boolean) =>
  status === "DISABLED" || (status === "CRASHED" && isDisabledInConfig);

/** The status of a job. If it is disabled, that it has no instance is no fault. */
export function JobStatusBadge({
  status,
  isDisabledInConfig = false,
}: {
  status: JobStatus;
  isDisabledInConfig?: boolean;
}) {
  const t = useText();
  const isOff = isJobDisabled(status, isDisabledInConfig);
  return (
    <>
      {isOff && <Badge tone="off">{t.jobStatus.DISABLED}</Badge>}
      {status !== "DISABLED" && (
        <Badge tone={isOff ? "off" : JOB_TONES[status]}>{t.jobStatus[status]}</Badge>
      )}
    </>
  );
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
