import type { Outcome } from "../../api/history";

/** What a bar may be filled with; the colours are in chart.css. */
export type ChartTone = Outcome | "plain" | "late";

export const colour = (tone: ChartTone) => `var(--chart-${tone})`;
