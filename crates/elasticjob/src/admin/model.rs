//! What an administrator is told.
//!
//! Ids, names and states are text where they come from the tree: a foreign tree may hold anything, and it is to be shown.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::{
    coordination::ledger,
    job::{InstanceId, Job},
    registry::Version,
};

/// How a job stands, as the ancestor's console says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobStatus {
    /// Somebody runs it.
    Ok,
    /// No server of it is enabled; or its configuration says so and only Rust instances, which obey that, are members.
    Disabled,
    /// Nobody is a member.
    Crashed,
    /// Shards are not dealt yet, or belong to somebody who is gone.
    ShardingFlag,
}

/// How a shard stands, as the ancestor's console says it. The first that holds counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ShardStatus {
    /// It is not to run.
    Disabled,
    /// It runs.
    Running,
    /// It belongs to nobody, or to somebody who is gone.
    ShardingFlag,
    /// It waits for its next fire.
    Pending,
}

/// Whether a server takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ServerStatus {
    /// It does.
    Enabled,
    /// It does not.
    Disabled,
}

impl ServerStatus {
    /// What stands in `servers/{address}`, read as the ancestor's console reads it.
    pub(super) fn read(data: &[u8]) -> Self {
        if data.eq_ignore_ascii_case(b"DISABLED") { Self::Disabled } else { Self::Enabled }
    }
}

/// Who made an instance. One whose id nobody can read counts as Java: it understands nothing of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum Language {
    /// The ancestor.
    Java,
    /// This library.
    Rust,
}

impl Language {
    /// Who made the instance of this id.
    pub fn of(id: &str) -> Self {
        match id.parse::<InstanceId>() {
            Ok(id) if !id.is_java() => Self::Rust,
            _ => Self::Java,
        }
    }
}

/// What runs a job, as far as the registry is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum RunsWith {
    /// A command line.
    Script,
    /// A request.
    Http,
    /// A Java class, or a Rust program that stands in for it.
    Class {
        /// Its name.
        class: String,
    },
    /// A Rust program.
    Rust {
        /// What it calls its handler, if it says.
        handler: Option<String>,
    },
}

impl RunsWith {
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
    /// What it is called.
    #[serde(rename = "jobName")]
    pub name: String,
    /// How it stands; one that cannot be looked at counts as crashed, and has a problem.
    pub status: JobStatus,
    /// For people.
    pub description: String,
    /// When it is due; a job without runs only when somebody asks for it.
    pub cron: Option<String>,
    /// How many shards it has; unknown if its configuration cannot be read.
    #[serde(rename = "shardingTotalCount")]
    pub shards: Option<u32>,
    /// How many instances are members.
    #[serde(rename = "instanceCount")]
    pub instances: usize,
    /// What runs it.
    #[serde(rename = "handler")]
    pub runs_with: RunsWith,
    /// When its schedule makes it due next, whether or not somebody is there to run it.
    #[serde(rename = "nextFireTime")]
    pub next_fire: Option<Timestamp>,
    /// Why its configuration cannot be read, or the job not be looked at.
    pub problem: Option<String>,
}

/// What a list is made of, job by job: for whoever keeps one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    /// What a list says.
    pub summary: JobSummary,
    /// Its configuration, if it can be read.
    pub job: Option<Job>,
    /// Its servers, by address.
    pub servers: BTreeMap<String, ServerStatus>,
    /// Its members, by id.
    pub instances: BTreeSet<String>,
    /// How many of its shards belong to somebody.
    pub dealt: usize,
    /// Whom shards belong to who is no member, by id.
    pub departed: BTreeSet<String>,
}

/// Everything about a job but its shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobDetails {
    /// What a list says.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// Its configuration.
    #[serde(rename = "config")]
    pub configuration: Configuration,
    /// Its servers, by address.
    pub servers: Vec<Server>,
    /// Its members, by id.
    #[serde(rename = "instanceList")]
    pub instances: Vec<Instance>,
    /// Who leads, by id; may be somebody who is gone.
    pub leader: Option<String>,
    /// Shards have to be dealt anew, since then.
    pub resharding_since: Option<Timestamp>,
    /// Shards are being dealt.
    pub is_dealing: bool,
    /// Shards that wait to be taken over.
    pub failover_items: Vec<u32>,
    /// Who was asked to run and has not taken note yet, by id.
    pub triggers: Vec<String>,
}

/// A job's configuration, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// What it means.
    #[serde(rename = "properties", serialize_with = "as_properties")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub job: Option<Job>,
    /// Why it cannot be read.
    pub problem: Option<String>,
    /// The document as it is stored. It may hold passwords, so it is left out of JSON.
    #[serde(skip)]
    pub raw: String,
    /// How often it was written; give it to [`Edit::seen`](super::Edit::seen) so that nobody's change is lost.
    #[serde(serialize_with = "as_number")]
    #[cfg_attr(feature = "openapi", schema(value_type = i32))]
    pub version: Version,
    /// When it was last written, by the registry's clock.
    pub written_at: Option<Timestamp>,
}

