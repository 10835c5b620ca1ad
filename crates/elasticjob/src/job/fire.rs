//! A job is due: the fire, the run it becomes, the shards of that run.

use std::{fmt, num::NonZeroU32, str::FromStr};

use jiff::Timestamp;

use super::{
    context::Context, error::Invalid, instance::InstanceId, job::Job, name::JobName,
    shards::ShardCount,
};
use crate::runtime::Cancel;

/// A job is due at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fire {
    /// The job.
    pub job: JobName,
    /// When it is due, or, if somebody triggered it, the time it is to work for.
    pub due_at: Timestamp,
    /// The run this becomes.
    pub run: RunId,
    /// Who triggered it, if somebody did and is known.
    pub triggered_by: Option<String>,
    /// What the job is given instead of its own parameter.
    pub parameter: Option<String>,
}

impl Fire {
    /// The schedule says so.
    pub fn scheduled(job: JobName, due_at: Timestamp) -> Self {
        let run = RunId::scheduled(job.clone(), due_at);
        Self { run, job, due_at, triggered_by: None, parameter: None }
    }

    /// Somebody says so.
    pub fn triggered(job: JobName, due_at: Timestamp, run: RunId) -> Self {
        Self { job, due_at, run, triggered_by: None, parameter: None }
    }

    /// The same, and who said so.
    #[must_use]
    pub fn by(mut self, who: Option<String>) -> Self {
        self.triggered_by = who;
        self
    }

    /// The same, with another parameter than the job's own.
    #[must_use]
    pub fn given(mut self, parameter: Option<String>) -> Self {
        self.parameter = parameter;
        self
    }
}

/// One fire as the cluster executes it: `settle-orders/1773828000000` (milliseconds, UTC) if the schedule said so, a UUID if somebody did.
///
/// The first is the same on every node without anybody having to agree.
///
/// ```
/// use elasticjob::job::RunId;
///
/// let run = RunId::scheduled("settle".parse()?, "2026-03-29T02:00:00Z".parse().unwrap());
/// assert_eq!(run.to_string(), "settle/1774749600000");
/// assert_eq!(run.to_string().parse::<RunId>()?, run);
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RunId(Run);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Run {
    Scheduled { job: JobName, millis: i64 },
    Triggered(u128),
}

impl RunId {
    /// The run of a scheduled fire.
    pub fn scheduled(job: JobName, due_at: Timestamp) -> Self {
        Self(Run::Scheduled { job, millis: due_at.as_millisecond() })
    }

    /// A triggered run; the bits are a version 4 UUID but for those that say so.
    pub fn triggered(random: u128) -> Self {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0b11 << 62;
        Self(Run::Triggered(random & !VERSION & !VARIANT | 4 << 76 | 0b10 << 62))
    }

    /// When it was due, if the schedule asked for it.
    pub fn due_at(&self) -> Option<Timestamp> {
        match &self.0 {
            Run::Scheduled { millis, .. } => Timestamp::from_millisecond(*millis).ok(),
            Run::Triggered(_) => None,
        }
    }

    /// Whether the schedule asked for it.
    pub fn is_scheduled(&self) -> bool {
        matches!(self.0, Run::Scheduled { .. })
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Run::Scheduled { job, millis } => write!(f, "{job}/{millis}"),
            Run::Triggered(bits) => {
                let hex = format!("{bits:032x}");
                let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
                f.write_str(&parts.join("-"))
            }
        }
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RunId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = |problem: &str| Invalid::new("run id", text, problem);
        if let Some((job, millis)) = text.rsplit_once('/') {
            let due_at =
                millis.parse().ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
            let due_at =
                due_at.ok_or_else(|| wrong("what follows `/` is not a time in milliseconds"))?;
            return Ok(Self::scheduled(job.parse()?, due_at));
        }
        let parts: Vec<&str> = text.split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        let hex = parts.concat();
        let digits = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(&hex, 16) {
            Ok(bits) if digits && lengths == [8, 4, 4, 4, 12] => Ok(Self(Run::Triggered(bits))),
            _ => Err(wrong("job/milliseconds, or a UUID")),
        }
    }
}

/// Which try of a shard of a run this is, and why there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// From one.
    pub number: NonZeroU32,
    /// Why.
    pub reason: Reason,
}

impl Attempt {
    /// The first one.
    pub const FIRST: Self = Self { number: NonZeroU32::MIN, reason: Reason::Due };

    /// The one after this.
    #[must_use]
    pub fn next(self, reason: Reason) -> Self {
        Self { number: self.number.saturating_add(1), reason }
    }
}

/// Why a shard runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It is due.
    Due,
    /// It was due while the last run was not over.
    Misfire,
    /// The instance that ran it died.
    Failover,
    /// It failed.
    Retry,
    /// It was due while nobody was there.
    CatchUp,
}

/// Grows with every claim of a shard, whoever makes it. Whoever stores something for a shard stores this with it and refuses smaller
/// ones; then a run that has lost its lease cannot undo what its successor did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FencingToken(i64);

