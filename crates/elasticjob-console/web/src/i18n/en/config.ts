import { plural } from "./texts";

/** English: the configuration of a job. */
export const config = {
  config: {
    sections: {
      schedule: "Schedule",
      shards: "Shards",
      failures: "Failure handling",
      alerts: "Alerts",
      general: "General",
    },
    others: "Other properties",
    othersAbout:
      "Properties of script and HTTP jobs, of alerts, and your own. Secrets are shown as ***; leave *** to keep them.",
    key: "Key",
    value: "Value",
    valueOf: (key: string) => `Value of ${key}`,
    add: "Add property",
    remove: (key: string) => `Remove property ${key}`,
    defaultValue: "default",
    example: (value: string) => `e.g. ${value}`,
    fallback: (value: string) => `default: ${value}`,
    clear: "Clear",
    nextFires: "Next runs:",
    version: (version: number) => `version ${version}`,
    changes: (count: number) => plural(count, "change"),
    noChanges: "No changes",
    required: "Required: the job has nothing to run.",
    requiredProperty: (key: string) => `Enter ${key}: without it the job has nothing to run.`,
    hasInvalidField: "One field is invalid.",
    discard: "Discard",
    review: "Review changes",
    reviewTitle: (job: string) => `Change ${job}`,
    isNew: (job: string) => `Job ${job} will be created.`,
    takesEffect:
      "Instances apply the new configuration immediately. Current runs finish with the old one.",
    save: "Save",
    stored: (version: number) => `Saved as version ${version}.`,
    unchanged: "No changes to save.",
    conflict: (version: number) => `Version ${version} has been saved in the meantime.`,
    rebase: "Load it and keep my edits",
    fields: {
      cron: {
        label: "Cron",
        about: "Quartz: second minute hour day month weekday [year]. Empty: runs on trigger only.",
      },
      timeZone: {
        label: "Time zone",
        about:
          "IANA name such as Europe/Paris, or an offset such as GMT+8:00. Java instances accept offsets only.",
      },
      "props.elasticjob.dst": {
        label: "Daylight saving time",
        about: "default: no fire is skipped when clocks change; quartz: same as Java.",
      },
      "props.elasticjob.catch.up": {
        label: "Catch-up policy",
        about: "For fires that came due while no instance was up: none, last, or all:6h",
      },
      shardingTotalCount: {
        label: "Number of shards",
        about: "Shards are reassigned when this changes.",
      },
      shardingItemParameters: { label: "Shard parameters", about: "0=Beijing,1=Shanghai" },
      jobParameter: { label: "Job parameter", about: "" },
      jobShardingStrategyType: {
        label: "Sharding strategy",
        about: "Used by Java and Rust leaders",
      },
      "props.elasticjob.strategy": {
        label: "Sharding strategy of Rust leaders",
        about: "STICKY: moves as few shards as possible; WEIGHTED: by the instance label weight",
      },
      staticSharding: {
        label: "Static sharding",
        about: "Reassign shards only when their number changes",
      },
      failover: {
        label: "Failover",
        about: "Shards of a dead instance are taken over immediately",
      },
      misfire: {
        label: "Misfire compensation",
        about: "A fire that comes due during a run is compensated by one run right after it",
      },
      monitorExecution: {
        label: "Monitor execution",
        about:
          "Records running shards in the registry. Required for failover; without it, runs can overlap",
      },
      "props.elasticjob.timeout": {
        label: "Timeout",
        about:
          "Maximum duration of an attempt, such as 90s or 5m; then it is cancelled and counts as failed",
      },
      "props.elasticjob.retry.max.attempts": {
        label: "Maximum attempts",
        about: "Attempts per shard in one run",
      },
      "props.elasticjob.retry.backoff": {
        label: "Retry backoff",
        about: "Shortest and longest delay between attempts: 1s..1m",
      },
      "props.elasticjob.on.lease.loss": {
        label: "On lease loss",
        about: "",
      },
      jobErrorHandlerType: {
        label: "Error handler",
        about: "Set its properties under Other properties",
      },
      "props.elasticjob.alert": {
        label: "Alerts of Rust instances",
        about: "WEBHOOK overrides the error handler",
      },
      description: { label: "Description", about: "" },
      label: { label: "Label", about: "For grouping and searching jobs" },
      disabled: {
        label: "Disabled on startup",
        about: "New instances do not run the job until it is enabled",
      },
      overwrite: {
        label: "Overwrite",
        about: "At each start, the program's configuration replaces the one saved here",
      },
      jobExecutorThreadPoolSizeProviderType: {
        label: "Concurrent shards per instance",
        about: "CPU: two per processor",
      },
      reconcileIntervalMinutes: {
        label: "Reconcile interval (minutes)",
        about: "How often the leader checks that every shard's owner is up; 0: never",
      },
      maxTimeDiffSeconds: {
        label: "Maximum clock difference (seconds)",
        about: "Negative: not checked",
      },
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
