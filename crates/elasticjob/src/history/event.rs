//! The events that history stores.

use std::{fmt, str::FromStr, sync::Arc};

use jiff::Timestamp;

use super::stable_hash::stable_hash;
use crate::job::{
    Attempt, ExpectedShards, FencingToken, InstanceId, InvalidValue, JobName, Outcome, RunId,
    Shard, ShardCount, TaskId,
};

/// Something that happened to a job, a run or an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An attempt of a shard started.
    Started(Arc<AttemptStarted>),
    /// An attempt of a shard has ended.
    Ended(AttemptEnded),
    /// The instance that ran a shard is gone; another instance reports it.
    Lost(AttemptLost),
    /// Java ElasticJob's status trace: an instance's part of a run changes its state.
    Status(Status),
    /// Fires were due and do not get a run of their own.
    Missed(FiresMissed),
    /// An attempt printed lines.
    Printed(OutputPrinted),
    /// An attempt printed too much: its middle is not kept.
    Cut(OutputCut),
}

impl Event {
    /// What the event is about, for log messages: the run, or the job if there is none.
    pub(super) fn about(&self) -> String {
        match self {
            Self::Started(started) => started.run.to_string(),
            Self::Ended(ended) => ended.started.run.to_string(),
            Self::Lost(lost) => lost.run.to_string(),
            Self::Status(status) => status.run.to_string(),
            Self::Missed(missed) => missed.job.to_string(),
            Self::Printed(printed) => printed.run.to_string(),
            Self::Cut(cut) => cut.run.to_string(),
        }
    }
}

/// Id of one attempt of one shard, derived from the run, the shard, the attempt number and the fencing token. Every instance derives the same
/// id, so an attempt that is reported twice is still one.
///
/// It has the form of a UUID, because Java ElasticJob's column has room for just that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(u128);

impl AttemptId {
    /// The id of the attempt that this shard describes.
    pub fn of(shard: &Shard) -> Self {
        Self::new(&shard.run, shard.item, shard.attempt, shard.token)
    }

    /// The id of this attempt of a shard of a run, under the claim with this token.
    pub fn new(run: &RunId, item: u32, attempt: Attempt, token: FencingToken) -> Self {
        Self::from_text(&format!("{run}#{item}#{}#{token}", attempt.number))
    }

    /// An id of the same form for any other text: the same text always gives the same id.
    pub(super) fn from_text(text: &str) -> Self {
        let hash = stable_hash(text);
        Self(hash & !(0xf << 76) & !(0b11 << 62) | 8 << 76 | 0b10 << 62)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        f.write_str(&parts.join("-"))
    }
}

impl FromStr for AttemptId {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let hex = text.replace('-', "");
        let invalid = || InvalidValue {
            what: "attempt id".into(),
            text: text.to_owned(),
            problem: "expected the form of a UUID".to_owned(),
            hint: None,
        };
        if hex.len() != 32 || text.len() != 36 || hex.starts_with('+') {
            return Err(invalid());
        }
        u128::from_str_radix(&hex, 16).map(Self).map_err(|_| invalid())
    }
}

/// An attempt of a shard started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptStarted {
    pub id: AttemptId,
    pub job: JobName,
    pub run: RunId,
    /// When the run was due, or its logical time.
    pub due_at: Timestamp,
    /// The user or program that triggered the run, if it was triggered and that is known.
    pub triggered_by: Option<String>,
    pub item: u32,
    pub total: ShardCount,
    /// How many shards the run should have; `None` if that is not known.
    pub expected: Option<ExpectedShards>,
    /// Attempt number and reason.
    pub attempt: Attempt,
    /// The fencing token of the claim, which grows with every claim of the shard.
    pub token: FencingToken,
    /// Java ElasticJob's id for this instance's part of the run; contains the instance.
    pub task: TaskId,
    pub host: Arc<str>,
    pub at: Timestamp,
    /// The trace id, if traces are exported: 32 hexadecimal digits.
    pub trace: Option<String>,
}

