/** Distance from now: “in 5 seconds”, “3 hours ago”. Hours up to two days, because “in 1 day” would be off by hours. */
export function relativeTime(at: number, now: number, locale: string): string {
  const seconds = Math.round((at - now) / 1_000);
  const format = relativeOf(locale);
  const size = Math.abs(seconds);
  if (size < 60) return format.format(seconds, "second");
  if (size < 3_600) return format.format(Math.trunc(seconds / 60), "minute");
  if (size < 2 * 86_400) return format.format(Math.trunc(seconds / 3_600), "hour");
  return format.format(Math.trunc(seconds / 86_400), "day");
}

/** Formatters are cached because creating one takes longer than using it. */
const relatives = new Map<string, Intl.RelativeTimeFormat>();
const formats = new Map<string | undefined, Intl.DateTimeFormat>();
const zones = new Map<string, string | undefined>();

function memoize<Key, Made>(known: Map<Key, Made>, key: Key, make: () => Made): Made {
  if (!known.has(key)) known.set(key, make());
  return known.get(key) as Made;
}

const relativeOf = (locale: string) =>
  memoize(
    relatives,
    locale,
    // Always a number: words such as “tomorrow” name a calendar day, and this is a distance.
    () => new Intl.RelativeTimeFormat(locale, { numeric: "always", style: "short" }),
  );

const formatOf = (zone: string | undefined) =>
  memoize(
    formats,
    zone,
    () =>
      new Intl.DateTimeFormat("en", {
        timeZone: zone,
        ...{ year: "numeric", month: "2-digit", day: "2-digit" },
        ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
      }),
  );

/** The IANA name of a zone, also for `GMT+8:00` as Java ElasticJob writes it; undefined if the browser does not know it. */
export function toIanaZone(zone: string | null | undefined): string | undefined {
  if (!zone) return undefined;
  return memoize(zones, zone, () => {
    const name = offsetToIana(zone) ?? zone;
    try {
      new Intl.DateTimeFormat("en", { timeZone: name });
      return name;
    } catch {
      return undefined;
    }
  });
}

function offsetToIana(zone: string): string | undefined {
  const [, sign, hours, minutes = "00"] = /^GMT([+-])(\d{1,2}):?(\d{2})?$/.exec(zone) ?? [];
  if (!sign || !hours) return undefined;
  // Every browser knows Etc/GMT names for whole hours; their signs are inverted.
  if (minutes === "00") return `Etc/GMT${sign === "+" ? "-" : "+"}${Number(hours)}`;
  return `${sign}${hours.padStart(2, "0")}:${minutes}`;
}

/** 2026-11-18 09:54:05, the same in every language; in the viewer's time zone unless another is given. */
export function dateTime(at: string | number, zone?: string): string {
  const parts = formatOf(zone).formatToParts(new Date(at));
  const get = (type: string) => parts.find((part) => part.type === type)?.value ?? "";
  const day = [get("year"), get("month"), get("day")].join("-");
  return `${day} ${[get("hour"), get("minute"), get("second")].join(":")}`;
}

const DAY_LENGTH = "2026-11-18".length;

export const timeOfDay = (at: string | number, zone?: string): string =>
  dateTime(at, zone).slice(DAY_LENGTH + 1);

/** The time of day; with the date if it is not today. */
export function shortTime(at: string | number, now: number, zone?: string): string {
  const text = dateTime(at, zone);
  const isToday = text.slice(0, DAY_LENGTH) === dateTime(now, zone).slice(0, DAY_LENGTH);
  return isToday ? text.slice(DAY_LENGTH + 1) : text;
}

const here = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const viewerZone = () => here;

/** A duration such as 350 ms, 4.2 s or 3 min 20 s. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (milliseconds < 10_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
