//! What is remembered.

use std::{fmt, str::FromStr, sync::Arc};

use jiff::Timestamp;

use super::name::hash;
use crate::job::{
    Attempt, FencingToken, InstanceId, Invalid, JobName, RunId, Shard, ShardCount, TaskId,
};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An attempt of a shard begins.
    Started(Arc<Started>),
    /// An attempt of a shard has ended.
    Ended(Ended),
    /// Whoever tried a shard is gone, and somebody else says so.
    Lost(Lost),
    /// What the ancestor calls a status trace: an instance's part of a run changes its state.
    Status(Status),
    /// A fire was due and will not run.
    Missed(Missed),
    /// An attempt printed something.
    Printed(Printed),
    /// An attempt printed too much: the middle is left out.
    Cut(Cut),
}

impl Event {
    /// What it tells of, for somebody who reads a log: the run, or the job where there was none.
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

/// One attempt of one shard, by a name that everybody who knows the attempt can tell: it is made of the run, the shard, the number of the attempt and
/// the fencing token. Told twice, an attempt is still one.
///
/// It looks like a UUID, because the ancestor's column has room for just that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(u128);

impl AttemptId {
    /// The attempt that this shard is.
    pub fn of(shard: &Shard) -> Self {
        Self::new(&shard.run, shard.item, shard.attempt, shard.token)
    }

    /// The attempt with this number of a shard of a run, under the claim with this token.
    pub fn new(run: &RunId, item: u32, attempt: Attempt, token: FencingToken) -> Self {
        Self::named(&format!("{run}#{item}#{}#{token}", attempt.number))
    }

    /// What else has a name of this kind: the same text, the same name.
    pub(super) fn named(name: &str) -> Self {
        let hash = hash(name);
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
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let hex = text.replace('-', "");
        let wrong = || Invalid {
            what: "attempt id".into(),
            text: text.to_owned(),
            problem: "it looks like a UUID".to_owned(),
        };
        if hex.len() != 32 || text.len() != 36 || hex.starts_with('+') {
            return Err(wrong());
        }
        u128::from_str_radix(&hex, 16).map(Self).map_err(|_| wrong())
    }
}

/// Who wanted a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// The schedule.
    Schedule,
    /// Somebody; by name, if the name is known.
    Trigger {
        /// Who.
        by: Option<String>,
    },
}

/// An attempt of a shard begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Started {
    /// Which attempt.
    pub id: AttemptId,
    /// The job.
    pub job: JobName,
    /// The run.
    pub run: RunId,
    /// When the run was due, or the time it works for.
    pub due_at: Timestamp,
    /// Who wanted the run.
    pub source: Source,
    /// Which of the shards.
    pub item: u32,
    /// Of how many.
    pub total: ShardCount,
    /// The how-manieth try, and why there is one.
    pub attempt: Attempt,
    /// Grows with every claim of the shard.
    pub token: FencingToken,
    /// The shards of the run on this instance; it names the instance, too.
    pub task: TaskId,
    /// The name of the machine.
    pub host: Arc<str>,
    /// When.
    pub at: Timestamp,
    /// The trace that it is part of, if there is one: 32 hexadecimal digits.
    pub trace: Option<String>,
}

impl Started {
    /// This shard begins now, on this machine.
    pub fn of(shard: &Shard, source: Source, host: Arc<str>, at: Timestamp) -> Self {
        Self {
            id: AttemptId::of(shard),
            job: shard.job.clone(),
            run: shard.run.clone(),
            due_at: shard.due_at,
            source,
            item: shard.item,
            total: shard.total,
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
pub struct Ended {
    /// What began.
    pub started: Arc<Started>,
    /// When it ended.
    pub at: Timestamp,
    /// How.
    pub ending: Ending,
}

/// Whoever tried a shard is gone: attempts of it that have not ended never will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The run.
    pub run: RunId,
    /// Which of its shards.
    pub item: u32,
    /// Who is gone.
    pub instance: InstanceId,
    /// The attempts of claims before this one.
    pub token: FencingToken,
    /// When that was noticed.
    pub at: Timestamp,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It did what it had to do.
    Done,
    /// It failed, and says why.
    Failed(String),
    /// It took longer than it may.
    TimedOut(String),
    /// It was told to end.
    Cancelled(String),
    /// It ended after its lease: somebody else may have run it.
    Fenced,
}

impl Ending {
    /// `done`, `failed`, `timed_out`, `cancelled` or `fenced`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed(_) => "failed",
            Self::TimedOut(_) => "timed_out",
            Self::Cancelled(_) => "cancelled",
            Self::Fenced => "fenced",
        }
    }

    /// Why it is not done; nothing if it is.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Done => None,
            Self::Failed(message) | Self::TimedOut(message) | Self::Cancelled(message) => {
                Some(message)
            }
            Self::Fenced => Some("ended after its lease was lost; somebody else may have run it"),
        }
    }

    /// Whether it did what it had to do.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

/// An instance's part of a run changes its state, in the ancestor's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The run.
    pub run: RunId,
    /// The shards of the run on this instance.
    pub task: TaskId,
    /// What it is now.
    pub state: StatusState,
    /// What the ancestor says with it: empty, that it begins, or what went wrong.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

/// The states the ancestor writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatusState {
    /// It is about to begin.
    Staging,
    /// It runs.
    Running,
    /// Every shard is done.
    Finished,
    /// A shard failed.
    Error,
    /// It was told to end.
    Killed,
    /// It lost its lease.
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

/// Fires were due and will not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// The job.
    pub job: JobName,
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// How many.
    pub count: u64,
    /// Why.
    pub why: Why,
    /// When that was noticed.
    pub at: Timestamp,
}

/// Why a fire will not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// The run before was not over, and the job does not want to be compensated.
    Skipped,
    /// Nobody was there, and the job does not catch up.
    NobodyThere,
}

impl Why {
    /// `skipped` or `nobody_there`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::NobodyThere => "nobody_there",
        }
    }
}

/// An attempt printed something: a script on its streams, a handler through `tracing`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// Which attempt.
    pub id: AttemptId,
    /// Its run.
    pub run: RunId,
    /// Its shard.
    pub item: u32,
    /// Which part of all it printed: from zero, without holes. Parts are read in this order.
    pub part: u32,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line that was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// `stdout`, `stderr`, or the level of a log record: `ERROR`, `WARN`, `INFO`, `DEBUG`, `TRACE`.
    pub stream: &'static str,
    /// What, without the line's end.
    pub text: String,
}

/// An attempt printed too much: these parts are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Which attempt.
    pub id: AttemptId,
    /// Its run.
    pub run: RunId,
    /// Its shard.
    pub item: u32,
    /// The first part that is left out.
    pub from: u32,
    /// The first part after that which is kept again.
    pub to: u32,
    /// How many bytes are left out in all.
    pub bytes: u64,
}
