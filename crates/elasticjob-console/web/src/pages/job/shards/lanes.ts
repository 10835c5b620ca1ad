import type { Shard } from "../../../api/types";
import type { Tone } from "../../../components/Badge";

/** The instance in whose lane a shard is shown: the one that runs it, else its owner. */
export const laneOf = (shard: Shard): string | null =>
  shard.running?.instanceId ?? shard.failoverInstanceId ?? shard.instanceId;

/** Tone of a shard; the worst state wins. */
export function toneOf(shard: Shard): Tone {
  if (shard.problem || shard.awaitsFailover) return "bad";
  if (shard.disabled) return "off";
  if (shard.running) return "busy";
  if (shard.status === "SHARDING_FLAG" || shard.misfire) return "warn";
  if (!shard.isOwnerOnline) return "bad";
  return "ok";
}
