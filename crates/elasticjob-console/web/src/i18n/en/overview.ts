import type { RunState } from "../../api/types";
import { plural, type Texts } from "./texts";

/** English: the overview and its charts. */
export const overview = {
  overview: {
    isLive: "Live",
    asOf: "The registry cannot be reached; data as of",
    forecast: "Upcoming schedule",
    forecastEmpty: "No fires in this period.",
    forecastSummary: (total: number, hours: number, isEstimated: boolean) =>
      `${isEstimated ? "About " : ""}${plural(total, "fire")} in ${plural(hours, "hour")}`,
    forecastPeak: (most: number, at: string) =>
      `; busiest period from ${at}: ${most.toLocaleString("en")}`,
    forecastCell: (at: string, count: number) => `${at}: ${plural(count, "fire")}`,
    forecastRange: "Period",
    hours: (count: number) => `${count} h`,
    recentRuns: "Recent runs",
    range: "Time range",
    ranges: { "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d" } as Texts,
    inRange: (range: string) => `in the last ${range}`,
    outcomes: "Runs by outcome",
    outcomesSummary: (of: Record<RunState, number>) =>
      `${plural(of.done + of.incomplete + of.failed + of.cancelled + of.running, "run")}: ${of.done} done, ${of.incomplete} incomplete, ${of.failed} failed, ${of.cancelled} cancelled, ${of.running} running`,
    startDelay: "Longest start delay",
    startDelaySummary: (most: string, at: string) =>
      `Longest start delay ${most}, in the period from ${at}`,
    onTime: "on time",
    late: "late",
    lateAbout: (seconds: number, since: string) =>
      `Runs that started more than ${plural(seconds, "second")} after they were due, ${since}`,
    ofRuns: (runs: number, since: string) => `Of ${plural(runs, "run")} ${since}`,
    incompleteAbout: (since: string) => `Runs that lack shards that they should have, ${since}`,
    missedAbout: (since: string, coalesced: number) =>
      `Fires that did not run, ${since}${coalesced > 0 ? `; ${plural(coalesced, "more fire")} answered by the run of a later one` : ""}`,
    notRecorded: "not recorded",
    missedNotRecorded: "Missed fires are not recorded: this registry has no history store.",
    noRuns: "No runs in this period",
    noRunsAbout: "New runs appear here automatically.",
    historyDown: "The history store does not respond:",
    incidents: "Needs attention",
    noIncidents: "No problems found",
    noIncidentsAbout:
      "Every job has an instance, no shard awaits failover, every configuration is readable.",
    next: "Next runs",
    noneDue: "No upcoming fires",
    explain: "Explain",
    more: (count: number) => `${count} more`,
    truncated: (count: number, total: number) =>
      `The ${count} most severe of ${total.toLocaleString("en")} problems.`,
    /** The server's English message. Other languages describe the kind and show the message below. */
    describe: (_kind: string, message: string) => message,
    kinds: {
      unreadable: "unreadable",
      crashed: "no instance",
      ownerGone: "owner offline",
      shardingFlag: "resharding",
      awaitingFailover: "awaits failover",
      stuck: "stuck",
      drift: "shard count differs",
      misfired: "misfired",
      missed: "missed",
    },
    tiles: {
      due: "Due within an hour",
      late: "Late",
      failed: "Failed",
      incomplete: "Incomplete",
      missed: "Missed",
      jobs: "Jobs",
      running: "Running shards",
      waiting: "Awaiting failover",
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
    started: "Started",
    outcomes: {
      done: "done",
      incomplete: "incomplete",
      failed: "failed",
      cancelled: "cancelled",
      running: "running",
    },
    counts: (of: Record<RunState, number>) =>
      [
        `${of.done.toLocaleString("en")} done`,
        of.incomplete > 0 && `${of.incomplete.toLocaleString("en")} incomplete`,
        `${of.failed.toLocaleString("en")} failed`,
        of.cancelled > 0 && `${of.cancelled.toLocaleString("en")} cancelled`,
        of.running > 0 && `${of.running.toLocaleString("en")} running`,
      ]
        .filter(Boolean)
        .join(", "),
  },
};
