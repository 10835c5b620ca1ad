/** The schemas of the API by the names that the pages use. `npm run types` generates them from the OpenAPI document. */

import type { components } from "./schema.gen";

type Schemas = components["schemas"];

/**
 * A response as the server sends it: every property is present, and null if it has no value. The document marks nullable
 * properties as optional.
 */
type Complete<T> = T extends (infer Item)[]
  ? Complete<Item>[]
  : T extends object
    ? { [Key in keyof T]-?: Complete<Exclude<T[Key], undefined>> }
    : T;

type Response<Name extends keyof Schemas> = Complete<Schemas[Name]>;

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
export type Session = Refined<Response<"Session">, { csrfToken: string }>;
export type LoginMethods = Response<"LoginMethods">;
/** Registries in which the user has no role are not listed. */
export type Registry = Refined<Response<"Registry">, { role: Role }>;
export type ConnectionTest = Response<"RegistryTest">;
export type HistoryStore = Response<"HistoryStore">;
export type Account = Response<"Account">;
export type Token = Response<"Token">;
export type NewToken = Response<"NewToken">;
export type AuditEntry = Response<"Entry">;
export type AuditPage = Response<"AuditPage">;

export type JobStatus = Schemas["JobStatus"];
export type ShardStatus = Schemas["ShardStatus"];
export type LastRunState = Schemas["LedgerState"];
/** The union of the document, flattened: only some kinds have a class or a handler. */
export interface Handler {
  kind: Schemas["HandlerInfo"]["kind"];
  class?: string;
  handler?: string | null;
}
export type JobSummary = Refined<Response<"JobSummary">, { handler: Handler }>;
export type JobRow = Refined<Response<"JobRow">, { handler: Handler }>;
export type JobsPage = Refined<Response<"JobsPage">, { items: JobRow[] }>;
/** The properties of a stored configuration, of which each may be absent. */
export type Properties = Partial<Schemas["ConfigProperties"]>;
export type Configuration = Refined<Response<"Configuration">, { properties: Properties | null }>;
export type JobDetails = Refined<
  Response<"JobDetails">,
  { handler: Handler; config: Configuration }
>;
export type Shard = Response<"Shard">;
export type Instance = Response<"Instance">;
export type InstanceRow = Response<"InstanceRow">;
export type InstancesPage = Response<"InstancesPage">;
export type ServerRow = Response<"ServerSummary">;
export type ServersPage = Response<"ServersPage">;
export type ServerDetails = Refined<
  Response<"ServerDetails">,
  { jobList: Refined<Response<"ServerJob">, { status: Schemas["ServerStatus"] }>[] }
>;

export type Overview = Response<"Overview">;
export type Incident = Response<"Incident">;
export type Forecast = Response<"Forecast">;
export type Finding = Response<"Finding">;
export type Explanation = Response<"Explanation">;
export type DoctorFinding = Response<"DoctorFinding">;
export type CronCheck = Response<"CronCheck">;

export type Difference = Response<"Difference">;
export type ConfigPlan = Refined<Response<"ConfigPlan">, { config: Properties }>;
export type StoredConfig = Refined<Response<"StoredConfig">, { config: Properties }>;
/** Each property of a trigger or a cancellation may be left out. */
export type TriggerRequest = Partial<Schemas["TriggerRequest"]>;
export type TriggerResponse = Response<"TriggerResponse">;
export type CancelRequest = Partial<Schemas["CancelRequest"]>;
export type CancelResponse = Response<"CancellationResult">;
export type SwitchResponse = Response<"SwitchResult">;
export type ShutDownResponse = Response<"JobShutdown">;
export type RemoveResponse = Response<"RemovalResult">;
export type ShardSwitchResponse = Response<"ShardSwitch">;
export type ServerSwitchResponse = Response<"ServerSwitch">;
export type ServerShutDownResponse = Response<"ServerShutdown">;
export type BulkAction = Schemas["BulkAction"];
export type BulkResult = Response<"BulkResult">;

export type RunState = Schemas["RunState"];
export type AttemptState = Schemas["AttemptState"];
/** `parameter` replaces the job parameter; it is absent if it was not recorded. */
export type Run = Refined<
  Response<"Run">,
  { source: "schedule" | "trigger"; parameter?: string | null }
>;
export type RunPage = Refined<Response<"RunPage">, { items: Run[] }>;
/** One shard of a run, over all its attempts. */
export type RunShard = Response<"RunShard">;
/** One attempt of a shard. `token` is text because it exceeds the range of exact numbers. */
export type Execution = Response<"Execution">;
/** One status change that an instance reported for its shards of a run. */
export type Trace = Response<"Trace">;
export type RunDetails = Run & { items: RunShard[]; executions: Execution[]; traces: Trace[] };
export type RecordedRun = { run: Run; items: RunShard[] };
export type Matrix = { rounds: RecordedRun[] };
export type LastRun = Response<"RecentRun">;
export type Percentiles = Response<"Percentiles">;
export type JobFigures = Response<"JobFiguresWithRuns">;
export type Bucket = Refined<Response<"Bucket">, { state: RunState }>;
export type Buckets = Refined<Response<"Buckets">, { items: Bucket[] }>;
export type FailureGroup = Response<"FailureGroup">;
export type MissedFires = Response<"MissedFires">;
export type OutputLine = Response<"OutputLine">;
