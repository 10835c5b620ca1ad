/** Distance from now in the largest fitting unit: “in 5 seconds”, “3 hours ago”. */
export function relativeTime(at: number, now: number, locale: string): string {
  const seconds = Math.round((at - now) / 1_000);
  const format = relativeOf(locale);
  const size = Math.abs(seconds);
  if (size < 60) return format.format(seconds, "second");
  if (size < 3_600) return format.format(Math.trunc(seconds / 60), "minute");
  if (size < 86_400) return format.format(Math.trunc(seconds / 3_600), "hour");
  return format.format(Math.trunc(seconds / 86_400), "day");
}

/** Formatters are cached because creating one takes longer than using it. */
const relatives = new Map<string, Intl.RelativeTimeFormat>();
const formats = new Map<string, Intl.DateTimeFormat>();
const days = new Map<string | undefined, Intl.DateTimeFormat>();
const zones = new Map<string, string | undefined>();

function memoize<Key, Made>(known: Map<Key, Made>, key: Key, make: () => Made): Made {
  if (!known.has(key)) known.set(key, make());
  return known.get(key) as Made;
}

const relativeOf = (locale: string) =>
  memoize(
    relatives,
    locale,
    () => new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" }),
  );

function formatOf(locale: string, zone: string | undefined, isLong: boolean) {
  return memoize(
    formats,
    `${locale} ${zone} ${isLong}`,
    () =>
      new Intl.DateTimeFormat(locale, {
        timeZone: zone,
        year: isLong ? "numeric" : undefined,
        month: isLong ? "2-digit" : undefined,
        day: isLong ? "2-digit" : undefined,
        hour: "2-digit",
        minute: "2-digit",
        second: "2-digit",
        hourCycle: "h23",
      }),
  );
}

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

export function timeOfDay(at: string | number, locale: string, zone?: string): string {
  return formatOf(locale, zone, false).format(new Date(at));
}

export function dateTime(at: string | number, locale: string, zone?: string): string {
  return formatOf(locale, zone, true).format(new Date(at));
}

/** The time of day; with the date if it is not today. */
export function shortTime(at: string | number, locale: string, now: number, zone?: string): string {
  const format = memoize(days, zone, () => new Intl.DateTimeFormat("en-CA", { timeZone: zone }));
  const day = (when: string | number) => format.format(new Date(when));
  return day(at) === day(now) ? timeOfDay(at, locale, zone) : dateTime(at, locale, zone);
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
