/** How far back one can look with one choice. */
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

/** From when until when: what was chosen, else so far back, by the minute so that a link stays the same for a while. */
export function toTimeSpan(
  chosen: { range?: string; from?: string; to?: string },
  defaultRange: RangeName,
  now: number,
): { from?: string; to?: string } {
  if (chosen.from || chosen.to) {
    return { ...(chosen.from && { from: chosen.from }), ...(chosen.to && { to: chosen.to }) };
  }
  const range = isRange(chosen.range) ? chosen.range : defaultRange;
  // Where less is usual, everything has to be said.
  if (range === "all") return defaultRange === "all" ? {} : { from: new Date(0).toISOString() };
  return { from: new Date(Math.floor(now / MINUTE) * MINUTE - RANGES[range]).toISOString() };
}

/** An instant as a field for dates and times takes it: by the reader's clock. */
export function toLocalInput(at: string, to: "minute" | "second" = "minute"): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const local = new Date(date.getTime() - date.getTimezoneOffset() * MINUTE);
  return local.toISOString().slice(0, to === "minute" ? 16 : 19);
}

/** And back; nothing if it is no time. */
export function fromLocalInput(local: string): string {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
