import { plural, type Texts } from "./texts";

/** English: help, and what is wrong. */
export const help = {
  doctor: {
    about: "Looks at the registry and what is stored in it for what commonly goes wrong.",
    healthy: "Nothing to do",
    problems: (count: number) => plural(count, "problem"),
    again: "Look again",
    says: (_check: string, _isProblem: boolean, message: string) => message,
    checks: {
      server: "server",
      access: "access",
      clock: "clock",
      stale: "left behind",
      job: "job",
    },
  },
  help: {
    about: "Crons, words and keys.",
    cron: "Cron",
    presets: {
      everyMinute: "every minute",
      everyFive: "every 5 minutes",
      hourly: "every hour",
      nightly: "daily at 3",
      workdays: "workdays at 8:30",
      monthEnd: "last day of the month",
    } as Texts,
    expression: "Expression",
    zone: "Time zone",
    fields: {
      second: "Second",
      minute: "Minute",
      hour: "Hour",
      day: "Day",
      month: "Month",
      weekday: "Weekday",
      year: "Year",
    },
    ranges: {
      second: "0–59",
      minute: "0–59",
      hour: "0–23",
      day: "1–31 L W ?",
      month: "1–12 JAN",
      weekday: "1–7 SUN ?",
      year: "optional",
    },
    signs:
      "* every · a,b several · a-b from to · a/n every n from a · L last · W nearest workday · MON#2 second Monday · ? not said",
    wrong: "This is no cron yet",
    nextTen: "The next ten times",
    statuses: "What a status means",
    statusAbout: {
      OK: "Instances are there, shards are dealt; it runs when due.",
      DISABLED: "Somebody switched it off, on every server or in its configuration.",
      SHARDING_FLAG: "Shards are to be dealt anew, at the next fire.",
      CRASHED: "No instance is there: nobody runs it.",
    },
    words: "Words",
    glossary: [
      ["Shard", "– a part of a job; each is run by one instance at a time."],
      ["Instance", "– a program that joined the registry; a server can have several."],
      ["Failover", "– the shard of an instance that died is run by another, at once."],
      ["Misfire", "– a shard was due while it still ran; it runs once more right after."],
      ["Trigger", "– run now, beside the schedule."],
    ] as [string, string][],
    more: "More",
    keys: "Keys: press",
    api: "The API behind these pages",
  },
};
