import { plural, type Texts } from "./texts";

/** English: the list of jobs, and a new one. */
export const jobs = {
  jobs: {
    count: (count: number) => plural(count, "job"),
    create: "New job",
    search: "Search jobs",
    searchPlaceholder: "Name or description, status:CRASHED, is:running, label:…, -server:10.0.0.7",
    searchHelp: "What can be searched for",
    searchAbout: "Words of name or description, and these; all of them have to fit.",
    searchTerms: [
      ["status:CRASHED", "or OK, DISABLED, SHARDING_FLAG"],
      ["is:running", "or disabled, waiting, misfired, unreadable, oneoff"],
      ["label:billing", "what it is sorted under"],
      ["handler:script", "or http, class, rust"],
      ["server:10.0.0.7", "has an instance there"],
      ["instance:…", "has this instance"],
      ["cron:0/5", "part of its cron"],
      ["-is:disabled", "a dash means not"],
      ['"two words"', "quotes hold words together"],
    ] as [string, string][],
    byStatus: "By status",
    name: "Job",
    status: "Status",
    next: "Next fire",
    shards: "Shards",
    instances: "Instances",
    runsWith: "Runs",
    lastRuns: "Last runs",
    neverRan: "never ran",
    lastRunsSay: (
      count: number,
      of: { done: number; failed: number; cancelled: number; running: number },
    ) =>
      `The last ${plural(count, "run")}: ${[
        of.done > 0 && `${of.done} done`,
        of.failed > 0 && `${of.failed} failed`,
        of.cancelled > 0 && `${of.cancelled} cancelled`,
        of.running > 0 && `${of.running} running`,
      ]
        .filter(Boolean)
        .join(", ")}.`,
    rateSays: (rate: string) => `${rate} went well in the last week.`,
    actions: "Actions",
    actionsOf: (name: string) => `Actions for ${name}`,
    select: (name: string) => `Select ${name}`,
    selectPage: "Select all on this page",
    selected: (count: number) => `${count.toLocaleString("en")} selected`,
    selectAll: (count: number) => `Select all ${count.toLocaleString("en")} found`,
    selectNone: "Select none",
    bulk: "With the selected jobs",
    bulkTitle: (action: string, count: number) => `${action}: ${plural(count, "job")}`,
    bulkHappens: {
      trigger: "All shards of these jobs run now, once, beside their schedule.",
      enable: "These jobs run again when they are due.",
      disable: "These jobs are no longer run until somebody enables them; what runs now ends.",
      shutdown:
        "All instances of these jobs leave them, and come back only when their programs are started again.",
    },
    bulkProgress: "Progress",
    bulkDone: (done: number, total: number, failed: number) =>
      failed > 0 ? `${done} of ${total} done, ${failed} not` : `${done} of ${total} done`,
    bulkFailed: "Not done",
    bulkStop: "Stop",
    oneOff: "when asked",
    dueNow: "now",
    running: (count: number) => `${count} running`,
    waiting: (count: number) => `${count} waiting`,
    misfired: (count: number) => `${count} misfired`,
    disabledShards: (count: number) => `${plural(count, "shard")} off`,
    shardsOn: (shards: number, instances: number) =>
      `${plural(shards, "shard")} on ${plural(instances, "instance")}`,
    none: "No jobs yet",
    noneAbout:
      "A job is here as soon as a program that has it joins this registry, or somebody makes one.",
    noneFound: "No job fits",
    showAll: "Show all",
  },
  views: {
    title: "Views",
    none: "A search with a name is a view.",
    save: "Save this search",
    name: "Name",
    forget: (name: string) => `Forget view ${name}`,
  },
  newJob: {
    title: "New job",
    about: "Stored in the registry; it runs as soon as an instance that can run it is there.",
    name: "Name",
    nameAbout: "It cannot be renamed later.",
    kind: "What runs it",
    kindAbout: "Scripts and HTTP requests run on any `elasticjob run` that takes them.",
    kinds: {
      SCRIPT: "A script",
      HTTP: "An HTTP request",
      RUST: "A handler of a Rust program",
    } as Texts,
    first: "First it needs a name",
    stored: (name: string) => `Job ${name} is stored.`,
  },
};