impl AttemptStarted {
    /// The start of an attempt on this host.
    pub fn of(shard: &Shard, host: Arc<str>, at: Timestamp) -> Self {
        Self {
            id: AttemptId::of(shard),
            job: shard.job.clone(),
            run: shard.run.clone(),
            due_at: shard.due_at,
            triggered_by: shard.triggered_by.clone(),
            item: shard.item,
            total: shard.total,
            expected: shard.expected(),
            attempt: shard.attempt,
            token: shard.token,
            task: shard.task.clone(),
            host,
            at,
            trace: None,
        }
    }
}

/// An attempt of a shard has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEnded {
    pub started: Arc<AttemptStarted>,
    pub at: Timestamp,
    pub outcome: Outcome,
    /// Why it did not succeed; `None` if it did.
    pub message: Option<String>,
}

/// The instance that ran a shard is gone: its attempts without an end are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptLost {
    pub run: RunId,
    pub item: u32,
    pub instance: InstanceId,
    /// Attempts of claims before this token are lost.
    pub token: FencingToken,
    pub at: Timestamp,
}

/// An instance's part of a run changes its state: Java ElasticJob's status trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub run: RunId,
    /// Java ElasticJob's id for this instance's part of the run.
    pub task: TaskId,
    pub state: StatusState,
    /// Java ElasticJob's message for the state: empty, a note that it starts, or what failed.
    pub message: String,
    pub at: Timestamp,
}

/// The states that Java ElasticJob writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatusState {
    /// About to start.
    Staging,
    Running,
    /// Every shard succeeded.
    Finished,
    Error,
    /// Cancelled.
    Killed,
    /// The instance lost its lease.
    Lost,
}

impl StatusState {
    /// `TASK_STAGING`, and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Staging => "TASK_STAGING",
            Self::Running => "TASK_RUNNING",
            Self::Finished => "TASK_FINISHED",
            Self::Error => "TASK_ERROR",
            Self::Killed => "TASK_KILLED",
            Self::Lost => "TASK_LOST",
        }
    }
}

/// Fires were due and do not get a run of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiresMissed {
    pub job: JobName,
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    pub reason: MissedReason,
    pub at: Timestamp,
}

/// Why a fire does not get a run of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissedReason {
    /// The previous run was still going, and the job does not compensate misfires.
    Skipped,
    /// No instance was up, and the job does not catch up.
    NoInstance,
    /// A run of a later fire answers it, too.
    Coalesced,
    /// The ledger page of a shard cannot be read.
    Unreadable,
    /// Shards could not be claimed in time, and the job does not compensate misfires.
    NotStarted,
}

impl MissedReason {
    pub(crate) const ALL: [Self; 5] =
        [Self::Skipped, Self::NoInstance, Self::Coalesced, Self::Unreadable, Self::NotStarted];

    /// `skipped`, `nobody_there`, `coalesced`, `unreadable` or `not_started`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::NoInstance => "nobody_there",
            Self::Coalesced => "coalesced",
            Self::Unreadable => "unreadable",
            Self::NotStarted => "not_started",
        }
    }
}

/// Lines that an attempt printed: a script to its streams, a handler through `tracing`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPrinted {
    pub id: AttemptId,
    pub run: RunId,
    pub item: u32,
    /// Number of this part of the attempt's output, counted from zero without gaps. Parts are read in this order.
    pub part: u32,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub at: Timestamp,
    /// `stdout`, `stderr`, or the level of a log record: `ERROR`, `WARN`, `INFO`, `DEBUG`, `TRACE`.
    pub stream: &'static str,
    /// Without the line end.
    pub text: String,
}

/// An attempt printed too much: these parts are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputCut {
    pub id: AttemptId,
    pub run: RunId,
    pub item: u32,
    /// The first part that is not kept.
    pub from: u32,
    /// The first later part that is kept again.
    pub to: u32,
    /// Number of bytes not kept, in all.
    pub bytes: u64,
}
