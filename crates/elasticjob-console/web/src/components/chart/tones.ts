import type { RunState } from "../../api/types";

/** What a bar may be filled with; the colours are in chart.css. */
export type ChartTone = RunState | "plain" | "late";

export const colour = (tone: ChartTone) => `var(--chart-${tone})`;
