import { dateTime, timeOfDay } from "../time";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const STEPS = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440].map((step) => step * MINUTE);

/** A label below a bar. */
export interface Tick {
  index: number;
  label: string;
}

/** Ticks at round local times, at most `most`. */
export function timeTicks(from: number, bucketMs: number, count: number, most: number): Tick[] {
  const span = bucketMs * count;
  const step = STEPS.find((each) => each >= bucketMs && span / each <= most) ?? 24 * HOUR;
  // 11-18 or 09:54, from 2026-11-18 09:54:05.
  const format = (at: number) =>
    step >= 24 * HOUR ? dateTime(at).slice(5, 10) : timeOfDay(at).slice(0, 5);
  const ticks: Tick[] = [];
  let previous = -1;
  for (let index = 0; index < count; index += 1) {
    const at = from + index * bucketMs;
    // The first bucket of each step, because a bucket may be longer than the zone offset.
    const local = at - new Date(at).getTimezoneOffset() * MINUTE;
    const stepIndex = Math.floor(local / step);
    const isFirst = previous !== -1 ? stepIndex !== previous : local % step === 0;
    if (isFirst) ticks.push({ index, label: format(at) });
    previous = stepIndex;
  }
  return ticks;
}

/** Evenly spaced ticks, at most `most`; the last bar always has one. */
export function evenTicks(count: number, most: number, label: (index: number) => string): Tick[] {
  if (count === 0) return [];
  const step = Math.max(1, Math.ceil(count / most));
  const ticks: Tick[] = [];
  for (let index = (count - 1) % step; index < count; index += step) {
    ticks.push({ index, label: label(index) });
  }
  return ticks;
}
