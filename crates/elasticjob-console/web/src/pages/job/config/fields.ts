/** A field of the configuration form. A key that starts with `props.` belongs to the map `props`. */
export type Field =
  | {
      key: string;
      kind: "text" | "number" | "area";
      /** A possible value, shown in an empty field and marked as an example. */
      example?: string;
      /** The value that applies if the field is empty. */
      fallback?: string;
    }
  | { key: string; kind: "switch" }
  | { key: string; kind: "choice"; choices: string[] };

export type SectionName = "schedule" | "shards" | "failures" | "alerts" | "general";

export const SECTIONS: { name: SectionName; column: 0 | 1; fields: Field[] }[] = [
  {
    name: "schedule",
    column: 0,
    fields: [
      { key: "cron", kind: "text", example: "0 0/5 * * * ?" },
      { key: "timeZone", kind: "text", example: "Asia/Shanghai" },
      { key: "props.elasticjob.dst", kind: "choice", choices: ["default", "quartz"] },
      { key: "props.elasticjob.catch.up", kind: "text", fallback: "none" },
    ],
  },
  {
    name: "shards",
    column: 1,
    fields: [
      { key: "shardingTotalCount", kind: "number" },
      { key: "shardingItemParameters", kind: "text", example: "0=Beijing,1=Shanghai" },
      { key: "jobParameter", kind: "text" },
      {
        key: "jobShardingStrategyType",
        kind: "choice",
        choices: ["AVG_ALLOCATION", "ODEVITY", "ROUND_ROBIN", "SINGLE_SHARDING_BALANCE"],
      },
      { key: "props.elasticjob.strategy", kind: "choice", choices: ["STICKY", "WEIGHTED"] },
      { key: "staticSharding", kind: "switch" },
    ],
  },
  {
    name: "failures",
    column: 0,
    fields: [
      { key: "failover", kind: "switch" },
      { key: "misfire", kind: "switch" },
      { key: "monitorExecution", kind: "switch" },
      { key: "props.elasticjob.timeout", kind: "text", example: "90s" },
      { key: "props.elasticjob.retry.max.attempts", kind: "text", fallback: "1" },
      { key: "props.elasticjob.retry.backoff", kind: "text", fallback: "1s..1m" },
      {
        key: "props.elasticjob.on.lease.loss",
        kind: "choice",
        choices: ["cancel", "finish-fenced", "continue"],
      },
    ],
  },
  {
    name: "alerts",
    column: 1,
    fields: [
      {
        key: "jobErrorHandlerType",
        kind: "choice",
        choices: ["LOG", "IGNORE", "THROW", "EMAIL", "WECHAT", "DINGTALK"],
      },
      { key: "props.elasticjob.alert", kind: "choice", choices: ["WEBHOOK"] },
    ],
  },
  {
    name: "general",
    column: 1,
    fields: [
      { key: "description", kind: "area" },
      { key: "label", kind: "text" },
      { key: "disabled", kind: "switch" },
      { key: "overwrite", kind: "switch" },
      {
        key: "jobExecutorThreadPoolSizeProviderType",
        kind: "choice",
        choices: ["CPU", "SINGLE_THREAD"],
      },
      { key: "reconcileIntervalMinutes", kind: "number" },
      { key: "maxTimeDiffSeconds", kind: "number" },
    ],
  },
];

export const FIELD_KEYS = new Set(
  SECTIONS.flatMap((section) => section.fields.map((field) => field.key)),
);