/// A server of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Its address.
    #[serde(rename = "serverIp")]
    pub address: String,
    /// Whether it takes part.
    pub status: ServerStatus,
    /// How many instances are on it.
    #[serde(rename = "instanceCount")]
    pub instances: usize,
}

/// A member of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Its id.
    #[serde(rename = "instanceId")]
    pub id: String,
    /// The address of its server.
    #[serde(rename = "serverIp")]
    pub server: String,
    /// What it wants to be known by.
    pub labels: BTreeMap<String, String>,
    /// Who made it.
    pub language: Language,
    /// Since when it is a member, by the registry's clock. A Java instance begins anew whenever it reconnects.
    pub since: Option<Timestamp>,
    /// Why its document cannot be read; shards are not dealt to it then.
    pub problem: Option<String>,
}

/// One shard.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a node of the tree that is there or not"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    /// Its number.
    pub item: u32,
    /// How it stands.
    pub status: ShardStatus,
    /// Whose it is, by id; may be somebody who is gone.
    #[serde(rename = "instanceId")]
    pub owner: Option<String>,
    /// The address of its owner's server.
    #[serde(rename = "serverIp")]
    pub server: Option<String>,
    /// Whether its owner is a member.
    pub is_owner_online: bool,
    /// Who made its owner.
    pub language: Option<Language>,
    /// What it is given.
    pub parameter: Option<String>,
    /// Who runs it.
    pub running: Option<Running>,
    /// Whether somebody has taken it over.
    #[serde(rename = "failover")]
    pub is_taken_over: bool,
    /// Who has, by id.
    #[serde(rename = "failoverInstanceId")]
    pub taken_over_by: Option<String>,
    /// Whether it waits to be taken over.
    pub waits_for_failover: bool,
    /// Whether a fire came while it ran, so that it runs once more.
    #[serde(rename = "misfire")]
    pub is_misfired: bool,
    /// Whether it is not to run.
    #[serde(rename = "disabled")]
    pub is_disabled: bool,
    /// What the ledger says of its newest run. Java keeps none, so of what Java runs there is nothing.
    pub last_run: Option<LastRun>,
    /// Why the ledger cannot be read.
    pub problem: Option<String>,
}

/// A shard is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// Who runs it, by id.
    #[serde(rename = "instanceId")]
    pub instance: String,
    /// Since when, by the registry's clock.
    pub since: Option<Timestamp>,
}

/// The newest run of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// The run; unknown of what Java ran.
    pub run_id: Option<String>,
    /// When the shard was last due by its schedule.
    pub due_at: Option<Timestamp>,
    /// Which try it was.
    pub attempt: u32,
    /// Who tried, by id.
    #[serde(rename = "instanceId")]
    pub instance: Option<String>,
    /// How that stands.
    pub state: RunState,
    /// Since when, by the registry's clock.
    pub since: Option<Timestamp>,
}

/// How the newest run of a shard stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunState {
    /// It never ran.
    Fresh,
    /// It runs.
    Running,
    /// It ended well.
    Done,
    /// It ended badly.
    Failed,
    /// Whoever ran it is gone.
    Lost,
}

impl From<ledger::State> for RunState {
    fn from(state: ledger::State) -> Self {
        match state {
            ledger::State::Fresh => Self::Fresh,
            ledger::State::Running => Self::Running,
            ledger::State::Done => Self::Done,
            ledger::State::Failed => Self::Failed,
            ledger::State::Lost => Self::Lost,
        }
    }
}

/// A server in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerSummary {
    /// Its address.
    #[serde(rename = "serverIp")]
    pub address: String,
    /// The instances on it, by id, each once.
    pub instances: Vec<String>,
    /// The jobs it takes part in, by name.
    #[serde(rename = "jobNames")]
    pub jobs: Vec<String>,
    /// How many of them it is disabled for.
    #[serde(rename = "disabledJobsNum")]
    pub disabled: usize,
}

/// A server, job by job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerDetails {
    /// What a list says.
    #[serde(flatten)]
    pub summary: ServerSummary,
    /// Its jobs, by name.
    #[serde(rename = "jobList")]
    pub jobs: Vec<ServerJob>,
}

/// A job on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerJob {
    /// What it is called.
    #[serde(rename = "jobName")]
    pub job: String,
    /// Whether the server takes part in it; none if there are instances and no entry of the server.
    pub status: Option<ServerStatus>,
    /// Its instances on this server, by id.
    pub instances: Vec<String>,
}

#[expect(clippy::ref_option, reason = "what serde calls")]
fn as_properties<S: Serializer>(job: &Option<Job>, serializer: S) -> Result<S::Ok, S::Error> {
    job.as_ref().map(Job::to_json).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
pub(super) fn as_number<S: Serializer>(
    version: &Version,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_i32(version.0)
}
