/** The fields of a Quartz cron expression. */
export const FIELDS = ["second", "minute", "hour", "day", "month", "weekday", "year"] as const;
export type FieldName = (typeof FIELDS)[number];
export type CronFields = Record<FieldName, string>;

export const EVERY_DAY: CronFields = {
  second: "0",
  minute: "0",
  hour: "3",
  day: "*",
  month: "*",
  weekday: "?",
  year: "",
};

/** Joins the fields. Quartz requires a ? for either the day or the weekday. */
export function joinFields(parts: CronFields): string {
  const fields = { ...parts };
  if (fields.weekday && fields.weekday !== "?") {
    if (fields.day === "*" || fields.day === "") fields.day = "?";
  } else {
    fields.weekday = "?";
    if (fields.day === "?" || fields.day === "") fields.day = "*";
  }
  const six = FIELDS.slice(0, 6).map(
    (field) => fields[field].trim() || (field === "second" ? "0" : "*"),
  );
  return [...six, fields.year.trim()].filter(Boolean).join(" ");
}

/** Splits an expression; null if it does not have six or seven fields. */
export function splitFields(expression: string): CronFields | null {
  const words = expression.trim().split(/\s+/);
  if (words.length < 6 || words.length > 7) return null;
  return Object.fromEntries(
    FIELDS.map((field, index) => [field, words[index] ?? ""]),
  ) as CronFields;
}

export const PRESETS: { name: string; expression: string }[] = [
  { name: "everyMinute", expression: "0 * * * * ?" },
  { name: "everyFive", expression: "0 0/5 * * * ?" },
  { name: "hourly", expression: "0 0 * * * ?" },
  { name: "nightly", expression: "0 0 3 * * ?" },
  { name: "workdays", expression: "0 30 8 ? * MON-FRI" },
  { name: "monthEnd", expression: "0 0 23 L * ?" },
];
