//! Results of [`Admin`](super::Admin)'s queries.
//!
//! Ids, names and states that are read from the registry are plain text: other programs may have written anything there, and it is shown as it is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::{
    coordination::{ledger::LedgerState, server_status::StoredStatus},
    job::{InstanceId, Job, process_of},
    registry::Version,
};

/// Status of a job, as the console of Java ElasticJob reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobStatus {
    /// The job has instances, and its shards are assigned to them.
    Ok,
    /// No server of the job is enabled; or its configuration is disabled and all instances are Rust, which obeys that while running.
    Disabled,
    /// The job has no instances.
    Crashed,
    /// Shards are not assigned yet, or are assigned to an instance that is gone.
    ShardingFlag,
}

/// Status of a shard, as the console of Java ElasticJob reports it. The first variant that applies is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ShardStatus {
    Disabled,
    Running,
    /// The shard is unassigned, or its owner is gone.
    ShardingFlag,
    /// The shard waits for its next fire.
    Pending,
}

/// Whether instances on a server may run a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ServerStatus {
    Enabled,
    Disabled,
}

impl ServerStatus {
    /// Whether instances on a server with this data run the job. With an empty status, which ElasticJob 2.x writes, they do not.
    pub(super) fn read(data: &[u8]) -> Self {
        match StoredStatus::read(data) {
            StoredStatus::Enabled => Self::Enabled,
            StoredStatus::Disabled | StoredStatus::Empty => Self::Disabled,
        }
    }
}

/// The implementation an instance runs. An instance whose id cannot be parsed counts as Java, because it understands none of our extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum Language {
    /// Java ElasticJob.
    Java,
    /// This library.
    Rust,
}

impl Language {
    /// The language of the instance with this id.
    pub fn of(id: &str) -> Self {
        match id.parse::<InstanceId>() {
            Ok(id) if !id.is_java() => Self::Rust,
            _ => Self::Java,
        }
    }
}

/// What executes a job, as far as the registry knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum HandlerInfo {
    /// A command line.
    Script,
    /// An HTTP request.
    Http,
    /// A Java class, or a Rust program registered under that class name.
    Class { class: String },
    /// A Rust program.
    Rust {
        /// Name of the handler, if the program sets one.
        handler: Option<String>,
    },
}

impl HandlerInfo {
    pub(super) fn read(root: &[u8], job: Option<&Job>) -> Self {
        let root = String::from_utf8_lossy(root);
        match root.trim() {
            "" => Self::Rust { handler: job.and_then(|job| job.props.policies().handler.clone()) },
            script if script.eq_ignore_ascii_case("SCRIPT") => Self::Script,
            http if http.eq_ignore_ascii_case("HTTP") => Self::Http,
            class => Self::Class { class: class.to_owned() },
        }
    }
}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobSummary {
    #[serde(rename = "jobName")]
    pub name: String,
    /// A job that cannot be read counts as crashed and has a `problem`.
    pub status: JobStatus,
    pub description: String,
    /// A job without a cron expression runs only when triggered.
    pub cron: Option<String>,
    /// Number of shards; none if the configuration cannot be read.
    #[serde(rename = "shardingTotalCount")]
    pub shards: Option<u32>,
    /// Number of instances.
    #[serde(rename = "instanceCount")]
    pub instances: usize,
    pub handler: HandlerInfo,
    /// Next fire of the schedule, whether or not an instance is there to run it.
    #[serde(rename = "nextFireTime")]
    pub next_fire: Option<Timestamp>,
    /// Why the job or its configuration cannot be read.
    pub problem: Option<String>,
    /// What to do about the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The summary of one job and the data it was computed from, for callers that keep a list up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    pub summary: JobSummary,
    /// The configuration, if it can be read.
    pub job: Option<Job>,
    /// Servers of the job, by address.
    pub servers: BTreeMap<String, ServerStatus>,
    /// Ids of the instances.
    pub instances: BTreeSet<String>,
    /// Number of shards that have an owner.
    pub assigned: usize,
    /// Ids of owners that are no longer instances of the job.
    pub gone_owners: BTreeSet<String>,
}

/// Everything about a job except its shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobDetails {
    #[serde(flatten)]
    pub summary: JobSummary,
    #[serde(rename = "config")]
    pub configuration: Configuration,
    /// Sorted by address.
    pub servers: Vec<Server>,
    /// Sorted by id.
    #[serde(rename = "instanceList")]
    pub instances: Vec<Instance>,
    /// Id of the leader; its instance may be gone already.
    pub leader: Option<String>,
    /// Since when a reassignment of the shards has been pending.
    pub resharding_since: Option<Timestamp>,
    /// Whether the leader is assigning shards at this moment.
    pub is_assigning: bool,
    /// Shards that await failover.
    pub failover_items: Vec<u32>,
    /// Ids of instances with a trigger that they have not taken yet.
    pub triggers: Vec<String>,
}

/// The stored configuration of a job, parsed if possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// The parsed configuration; none if it cannot be read.
    #[serde(rename = "properties", serialize_with = "as_properties")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub job: Option<Job>,
    /// Why the document cannot be read.
    pub problem: Option<String>,
    /// The document as stored. It may contain passwords, so it is not part of the JSON.
    #[serde(skip)]
    pub raw: String,
    /// Version of the node; pass it to [`Edit::seen`](super::Edit::seen) so that no concurrent change is overwritten.
    #[serde(serialize_with = "as_number")]
    #[cfg_attr(feature = "openapi", schema(value_type = i32))]
    pub version: Version,
    /// When the document was last written, by the registry's clock.
    pub written_at: Option<Timestamp>,
}

