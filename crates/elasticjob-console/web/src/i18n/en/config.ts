import { plural } from "./texts";

/** English: the configuration of a job. */
export const config = {
  config: {
    sections: {
      schedule: "Schedule",
      shards: "Shards",
      trouble: "When things go wrong",
      alerts: "Alerts",
      rest: "Everything else",
    },
    others: "Other properties",
    othersAbout:
      "Script and HTTP jobs, alerts and your own keys. Secrets show as ***; leave *** to keep them.",
    key: "Key",
    value: "Value",
    valueOf: (key: string) => `Value of ${key}`,
    add: "Add property",
    drop: (key: string) => `Remove property ${key}`,
    byDefault: "default",
    clear: "Clear",
    wouldFire: "Would be due:",
    version: (version: number) => `version ${version}`,
    changes: (count: number) => plural(count, "change"),
    noChanges: "No changes",
    lookAbove: "One field is not right yet.",
    reset: "Discard",
    review: "Review changes",
    reviewTitle: (job: string) => `Change ${job}`,
    isNew: (job: string) => `Job ${job} is stored for the first time.`,
    takesEffect: "Instances take it up at once; what runs now ends under the old configuration.",
    store: "Store",
    stored: (version: number) => `Stored as version ${version}.`,
    same: "Nothing changed.",
    newer: (version: number) => `Somebody stored version ${version} meanwhile.`,
    rebase: "Take theirs, keep my edits",
    fields: {
      cron: {
        label: "Cron",
        about: "Quartz: second minute hour day month weekday [year]. Empty: runs when asked.",
      },
      timeZone: {
        label: "Time zone",
        about: "Europe/Paris, or GMT+8:00, which Java understands too.",
      },
      "props.elasticjob.dst": {
        label: "When clocks change",
        about: "default: nothing falls silent; quartz: as Java does.",
      },
      "props.elasticjob.catch.up": {
        label: "Fires nobody was there for",
        about: "none, last, or all:6h",
      },
      shardingTotalCount: {
        label: "Number of shards",
        about: "They are dealt anew when this changes.",
      },
      shardingItemParameters: { label: "Parameter of each shard", about: "0=Beijing,1=Shanghai" },
      jobParameter: { label: "Parameter of all shards", about: "" },
      jobShardingStrategyType: { label: "How shards are dealt", about: "Java and Rust" },
      "props.elasticjob.strategy": {
        label: "How Rust leaders deal",
        about: "STICKY: few shards move; WEIGHTED: by the label weight",
      },
      staticSharding: { label: "Dealt once", about: "Anew only when the number of shards changes" },
      failover: {
        label: "Failover",
        about: "The shards of an instance that dies are taken over at once",
      },
      misfire: {
        label: "Run again if late",
        about: "Due while the last run is not over: once more right after",
      },
      monitorExecution: {
        label: "Tell the registry what runs",
        about: "Needed for failover; without it runs can overlap",
      },
      "props.elasticjob.timeout": {
        label: "Longest run of a shard",
        about: "90s, 5m; then it is cancelled and has failed",
      },
      "props.elasticjob.retry.max.attempts": {
        label: "Attempts",
        about: "How often a shard is tried in one run",
      },
      "props.elasticjob.retry.backoff": {
        label: "Wait between attempts",
        about: "First and longest: 1s..1m",
      },
      "props.elasticjob.on.lease.loss": {
        label: "If the lease of a running shard is lost",
        about: "",
      },
      jobErrorHandlerType: {
        label: "Who is told about failures",
        about: "Its properties go below",
      },
      "props.elasticjob.alert": {
        label: "Alert of Rust instances",
        about: "WEBHOOK overrules the one above",
      },
      description: { label: "Description", about: "" },
      label: { label: "Label", about: "To sort and search jobs" },
      disabled: {
        label: "Starts disabled",
        about: "New instances do not run it until it is enabled",
      },
      overwrite: {
        label: "The program's configuration wins",
        about: "It is stored at each start, over what is edited here",
      },
      jobExecutorThreadPoolSizeProviderType: {
        label: "Shards at once on an instance",
        about: "CPU: two for each processor",
      },
      reconcileIntervalMinutes: {
        label: "Minutes between looks for lost shards",
        about: "0: never",
      },
      maxTimeDiffSeconds: { label: "Seconds a clock may be off", about: "Negative: nobody looks" },
    } as Record<string, { label: string; about: string }>,
  },
  differences: {
    title: "Changes",
    key: "Property",
    before: "Before",
    after: "After",
    unset: "not set",
  },
};
