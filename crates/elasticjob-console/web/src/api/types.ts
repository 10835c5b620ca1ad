/** The shapes of docs/console-api.md. */

export type Role = "viewer" | "operator" | "admin";
export type JobStatus = "OK" | "DISABLED" | "CRASHED" | "SHARDING_FLAG";
export type ShardStatus = "DISABLED" | "RUNNING" | "SHARDING_FLAG" | "PENDING";
export type RunState = "FRESH" | "RUNNING" | "DONE" | "FAILED" | "LOST";

export interface Session {
  username: string;
  roles: Record<string, Role>;
  csrfToken: string;
  /** Whoever logged in at a provider may have none here: no password, no tokens. */
  hasAccount: boolean;
  canAddRegistries: boolean;
  canAddHistories: boolean;
  version: string;
}

export interface Registry {
  name: string;
  url: string;
  state: "idle" | "connecting" | "connected" | "down";
  problem: string | null;
  isAdded: boolean;
  jobCount: number | null;
  role: Role;
}

export interface Page<T> {
  total: number;
  page: number;
  pageSize: number;
  items: T[];
}

export interface Current {
  asOf: string | null;
  isCurrent: boolean;
}

export interface Handler {
  kind: "script" | "http" | "class" | "rust";
  class?: string;
  handler?: string | null;
}

export interface JobSummary {
  jobName: string;
  status: JobStatus;
  description: string;
  cron: string | null;
  /** Unknown if its configuration cannot be read. */
  shardingTotalCount: number | null;
  instanceCount: number;
  handler: Handler;
  nextFireTime: string | null;
  problem: string | null;
}

export interface JobRow extends JobSummary {
  label: string | null;
  timeZone: string | null;
  disabled: boolean;
  failover: boolean;
  runningCount: number;
  waitingForFailoverCount: number;
  misfiredCount: number;
  disabledShardCount: number;
}

export interface JobsPage extends Page<JobRow>, Current {
  statuses: Record<JobStatus, number>;
}

export type Incident = {
  jobName: string;
  kind:
    | "unreadable"
    | "crashed"
    | "ownerGone"
    | "shardingFlag"
    | "waitingForFailover"
    | "stuck"
    | "drift"
    | "misfired"
    | "missed";
  message: string;
};

export interface Overview extends Current {
  jobCount: number;
  statuses: Record<JobStatus, number>;
  serverCount: number;
  instanceCount: number;
  shardCount: number;
  runningCount: number;
  waitingForFailoverCount: number;
  misfiredCount: number;
  disabledShardCount: number;
  unreadableCount: number;
  next: { jobName: string; at: string }[];
  /** The gravest. */
  incidents: Incident[];
  /** How many there are in all. */
  incidentCount: number;
  /** Nothing without a history, or while it does not answer. */
  lastHours: {
    hours: number;
    lateAfterMs: number;
    runs: number;
    done: number;
    failed: number;
    running: number;
    late: number;
    missed: number;
  } | null;
  historyProblem: string | null;
}

export interface Properties {
  jobName?: string;
  cron?: string | null;
  timeZone?: string | null;
  shardingTotalCount?: number;
  shardingItemParameters?: string;
  jobParameter?: string;
  monitorExecution?: boolean;
  failover?: boolean;
  misfire?: boolean;
  maxTimeDiffSeconds?: number;
  reconcileIntervalMinutes?: number;
  jobShardingStrategyType?: string | null;
  jobExecutorThreadPoolSizeProviderType?: string | null;
  jobErrorHandlerType?: string | null;
  jobListenerTypes?: string[];
  jobExtraConfigurations?: unknown;
  description?: string;
  props?: Record<string, string>;
  disabled?: boolean;
  overwrite?: boolean;
  label?: string | null;
  staticSharding?: boolean;
}

export interface Configuration {
  properties: Properties | null;
  problem: string | null;
  version: number;
  writtenAt: string;
}

export interface Instance {
  instanceId: string;
  serverIp: string;
  labels: Record<string, string> | null;
  language: "rust" | "java" | null;
  since: string | null;
  problem: string | null;
}

export interface JobDetails extends JobSummary {
  config: Configuration;
  servers: { serverIp: string; status: "ENABLED" | "DISABLED"; instanceCount: number }[];
  instanceList: Instance[];
  leader: string | null;
  reshardingSince: string | null;
  isDealing: boolean;
  failoverItems: number[];
  triggers: string[];
}

export interface Shard {
  item: number;
  status: ShardStatus;
  instanceId: string | null;
  serverIp: string | null;
  isOwnerOnline: boolean;
  language: "rust" | "java" | null;
  parameter: string | null;
  running: { instanceId: string | null; since: string | null } | null;
  failover: boolean;
  failoverInstanceId: string | null;
  waitsForFailover: boolean;
  misfire: boolean;
  disabled: boolean;
  lastRun: {
    runId: string | null;
    dueAt: string | null;
    attempt: number;
    instanceId: string | null;
    state: RunState;
    since: string | null;
  } | null;
  problem: string | null;
}

export interface Difference {
  key: string;
  stored: string | null;
  sent: string | null;
}

export interface Planned {
  change: "new" | "changed" | "same";
  differences: Difference[];
  config: Properties;
}

export interface Stored extends Planned {
  isChanged: boolean;
  version: number;
}

export interface Finding {
  topic: string;
  weight: "informs" | "matters" | "blocks";
  shard: number | null;
  message: string;
  hint: string | null;
}

export interface Explanation {
  jobName: string;
  at: string;
  dueAt: string | null;
  nextFire: string | null;
  findings: Finding[];
}

export interface Triggered {
  runId: string;
  instances: string[];
  waiting: string[];
}

export interface Cancelled {
  asked: Record<string, number[]>;
  notCancellable: Record<string, string>;
  idle: number[];
}

export interface Switched {
  servers: string[];
  config: { outcome: "written" | "same" | "unreadable"; problem?: string | null };
}

export interface ServerRow {
  serverIp: string;
  instances: string[];
  jobNames: string[];
  disabledJobsNum: number;
}

export interface ServerDetails extends ServerRow {
  jobList: { jobName: string; status: "ENABLED" | "DISABLED"; instances: string[] }[];
}

export interface InstanceRow {
  instanceId: string;
  serverIp: string;
  language: "rust" | "java" | null;
  jobNames: string[];
  detail: Instance | null;
}

export interface DoctorFinding {
  check: "server" | "access" | "clock" | "stale" | "job";
  isProblem: boolean;
  about: string | null;
  message: string;
  hint: string | null;
}

export interface CronChecked {
  cron: string;
  warnings: { field: string; part: string; message: string }[];
}

export interface Account {
  username: string;
  roles: Record<string, Role>;
  tokens: Token[];
}

export interface Token {
  id: string;
  name: string;
  role: Role;
  createdAt: string;
  expiresAt: string | null;
  token?: string;
}

export interface AuditEntry {
  id: number;
  at: string;
  username: string;
  via: string;
  address: string | null;
  registry: string | null;
  action: string;
  target: string | null;
  asked: unknown;
  result: unknown;
  problem: string | null;
}

export interface AuditPage extends Page<AuditEntry> {
  /** Why entries are not on disk; nothing if they are. */
  problem?: string | null;
}

export interface Forecast {
  from: string;
  bucketMs: number;
  counts: number[];
  /** Some were not counted one by one. */
  isEstimated: boolean;
}
