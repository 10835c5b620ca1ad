import type { RunState } from "../../api/types";

/** Names of the bar colours in chart.css. */
export type ChartTone = RunState | "plain" | "late";

export const colour = (tone: ChartTone) => `var(--chart-${tone})`;
