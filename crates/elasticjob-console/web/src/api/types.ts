/** The schemas of the API by the names that the pages use. `npm run types` generates them from the OpenAPI document. */

import type { components } from "./schema.gen";

type Schemas = components["schemas"];

/** A schema with properties that the document describes less exactly than the server sends them. */
type Refined<T, Properties> = Omit<T, keyof Properties> & Properties;

/** The properties that every list with numbered pages has. */
export interface Page<T> {
  total: number;
  page: number;
  pageSize: number;
  items: T[];
}

export type Role = Schemas["Role"];
/** A session with a cookie always has a CSRF token. */
export type Session = Refined<Schemas["Session"], { csrfToken: string }>;
export type LoginMethods = Schemas["LoginMethods"];
/** Registries in which the user has no role are not listed. */
export type Registry = Refined<Schemas["Registry"], { role: Role }>;
export type ConnectionTest = Schemas["RegistryTest"];
export type HistoryStore = Schemas["HistoryStore"];
export type Account = Schemas["Account"];
export type Token = Schemas["Token"];
export type NewToken = Schemas["NewToken"];
export type AuditEntry = Schemas["Entry"];
export type AuditPage = Schemas["AuditPage"];

export type JobStatus = Schemas["JobStatus"];
export type ShardStatus = Schemas["ShardStatus"];
export type LastRunState = Schemas["LedgerState"];
/** The union of the document, flattened: only some kinds have a class or a handler. */
export interface Handler {
  kind: Schemas["HandlerInfo"]["kind"];
  class?: string;
  handler?: string | null;
}
export type JobSummary = Refined<Schemas["JobSummary"], { handler: Handler }>;
export type JobRow = Refined<Schemas["JobRow"], { handler: Handler }>;
export type JobsPage = Refined<Schemas["JobsPage"], { items: JobRow[] }>;
/** The properties of a stored configuration, of which each may be absent. */
export type Properties = Partial<Schemas["ConfigProperties"]>;
export type Configuration = Refined<Schemas["Configuration"], { properties: Properties | null }>;
export type JobDetails = Refined<
  Schemas["JobDetails"],
  { handler: Handler; config: Configuration }
>;
export type Shard = Schemas["Shard"];
export type ShardsPage = Schemas["ShardsPage"];
export type Instance = Schemas["Instance"];
export type InstanceRow = Schemas["InstanceRow"];
export type InstancesPage = Schemas["InstancesPage"];
export type ServerRow = Schemas["ServerSummary"];
export type ServersPage = Schemas["ServersPage"];
export type ServerDetails = Schemas["ServerDetails"];

export type Overview = Schemas["Overview"];
export type Incident = Schemas["Incident"];
export type Forecast = Schemas["Forecast"];
export type Finding = Schemas["Finding"];
export type Explanation = Schemas["Explanation"];
export type DoctorFinding = Schemas["DoctorFinding"];
export type CronCheck = Schemas["CronCheck"];

export type Difference = Schemas["Difference"];
export type ConfigPlan = Refined<Schemas["ConfigPlan"], { config: Properties }>;
export type StoredConfig = Refined<Schemas["StoredConfig"], { config: Properties }>;
/** Each property of a trigger or a cancellation may be left out. */
export type TriggerRequest = Partial<Schemas["TriggerRequest"]>;
export type TriggerResponse = Schemas["TriggerResponse"];
export type Trigger = Schemas["TriggerSummary"];
export type TriggerDetails = Schemas["TriggerDetails"];
export type TriggerShard = Schemas["TriggerShard"];
export type TriggerList = Schemas["TriggerList"];
export type WithdrawResponse = Schemas["WithdrawalResult"];
export type CancelRequest = Partial<Schemas["CancelRequest"]>;
export type CancelResponse = Schemas["CancellationResult"];
export type SwitchResponse = Schemas["SwitchResult"];
export type ShutDownResponse = Schemas["JobShutdown"];
export type RemoveResponse = Schemas["RemovalResult"];
export type ShardSwitchResponse = Schemas["ShardSwitch"];
export type ServerSwitchResponse = Schemas["ServerSwitch"];
export type ServerShutDownResponse = Schemas["ServerShutdown"];
export type BulkAction = Schemas["BulkAction"];
export type BulkResult = Schemas["BulkResult"];

export type RunState = Schemas["RunState"];
export type AttemptState = Schemas["AttemptState"];
export type Run = Schemas["Run"];
export type RunPage = Schemas["RunPage"];
/** One shard of a run, over all its attempts. */
export type RunShard = Schemas["RunShard"];
/** One attempt of a shard. `token` is text because it exceeds the range of exact numbers. */
export type Execution = Schemas["Execution"];
/** One status change that an instance reported for its shards of a run. */
export type Trace = Schemas["Trace"];
export type RunDetails = Run & { items: RunShard[]; executions: Execution[]; traces: Trace[] };
export type RecordedRun = { run: Run; items: RunShard[] };
export type Matrix = { runs: RecordedRun[] };
export type LastRun = Schemas["RecentRun"];
export type Percentiles = Schemas["Percentiles"];
export type JobFigures = Schemas["JobFiguresWithRuns"];
export type Bucket = Refined<Schemas["Bucket"], { state: RunState }>;
export type Buckets = Refined<Schemas["Buckets"], { items: Bucket[] }>;
export type FailureGroup = Schemas["FailureGroup"];
export type MissedFires = Schemas["MissedFires"];
export type OutputLine = Schemas["OutputLine"];
