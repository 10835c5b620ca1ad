//! What is found, and how it is told.

use jiff::Timestamp;
use serde::Serialize;

/// Why a job, or a shard of it, ran or did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    /// The job.
    #[serde(rename = "jobName")]
    pub job: String,
    /// The time that was asked about.
    pub at: Timestamp,
    /// When it was last due by then, by its schedule.
    pub due_at: Option<Timestamp>,
    /// When it is due next after that.
    pub next_fire: Option<Timestamp>,
    /// What was found: about the job, then shard by shard.
    pub findings: Vec<Finding>,
}

impl Explanation {
    /// Whether something of this kind was found, of this shard or of the job.
    pub fn has(&self, topic: Topic, shard: Option<u32>) -> bool {
        self.findings.iter().any(|finding| finding.topic == topic && finding.shard == shard)
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// What it is about.
    pub topic: Topic,
    /// How much it matters.
    pub weight: Weight,
    /// The shard; none if it is about the job.
    pub shard: Option<u32>,
    /// A sentence.
    #[serde(rename = "message")]
    pub says: String,
    /// What can be done about it.
    pub hint: Option<String>,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Topic {
    /// There is no such job.
    Missing,
    /// Its configuration, or a page of its ledger, cannot be read.
    Unreadable,
    /// It is disabled.
    Disabled,
    /// Nobody is a member.
    NoInstance,
    /// A server is disabled.
    ServerDisabled,
    /// Nobody leads.
    NoLeader,
    /// Shards are to be dealt anew.
    Resharding,
    /// There is no such shard.
    NoShard,
    /// A shard is disabled.
    ShardDisabled,
    /// A shard belongs to nobody.
    NoOwner,
    /// A shard's owner is no member.
    OwnerGone,
    /// A shard is running.
    Running,
    /// A shard was due while it ran.
    Misfire,
    /// A shard waits to be taken over, or was.
    Failover,
    /// When it was due.
    Schedule,
    /// The fire in question was started.
    Started,
    /// The fire in question was not started.
    Missed,
    /// What history knows of the fire in question.
    Remembered,
    /// What cannot be known.
    Limits,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum Weight {
    /// It is so, and that is all.
    Informs,
    /// It may be the reason, or become one.
    Matters,
    /// It keeps the job, or the shard, from running.
    Blocks,
}