impl FencingToken {
    /// The transaction number of a claim.
    pub const fn new(transaction: i64) -> Self {
        Self(transaction)
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the ancestor calls the shards of one run on one instance: `settle@-@0,1@-@READY@-@10.0.0.7@-@4711`.
///
/// ```
/// use elasticjob::job::TaskId;
///
/// let task: TaskId = "settle@-@0,1@-@READY@-@10.0.0.7@-@4711".parse()?;
/// assert_eq!(task.items, [0, 1]);
/// assert_eq!(task.instance.server(), "10.0.0.7");
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskId {
    /// The job.
    pub job: JobName,
    /// The shards.
    pub items: Vec<u32>,
    /// The instance that runs them.
    pub instance: InstanceId,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.items.iter().map(u32::to_string).collect();
        write!(f, "{}@-@{}@-@READY@-@{}", self.job, items.join(","), self.instance)
    }
}

impl FromStr for TaskId {
    type Err = Invalid;

    /// What stands for READY is not looked at: the ancestor writes nothing else, though it knows another word.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parts: Vec<&str> = text.split("@-@").collect();
        let [job, items, _, server, process] = parts[..] else {
            let problem =
                "five parts with @-@ in between; for example j@-@0,1@-@READY@-@10.0.0.7@-@4711";
            return Err(Invalid::new("task id", text, problem));
        };
        let numbers: Result<Vec<u32>, _> =
            items.split(',').filter(|_| !items.is_empty()).map(str::parse).collect();
        Ok(Self {
            job: job.parse()?,
            items: numbers
                .map_err(|_| Invalid::new("task id", text, format!("{items:?} are not shards")))?,
            instance: format!("{server}@-@{process}").parse()?,
        })
    }
}

/// The part of a run that one instance runs: what a handler is given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shard {
    /// The job.
    pub job: JobName,
    /// The run it is part of.
    pub run: RunId,
    /// Which try this is.
    pub attempt: Attempt,
    /// What the ancestor calls the shards of this run on this instance.
    pub task: TaskId,
    /// How many shards the job has.
    pub total: ShardCount,
    /// Which of them this is, from zero.
    pub item: u32,
    /// What this shard was given by `shardingItemParameters`.
    pub parameter: Option<String>,
    /// What every shard of the job was given.
    pub job_parameter: String,
    /// When the run was due.
    pub due_at: Timestamp,
    /// Grows with every claim of this shard.
    pub token: FencingToken,
    /// Who triggered the run, if somebody did and is known. Whoever takes it over from a dead instance does not know.
    pub triggered_by: Option<String>,
    cancel: Uncompared,
}

/// Whether two shards are the same has nothing to do with whom they would be cancelled by.
#[derive(Debug, Clone, Default)]
struct Uncompared(Cancel);

impl PartialEq for Uncompared {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Uncompared {}

impl Shard {
    /// A shard of this fire, as the job's configuration has it, tried for the first time.
    pub fn of(job: &Job, fire: &Fire, task: TaskId, item: u32, token: FencingToken) -> Self {
        Self {
            job: fire.job.clone(),
            run: fire.run.clone(),
            attempt: Attempt::FIRST,
            task,
            total: job.shards,
            item,
            parameter: job.items.get(item).map(ToOwned::to_owned),
            job_parameter: job.parameter.clone(),
            due_at: fire.due_at,
            token,
            triggered_by: fire.triggered_by.clone(),
            cancel: Uncompared::default(),
        }
    }

    /// The same shard on a later try.
    #[must_use]
    pub fn attempt(mut self, attempt: Attempt) -> Self {
        self.attempt = attempt;
        self
    }

    /// The same shard, cancelled by this.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = Uncompared(cancel);
        self
    }

    /// Tells when to end: a handler that takes long looks at it now and then, or waits for it beside its work.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel.0
    }

    /// What scripts and HTTP jobs are told.
    pub fn context(&self) -> Context {
        Context {
            job_name: self.job.to_string(),
            task_id: self.task.to_string(),
            sharding_total_count: self.total.get(),
            job_parameter: Some(self.job_parameter.clone()),
            sharding_item: self.item,
            sharding_parameter: self.parameter.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triggered_run_has_a_uuid() {
        let run = RunId::triggered(u128::MAX);

        assert_eq!(run.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
        assert!(!run.is_scheduled());
    }

    #[test]
    fn what_is_no_run_id_says_why() {
        for text in [
            "",
            "j",
            "j/",
            "j/x",
            "/1",
            "j/99999999999999999999",
            "ffffffff-ffff-4fff-bfff-+fffffffffff",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_task_id_is_read_as_it_is_written() {
        for text in ["j@-@@-@READY@-@1.2.3.4@-@5", "报表@-@0,11@-@READY@-@1.2.3.4@-@5-ab"] {
            assert_eq!(text.parse::<TaskId>().unwrap().to_string(), text);
        }
        for text in ["j", "j@-@x@-@READY@-@1.2.3.4@-@5", "j@-@0@-@READY@-@host@-@5"] {
            assert!(text.parse::<TaskId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_shard_is_given_what_the_job_has_for_it() {
        let job = Job::named("j").unwrap().shards(2).items("1=x").unwrap().parameter("p");
        let fire = Fire::scheduled(job.name.clone(), Timestamp::UNIX_EPOCH);
        let task: TaskId = "j@-@0,1@-@READY@-@1.2.3.4@-@5".parse().unwrap();

        let shard = Shard::of(&job, &fire, task, 1, FencingToken::new(7));
        let again = shard.clone().attempt(shard.attempt.next(Reason::Retry));

        assert_eq!((shard.parameter.as_deref(), shard.job_parameter.as_str()), (Some("x"), "p"));
        assert_eq!((again.attempt.number.get(), again.attempt.reason), (2, Reason::Retry));
        assert_eq!(again.run, fire.run);
    }
}
