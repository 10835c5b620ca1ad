import type { Shard, ShardStatus } from "../../../api/types";
import type { Tone } from "../../../components/Badge";

/** The instance in whose lane a shard is shown: the one that runs it, else its owner. */
export const laneOf = (shard: Shard): string | null =>
  shard.running?.instanceId ?? shard.failoverInstanceId ?? shard.instanceId;

/** Status of a shard; an idle shard of a disabled job is not ready to run. */
export const statusOf = (shard: Shard, isJobDisabled: boolean): ShardStatus =>
  isJobDisabled && shard.status !== "RUNNING" ? "DISABLED" : shard.status;

/** Tone of a shard; the worst state wins. */
export function toneOf(shard: Shard, isJobDisabled: boolean): Tone {
  if (shard.problem || shard.awaitsFailover) return "bad";
  if (shard.disabled) return "off";
  if (shard.running) return "busy";
  if (isJobDisabled) return "off";
  if (shard.status === "SHARDING_FLAG" || shard.misfire) return "warn";
  if (!shard.isOwnerOnline) return "bad";
  return "ok";
}
