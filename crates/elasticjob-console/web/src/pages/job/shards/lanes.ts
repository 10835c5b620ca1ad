import type { Shard } from "../../../api/types";
import type { Tone } from "../../../components/Badge";

/** Where a shard is: with whoever runs it, else with whom it was dealt to. */
export const laneOf = (shard: Shard): string | null =>
  shard.running?.instanceId ?? shard.failoverInstanceId ?? shard.instanceId;

/** How a shard stands, the worst first. */
export function toneOf(shard: Shard): Tone {
  if (shard.problem || shard.waitsForFailover) return "bad";
  if (shard.disabled) return "off";
  if (shard.running) return "busy";
  if (shard.status === "SHARDING_FLAG" || shard.misfire) return "warn";
  if (!shard.isOwnerOnline) return "bad";
  return "ok";
}
