/** Predefined time ranges (ms). */
export const RANGES = {
  "15m": 15 * 60_000,
  "1h": 3_600_000,
  "24h": 24 * 3_600_000,
  "7d": 7 * 24 * 3_600_000,
  "30d": 30 * 24 * 3_600_000,
  all: Infinity,
} as const;

export type RangeName = keyof typeof RANGES;

const MINUTE = 60_000;

export const isRange = (text: string | undefined): text is RangeName =>
  text !== undefined && text in RANGES;

/** The chosen time span, or the range before now, rounded to the minute so that links stay stable. */
export function toTimeSpan(
  chosen: { range?: string; from?: string; to?: string },
  defaultRange: RangeName,
  now: number,
): { from?: string; to?: string } {
  if (chosen.from || chosen.to) {
    return { ...(chosen.from && { from: chosen.from }), ...(chosen.to && { to: chosen.to }) };
  }
  const range = isRange(chosen.range) ? chosen.range : defaultRange;
  // If the server's default is a shorter range, "all" needs an explicit start.
  if (range === "all") return defaultRange === "all" ? {} : { from: new Date(0).toISOString() };
  return { from: new Date(Math.floor(now / MINUTE) * MINUTE - RANGES[range]).toISOString() };
}

/** An instant as the value of a datetime-local input, in the viewer's time zone. */
export function toLocalInput(at: string, to: "minute" | "second" = "minute"): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const local = new Date(date.getTime() - date.getTimezoneOffset() * MINUTE);
  return local.toISOString().slice(0, to === "minute" ? 16 : 19);
}

/** The instant of a datetime-local value; empty if it is invalid. */
export function fromLocalInput(local: string): string {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
