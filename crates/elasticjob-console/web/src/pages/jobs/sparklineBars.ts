import type { LastRun, RunState } from "../../api/types";

export const HEIGHT = 22;
const STEP = 5;
const WIDTH = 4;
const MIN_HEIGHT = 5;
/** Runs that did not succeed have a larger minimum height, so that they are visible. */
const MIN_HEIGHT_FAILED = 10;
/** Maximum number of bars. Fewer bars are aligned to the right, where new runs appear. */
export const MAX_BARS = 20;
export const TOTAL_WIDTH = MAX_BARS * STEP;

export interface Bar {
  runId: string;
  state: RunState;
  path: string;
}

/** One bar per run, oldest first. The height shows the duration, the shape the state. */
export function bars(runs: LastRun[]): Bar[] {
  const shown = runs.slice(0, MAX_BARS).reverse();
  const longest = Math.max(1, ...shown.map((run) => run.durationMs ?? 0));
  const first = MAX_BARS - shown.length;
  return shown.map((run, index) => {
    const x = (first + index) * STEP;
    // Square roots, so that one long run does not flatten the others.
    const share = run.durationMs === null ? 1 : Math.sqrt(Math.max(0, run.durationMs) / longest);
    const least = run.state === "done" ? MIN_HEIGHT : MIN_HEIGHT_FAILED;
    const height = Math.round(least + share * (HEIGHT - least));
    return { runId: run.runId, state: run.state, path: shape(run.state, x, height) };
  });
}

function shape(state: RunState, x: number, height: number): string {
  const top = HEIGHT - height;
  switch (state) {
    // A bar.
    case "done":
      return `M${x} ${HEIGHT}v-${height}h${WIDTH}v${height}z`;
    // A bar with a gap: a part is missing.
    case "incomplete":
      return `M${x} ${HEIGHT}v-${height - 6}h${WIDTH}v${height - 6}zM${x} ${top + 3}v-3h${WIDTH}v3z`;
    // A triangle that points down.
    case "failed":
      return `M${x - 0.5} ${top}h${WIDTH + 1}l-${(WIDTH + 1) / 2} ${height}z`;
    // A hollow bar.
    case "cancelled":
      return `M${x} ${HEIGHT}v-${height}h${WIDTH}v${height}zm1 -1v-${height - 2}h${WIDTH - 2}v${height - 2}z`;
    // A column of dots.
    case "running":
      return [0, 6, 12, 18].map((y) => `M${x} ${HEIGHT - y}v-${WIDTH}h${WIDTH}v${WIDTH}z`).join("");
  }
}

export function countByState(runs: LastRun[]): Record<RunState, number> {
  const counts = { done: 0, incomplete: 0, failed: 0, cancelled: 0, running: 0 };
  for (const run of runs.slice(0, MAX_BARS)) counts[run.state] += 1;
  return counts;
}

/** Formats a success rate. It shows 100 % only if no run failed. */
export function percent(permille: number): string {
  if (permille >= 1_000) return "100 %";
  return `${Math.min(99.9, permille / 10).toFixed(permille >= 950 ? 1 : 0)} %`;
}
