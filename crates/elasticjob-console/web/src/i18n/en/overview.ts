import { plural, type Texts } from "./texts";

/** English: the overview and its charts. */
export const overview = {
  overview: {
    live: "Live: what you see is what is.",
    asOf: "The registry cannot be reached; this is as of",
    heat: "Due in the hours to come",
    heatNone: "Nothing is due.",
    heatSays: (total: number, hours: number, isEstimated: boolean) =>
      `${isEstimated ? "About " : ""}${plural(total, "fire")} in ${plural(hours, "hour")}`,
    heatPeak: (most: number, at: string) =>
      `; most of them, ${most.toLocaleString("en")}, from ${at}`,
    heatCell: (at: string, count: number) => `${at}: ${plural(count, "fire")}`,
    heatRange: "How far to look",
    hours: (count: number) => `${count} h`,
    ran: "What ran",
    range: "How far to look back",
    ranges: { "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d" } as Texts,
    inRange: (range: string) => `in the last ${range}`,
    outcomes: "Runs by how they ended",
    outcomesSay: (done: number, failed: number, cancelled: number, running: number) =>
      `${plural(done + failed + cancelled + running, "run")}: ${done} done, ${failed} failed, ${cancelled} cancelled, ${running} running`,
    lateness: "How late the latest began",
    latenessSays: (most: string, at: string) => `At most ${most} late, from ${at}`,
    onTime: "in time",
    tooLate: "late",
    lateAbout: (seconds: number, since: string) =>
      `Began more than ${plural(seconds, "second")} after they were due, ${since}`,
    ofRuns: (runs: number, since: string) => `Of ${plural(runs, "run")} ${since}`,
    missedAbout: (since: string) => `Fires that did not run, ${since}`,
    nothingRan: "Nothing ran in this time",
    nothingRanAbout: "As soon as something runs it is here, without reloading.",
    historyDown: "The history does not answer:",
    incidents: "Needs attention",
    calm: "All is well",
    calmAbout: "No job is without instances, no shard waits, everything can be read.",
    next: "Due next",
    nothingDue: "Nothing is due",
    why: "Why?",
    more: (count: number) => `${count} more`,
    cut: (count: number, total: number) =>
      `Of ${total.toLocaleString("en")}, the gravest ${count}.`,
    /** What the server says; another language says it by its kind, above the server's own words. */
    says: (_kind: string, message: string) => message,
    kinds: {
      unreadable: "unreadable",
      crashed: "no instance",
      ownerGone: "owner is gone",
      shardingFlag: "resharding",
      waitingForFailover: "waits for failover",
      stuck: "stuck",
      drift: "drift",
      misfired: "misfired",
      missed: "missed",
    },
    tiles: {
      due: "Due within an hour",
      late: "Late",
      failed: "Failed",
      missed: "Missed",
      jobs: "Jobs",
      running: "Running shards",
      waiting: "Waiting",
      misfired: "Misfired",
      crashed: "No instance",
      disabled: "Disabled",
      unreadable: "Unreadable",
      shards: "Shards",
      instances: "Instances",
      servers: "Servers",
    },
  },
  charts: {
    asTable: "Show as a table",
    asChart: "Show as a chart",
    tableOf: (title: string) => `${title}: table`,
    from: "From",
    started: "Began",
    outcomes: { done: "done", failed: "failed", cancelled: "cancelled", running: "running" },
    counted: (of: { done: number; failed: number; cancelled: number; running: number }) =>
      [
        `${of.done.toLocaleString("en")} done`,
        `${of.failed.toLocaleString("en")} failed`,
        of.cancelled > 0 && `${of.cancelled.toLocaleString("en")} cancelled`,
        of.running > 0 && `${of.running.toLocaleString("en")} running`,
      ]
        .filter(Boolean)
        .join(", "),
  },
};
