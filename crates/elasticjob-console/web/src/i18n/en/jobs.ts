import type { RunState } from "../../api/types";
import { plural, type Texts } from "./texts";

/** English: the list of jobs, saved views and the form for a new job. */
export const jobs = {
  jobs: {
    count: (count: number) => plural(count, "job"),
    create: "New job",
    search: "Search jobs",
    searchPlaceholder: "Name or description, status:CRASHED, is:running, label:…, -server:10.0.0.7",
    searchHelp: "Search syntax",
    searchAbout: "Words in the name or description, and the terms below. All of them must match.",
    searchTerms: [
      ["status:CRASHED", "or OK, DISABLED, SHARDING_FLAG"],
      ["is:running", "or disabled, waiting, misfired, unreadable, oneoff"],
      ["label:billing", "the job's label"],
      ["handler:script", "or http, class, rust"],
      ["server:10.0.0.7", "has an instance there"],
      ["instance:…", "runs on this instance"],
      ["cron:0/5", "part of the cron expression"],
      ["-is:disabled", "a dash negates a term"],
      ['"two words"', "quotes group words"],
    ] as [string, string][],
    byStatus: "By status",
    name: "Job",
    status: "Status",
    next: "Next run",
    shards: "Shards",
    instances: "Instances",
    type: "Type",
    lastRuns: "Recent runs",
    neverRan: "never ran",
    lastRunsSummary: (count: number, of: Record<RunState, number>) =>
      `The last ${plural(count, "run")}: ${[
        of.done > 0 && `${of.done} done`,
        of.incomplete > 0 && `${of.incomplete} incomplete`,
        of.failed > 0 && `${of.failed} failed`,
        of.cancelled > 0 && `${of.cancelled} cancelled`,
        of.running > 0 && `${of.running} running`,
      ]
        .filter(Boolean)
        .join(", ")}.`,
    successRate: (rate: string) => `Success rate in the last 7 days: ${rate}.`,
    actions: "Actions",
    actionsOf: (name: string) => `Actions for ${name}`,
    select: (name: string) => `Select ${name}`,
    selectPage: "Select all on this page",
    selected: (count: number) => `${count.toLocaleString("en")} selected`,
    selectAll: (count: number) => `Select all ${count.toLocaleString("en")} matching jobs`,
    selectNone: "Select none",
    bulk: "Actions for the selected jobs",
    bulkTitle: (action: string, count: number) => `${action}: ${plural(count, "job")}`,
    bulkConsequences: {
      trigger: "All shards of these jobs run once, now. Their schedules do not change.",
      enable: "These jobs run again on their schedules.",
      disable: "These jobs do not run until they are enabled. Current runs are not interrupted.",
      shutdown: "All instances leave these jobs and rejoin only when their programs are restarted.",
    },
    bulkProgress: "Progress",
    bulkDone: (done: number, total: number, failed: number) =>
      failed > 0 ? `${done} of ${total} done, ${failed} failed` : `${done} of ${total} done`,
    bulkFailed: "Failed",
    bulkStop: "Stop",
    oneOff: "on trigger only",
    dueNow: "due",
    notWhileDisabled: "none while disabled",
    running: (count: number) => `${count} running`,
    waiting: (count: number) => `${count} awaiting failover`,
    misfired: (count: number) => `${count} misfired`,
    disabledShards: (count: number) => `${plural(count, "shard")} disabled`,
    shardsOn: (shards: number, instances: number) =>
      `${plural(shards, "shard")} on ${plural(instances, "instance")}`,
    none: "No jobs yet",
    noneAbout:
      "Jobs appear here when a program with jobs joins this registry, or when you create one.",
    noneFound: "No matching jobs",
    showAll: "Show all",
  },
  views: {
    title: "Views",
    none: "No saved views. Save a search to reuse it.",
    save: "Save this search",
    name: "Name",
    remove: (name: string) => `Remove view ${name}`,
  },
  newJob: {
    title: "New job",
    about:
      "The job is stored in the registry. It runs once an instance that can run it has joined.",
    name: "Name",
    nameAbout: "It cannot be renamed later.",
    type: "Type",
    typeAbout: "Script and HTTP jobs run on workers started with elasticjob run.",
    types: {
      SCRIPT: "Script",
      HTTP: "HTTP request",
      RUST: "Handler in a Rust program",
    } as Texts,
    nameFirst: "Enter a name first",
    stored: (name: string) => `Job ${name} created.`,
  },
};
