/** A cron of Quartz, field by field, as the builder holds it. */
export const FIELDS = ["second", "minute", "hour", "day", "month", "weekday", "year"] as const;
export type FieldName = (typeof FIELDS)[number];
export type Parts = Record<FieldName, string>;

export const EVERY_DAY: Parts = {
  second: "0",
  minute: "0",
  hour: "3",
  day: "*",
  month: "*",
  weekday: "?",
  year: "",
};

/** The expression of these fields. Day and weekday are never both said: Quartz wants a ? in one. */
export function assembled(parts: Parts): string {
  const said = { ...parts };
  if (said.weekday && said.weekday !== "?") {
    if (said.day === "*" || said.day === "") said.day = "?";
  } else {
    said.weekday = "?";
    if (said.day === "?" || said.day === "") said.day = "*";
  }
  const six = FIELDS.slice(0, 6).map(
    (field) => said[field].trim() || (field === "second" ? "0" : "*"),
  );
  return [...six, said.year.trim()].filter(Boolean).join(" ");
}

/** The fields of an expression; nothing if it has not six or seven. */
export function parted(expression: string): Parts | null {
  const words = expression.trim().split(/\s+/);
  if (words.length < 6 || words.length > 7) return null;
  return Object.fromEntries(FIELDS.map((field, index) => [field, words[index] ?? ""])) as Parts;
}

export const PRESETS: { name: string; expression: string }[] = [
  { name: "everyMinute", expression: "0 * * * * ?" },
  { name: "everyFive", expression: "0 0/5 * * * ?" },
  { name: "hourly", expression: "0 0 * * * ?" },
  { name: "nightly", expression: "0 0 3 * * ?" },
  { name: "workdays", expression: "0 30 8 ? * MON-FRI" },
  { name: "monthEnd", expression: "0 0 23 L * ?" },
];
