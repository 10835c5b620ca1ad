import type { Trigger } from "../../../api/types";

const elapsed = (from: string, to: number) => Math.max(0, to - new Date(from).getTime());

/** How long a trigger has been waiting at `now`, in ms; null once a shard has started. */
export function pendingQueueTime(trigger: Trigger, now: number): number | null {
  if (trigger.state !== "pending" || !trigger.requestedAt) return null;
  return elapsed(trigger.requestedAt, now);
}

/** How long a triggered run waited until its first shard started, in ms; null if that is not known. */
export function runQueueTime(
  trigger: Pick<Trigger, "requestedAt">,
  run: { startedAt: string | null },
): number | null {
  if (!trigger.requestedAt || !run.startedAt) return null;
  return elapsed(trigger.requestedAt, new Date(run.startedAt).getTime());
}
