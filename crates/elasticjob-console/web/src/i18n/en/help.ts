import { plural, type Texts } from "./texts";

/** English: doctor and help. */
export const help = {
  doctor: {
    about: "Checks the registry and its data for common problems.",
    noProblems: "No problems found",
    problems: (count: number) => plural(count, "problem"),
    runAgain: "Check again",
    describe: (_check: string, _isProblem: boolean, message: string) => message,
    checks: {
      server: "server",
      access: "access",
      clock: "clock",
      session: "sessions",
      stale: "stale data",
      job: "job",
    },
  },
  help: {
    about: "Cron expressions, glossary and keyboard shortcuts.",
    cron: "Cron expression",
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
    syntax:
      "* every · a,b list · a-b range · a/n every n starting at a · L last · W nearest weekday · MON#2 second Monday · ? unspecified",
    invalid: "Invalid cron expression",
    nextTen: "Next 10 runs",
    statuses: "Job statuses",
    statusAbout: {
      OK: "The job has instances and its shards are assigned. It runs on schedule.",
      DISABLED: "The job is disabled on every server or in its configuration.",
      SHARDING_FLAG: "Shards will be reassigned at the next fire.",
      CRASHED: "The job has no instance, so it does not run.",
    },
    glossaryTitle: "Glossary",
    glossary: [
      ["Shard", "– one of the N parts of a job; one instance runs it at a time."],
      ["Instance", "– a process that has joined the registry; a server can have several."],
      [
        "Failover",
        "– a shard that was running on a dead instance runs on another one immediately.",
      ],
      [
        "Misfire",
        "– a fire that came due while the previous run was still going; compensated once.",
      ],
      ["Trigger", "– a request to run a job now, independent of its schedule."],
    ] as [string, string][],
    more: "More",
    keys: "Keyboard shortcuts: press",
    api: "API documentation",
  },
};