/// A server, as one job sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Server {
    #[serde(rename = "serverIp")]
    pub address: String,
    pub status: ServerStatus,
    /// Number of instances on this server.
    #[serde(rename = "instanceCount")]
    pub instances: usize,
}

/// An instance, as one job sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    #[serde(rename = "instanceId")]
    pub id: String,
    /// Address of the server it runs on.
    #[serde(rename = "serverIp")]
    pub server: String,
    /// Labels the instance was started with.
    pub labels: BTreeMap<String, String>,
    pub language: Language,
    /// When the instance registered, by the registry's clock. A Java instance registers again whenever it reconnects.
    pub since: Option<Timestamp>,
    /// Why its document cannot be read; such an instance is assigned no shards.
    pub problem: Option<String>,
}

/// Some of a job's shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardsPage {
    /// Number of shards of the job.
    pub total: usize,
    /// Sorted by number.
    pub shards: Vec<Shard>,
}

/// One shard of a job.
#[expect(clippy::struct_excessive_bools, reason = "each is a node of the tree that exists or not")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    pub item: u32,
    pub status: ShardStatus,
    /// Id of the owner; its instance may be gone already.
    #[serde(rename = "instanceId")]
    pub owner: Option<String>,
    /// Address of the owner's server.
    #[serde(rename = "serverIp")]
    pub server: Option<String>,
    /// Whether the owner is an instance of the job now.
    pub is_owner_online: bool,
    /// Language of the owner.
    pub language: Option<Language>,
    /// For display: what looks like a secret is `***`.
    pub parameter: Option<String>,
    /// The instance that holds the shard, if it is running.
    pub running: Option<Running>,
    /// Whether an instance has taken the shard over.
    #[serde(rename = "failover")]
    pub is_taken_over: bool,
    /// Id of the instance that has taken the shard over.
    #[serde(rename = "failoverInstanceId")]
    pub taken_over_by: Option<String>,
    /// Whether the shard awaits failover.
    pub awaits_failover: bool,
    /// Whether the shard has a misfire mark: it came due while it was running, and runs once more to compensate.
    #[serde(rename = "misfire")]
    pub has_misfire_mark: bool,
    #[serde(rename = "disabled")]
    pub is_disabled: bool,
    /// The newest run according to the ledger. Java writes no ledger, so runs on Java instances are missing here.
    pub last_run: Option<LastRun>,
    /// Why the ledger page cannot be read.
    pub problem: Option<String>,
}

/// The instance that runs a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Running {
    #[serde(rename = "instanceId")]
    pub instance: String,
    /// When it started, by the registry's clock.
    pub since: Option<Timestamp>,
}

/// The newest run of a shard, from its ledger page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// Unknown for runs on Java instances.
    pub run_id: Option<String>,
    /// When the shard was last due by its schedule.
    pub due_at: Option<Timestamp>,
    /// Attempt number within the run.
    pub attempt: u32,
    /// Id of the instance that made the attempt.
    #[serde(rename = "instanceId")]
    pub instance: Option<String>,
    pub state: LedgerState,
    /// When the shard entered this state, by the registry's clock.
    pub since: Option<Timestamp>,
}

/// A server in a list, across all jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerSummary {
    #[serde(rename = "serverIp")]
    pub address: String,
    /// Ids of the instances on this server, each once.
    pub instances: Vec<String>,
    /// Number of processes. A Rust process with many jobs has several instances, one for each registry session.
    #[serde(rename = "processCount")]
    pub processes: usize,
    /// Names of the jobs that know this server.
    #[serde(rename = "jobNames")]
    pub jobs: Vec<String>,
    /// Number of jobs that this server is disabled for.
    #[serde(rename = "disabledJobsNum")]
    pub disabled: usize,
}

impl ServerSummary {
    pub fn new(
        address: String,
        instances: Vec<String>,
        jobs: Vec<String>,
        disabled: usize,
    ) -> Self {
        let processes: BTreeSet<&str> = instances.iter().map(|id| process_of(id)).collect();
        let processes = processes.len();
        Self { address, instances, processes, jobs, disabled }
    }
}

/// A server with its state in every job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerDetails {
    #[serde(flatten)]
    pub summary: ServerSummary,
    /// Sorted by name.
    #[serde(rename = "jobList")]
    pub jobs: Vec<ServerJob>,
}

/// The state of one server in one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerJob {
    #[serde(rename = "jobName")]
    pub job: String,
    /// None if the job has instances on the server, but no entry for the server itself.
    pub status: Option<ServerStatus>,
    /// Ids of the job's instances on this server.
    pub instances: Vec<String>,
}

#[expect(clippy::ref_option, reason = "serde's signature")]
fn as_properties<S: Serializer>(job: &Option<Job>, serializer: S) -> Result<S::Ok, S::Error> {
    job.as_ref().map(Job::to_json).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(super) fn as_number<S: Serializer>(
    version: &Version,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_i32(version.0)
}
