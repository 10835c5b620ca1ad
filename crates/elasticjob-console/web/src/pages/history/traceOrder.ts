import type { Trace } from "../../api/types";

/** Position of a state in the life of a task; every state that is not listed ends it. */
const STEPS: Record<string, number> = { TASK_STAGING: 0, TASK_RUNNING: 1 };
const LAST_STEP = 2;

/** Sorts status changes from newest to oldest; of those with the same time, the effect is above its cause. */
export const newestFirst = (traces: Trace[]): Trace[] =>
  [...traces].sort(
    (a, b) => timeOf(b) - timeOf(a) || stepOf(b) - stepOf(a) || a.taskId.localeCompare(b.taskId),
  );

const timeOf = ({ creationTime }: Trace) => (creationTime ? Date.parse(creationTime) : 0);
const stepOf = ({ state }: Trace) => STEPS[state] ?? LAST_STEP;
