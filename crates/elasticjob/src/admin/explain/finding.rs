//! The result of an explanation: findings with topic, severity and hint.

use jiff::Timestamp;
use serde::Serialize;

/// Why a job, or one of its shards, ran or did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    #[serde(rename = "jobName")]
    pub job: String,
    /// The time that is explained.
    pub at: Timestamp,
    /// The last fire of the schedule at or before `at`.
    pub due_at: Option<Timestamp>,
    /// The first fire of the schedule after `at`.
    pub next_fire: Option<Timestamp>,
    /// Findings about the job, then about each shard.
    pub findings: Vec<Finding>,
}

impl Explanation {
    /// Whether there is a finding with this topic about this shard, or about the job if `shard` is none.
    pub fn has(&self, topic: Topic, shard: Option<u32>) -> bool {
        self.findings.iter().any(|finding| finding.topic == topic && finding.shard == shard)
    }

    /// Adds the finding that no history store is set, so that nothing is known of fires that were missed or coalesced.
    #[must_use]
    pub fn not_recorded(mut self) -> Self {
        self.findings.push(Finding {
            topic: Topic::Limits,
            severity: Severity::Info,
            shard: None,
            message: "missed fires are not recorded: no history store is set".to_owned(),
            hint: Some("--history URL sets the store that the workers record to".to_owned()),
        });
        self
    }
}

/// One reason why a job or shard ran or did not run, or a fact about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    pub topic: Topic,
    pub severity: Severity,
    /// None if the finding is about the job.
    pub shard: Option<u32>,
    pub message: String,
    /// What the operator can do about it.
    pub hint: Option<String>,
}

/// The subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Topic {
    /// The job does not exist.
    Missing,
    /// The configuration, an instance's document or a ledger page cannot be read.
    Unreadable,
    /// The job is disabled.
    Disabled,
    /// The job has no instance.
    NoInstance,
    ServerDisabled,
    /// The job has no leader.
    NoLeader,
    /// A reassignment of the shards is pending or in progress.
    Resharding,
    /// The shard does not exist.
    NoShard,
    ShardDisabled,
    /// The shard is unassigned.
    NoOwner,
    /// The owner of the shard is no longer an instance of the job.
    OwnerGone,
    /// The shard is running.
    Running,
    /// The shard came due while it was running.
    Misfire,
    /// The shard awaits failover, or was taken over.
    Failover,
    /// When the job was due.
    Schedule,
    /// The explained fire was started.
    Started,
    /// The explained fire was not started.
    Missed,
    /// What history knows of the explained fire.
    History,
    /// Something that cannot be known.
    Limits,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    Info,
    /// May be the reason why the job or shard does not run, or may become one.
    Warning,
    /// Keeps the job or shard from running.
    Blocking,
}
