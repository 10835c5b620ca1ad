//! Fires, runs, attempts and shards.

use std::{fmt, num::NonZeroU32, str::FromStr};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    context::Context,
    error::InvalidValue,
    instance::InstanceId,
    job::Job,
    name::JobName,
    shards::{ExpectedShards, ShardCount},
};
use crate::runtime::CancelToken;

/// One moment at which a job is due, by its schedule or by a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fire {
    pub job: JobName,
    /// When the job is due; for a trigger, the logical time that the run works for.
    pub due_at: Timestamp,
    /// The run that results from this fire.
    pub run: RunId,
    /// The author of the trigger, if there is one and it is known.
    pub triggered_by: Option<String>,
    /// Replaces the job's own parameter.
    pub parameter: Option<String>,
}

impl Fire {
    /// A fire of the schedule.
    pub fn scheduled(job: JobName, due_at: Timestamp) -> Self {
        let run = RunId::scheduled(job.clone(), due_at);
        Self { run, job, due_at, triggered_by: None, parameter: None }
    }

    /// A fire that a trigger requested.
    pub fn triggered(job: JobName, due_at: Timestamp, run: RunId) -> Self {
        Self { job, due_at, run, triggered_by: None, parameter: None }
    }

    /// Sets the author of the trigger.
    #[must_use]
    pub fn by(mut self, who: Option<String>) -> Self {
        self.triggered_by = who;
        self
    }

    /// Sets a parameter that replaces the job's own.
    #[must_use]
    pub fn given(mut self, parameter: Option<String>) -> Self {
        self.parameter = parameter;
        self
    }
}

/// Identifies a run: `settle-orders/1773828000000` (due time in milliseconds, UTC) if it is scheduled, a UUID if it is triggered.
///
/// All instances derive the same id for a scheduled run without communicating.
///
/// ```
/// use elasticjob::job::RunId;
///
/// let run = RunId::scheduled("settle".parse()?, "2026-03-29T02:00:00Z".parse().unwrap());
/// assert_eq!(run.to_string(), "settle/1774749600000");
/// assert_eq!(run.to_string().parse::<RunId>()?, run);
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RunId(RunIdKind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum RunIdKind {
    Scheduled { job: JobName, millis: i64 },
    Triggered(u128),
}

impl RunId {
    /// The run of a scheduled fire.
    pub fn scheduled(job: JobName, due_at: Timestamp) -> Self {
        Self(RunIdKind::Scheduled { job, millis: due_at.as_millisecond() })
    }

    /// The id of a triggered run: a version 4 UUID from random bits, of which those for version and variant are replaced.
    pub fn triggered(random: u128) -> Self {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0b11 << 62;
        Self(RunIdKind::Triggered(random & !VERSION & !VARIANT | 4 << 76 | 0b10 << 62))
    }

    /// The due time of a scheduled run.
    pub fn due_at(&self) -> Option<Timestamp> {
        match &self.0 {
            RunIdKind::Scheduled { millis, .. } => Timestamp::from_millisecond(*millis).ok(),
            RunIdKind::Triggered(_) => None,
        }
    }

    pub fn is_scheduled(&self) -> bool {
        matches!(self.0, RunIdKind::Scheduled { .. })
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            RunIdKind::Scheduled { job, millis } => write!(f, "{job}/{millis}"),
            RunIdKind::Triggered(bits) => {
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
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let invalid = |problem: &str| InvalidValue::new("run id", text, problem);
        if let Some((job, millis)) = text.rsplit_once('/') {
            let due_at =
                millis.parse().ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
            let due_at = due_at
                .ok_or_else(|| invalid("the part after `/` is not a time in milliseconds"))?;
            return Ok(Self::scheduled(job.parse()?, due_at));
        }
        let parts: Vec<&str> = text.split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        let hex = parts.concat();
        let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(&hex, 16) {
            Ok(bits) if is_hex && lengths == [8, 4, 4, 4, 12] => {
                Ok(Self(RunIdKind::Triggered(bits)))
            }
            _ => Err(invalid("it is neither job/milliseconds nor a UUID")),
        }
    }
}

/// One try at one shard of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Number within the run, from one.
    pub number: NonZeroU32,
    pub reason: RunReason,
}

impl Attempt {
    pub const FIRST: Self = Self { number: NonZeroU32::MIN, reason: RunReason::Schedule };

    /// The attempt after this one.
    #[must_use]
    pub fn next(self, reason: RunReason) -> Self {
        Self { number: self.number.saturating_add(1), reason }
    }
}

/// Why a shard runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunReason {
    Schedule,
    /// A person or program requested the run.
    Trigger,
    /// The fire was due while the previous run was still going.
    Misfire,
    /// The instance that ran the shard died.
    Failover,
    /// The previous attempt failed.
    Retry,
    /// The fire was due while no instance was up.
    CatchUp,
}

impl RunReason {
    pub const ALL: [Self; 6] =
        [Self::Schedule, Self::Trigger, Self::Misfire, Self::Failover, Self::Retry, Self::CatchUp];

    /// `schedule`, `trigger`, `misfire`, `failover`, `retry` or `catch_up`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Trigger => "trigger",
            Self::Misfire => "misfire",
            Self::Failover => "failover",
            Self::Retry => "retry",
            Self::CatchUp => "catch_up",
        }
    }
}

/// Grows with every claim of a shard, across all instances. A system that stores the token with a shard's data and refuses smaller
/// tokens is protected: a run that lost its lease cannot overwrite what its successor wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FencingToken(i64);

impl FencingToken {
    /// From the transaction number of a claim.
    pub const fn new(transaction: i64) -> Self {
        Self(transaction)
    }

    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Java ElasticJob's id for the shards of one run on one instance: `settle@-@0,1@-@READY@-@10.0.0.7@-@4711`.
///
/// ```
/// use elasticjob::job::TaskId;
///
/// let task: TaskId = "settle@-@0,1@-@READY@-@10.0.0.7@-@4711".parse()?;
/// assert_eq!(task.items, [0, 1]);
/// assert_eq!(task.instance.server(), "10.0.0.7");
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskId {
    pub job: JobName,
    pub items: Vec<u32>,
    pub instance: InstanceId,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.items.iter().map(u32::to_string).collect();
        write!(f, "{}@-@{}@-@READY@-@{}", self.job, items.join(","), self.instance)
    }
}

impl FromStr for TaskId {
    type Err = InvalidValue;

    /// The part that reads READY is not checked: Java writes no other value, although it defines one.
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let parts: Vec<&str> = text.split("@-@").collect();
        let [job, items, _, server, process] = parts[..] else {
            let problem = "it does not have five parts separated by @-@; for example j@-@0,1@-@READY@-@10.0.0.7@-@4711";
            return Err(InvalidValue::new("task id", text, problem));
        };
        let numbers: Result<Vec<u32>, _> =
            items.split(',').filter(|_| !items.is_empty()).map(str::parse).collect();
        Ok(Self {
            job: job.parse()?,
            items: numbers.map_err(|_| {
                InvalidValue::new(
                    "task id",
                    text,
                    format!("{items:?} is not a list of shard numbers"),
                )
            })?,
            instance: format!("{server}@-@{process}").parse()?,
        })
    }
}

/// One shard of a run, as passed to a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shard {
    pub job: JobName,
    pub run: RunId,
    pub attempt: Attempt,
    /// Java ElasticJob's id for the shards of this run on this instance.
    pub task: TaskId,
    /// Number of shards of the job.
    pub total: ShardCount,
    /// Number of this shard, from zero.
    pub item: u32,
    /// This shard's parameter, from `shardingItemParameters`.
    pub parameter: Option<String>,
    /// The parameter of the whole job.
    pub job_parameter: String,
    /// When the run was due.
    pub due_at: Timestamp,
    /// Grows with every claim of this shard.
    pub token: FencingToken,
    /// The author of the trigger, if there is one and it is known. A failover run does not know it.
    pub triggered_by: Option<String>,
    expected: Option<ExpectedShards>,
    cancel: ShardCancel,
}

/// The shard's cancellation request, which comparison of shards ignores.
#[derive(Debug, Clone, Default)]
struct ShardCancel(CancelToken);

impl PartialEq for ShardCancel {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ShardCancel {}

impl Shard {
    /// The first attempt at a shard of this fire, with the job's current configuration.
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
            expected: None,
            cancel: ShardCancel::default(),
        }
    }

    /// Sets the attempt.
    #[must_use]
    pub fn attempt(mut self, attempt: Attempt) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets how many shards the run should have.
    #[must_use]
    pub fn expecting(mut self, expected: Option<ExpectedShards>) -> Self {
        self.expected = expected;
        self
    }

    /// How many shards the run should have; `None` if the instance that claimed this shard did not know, as after a takeover.
    pub fn expected(&self) -> Option<ExpectedShards> {
        self.expected
    }

    /// Sets the cancellation request.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: CancelToken) -> Self {
        self.cancel = ShardCancel(cancel);
        self
    }

    /// The cancellation request. A long-running handler checks it from time to time, or waits for it alongside its work.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel.0
    }

    /// The sharding context that scripts and HTTP jobs receive.
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
    fn triggered_run_id_is_a_uuid() {
        let run = RunId::triggered(u128::MAX);

        assert_eq!(run.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
        assert!(!run.is_scheduled());
    }

    #[test]
    fn invalid_run_ids_are_refused() {
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
    fn task_id_round_trips_as_text() {
        for text in ["j@-@@-@READY@-@1.2.3.4@-@5", "报表@-@0,11@-@READY@-@1.2.3.4@-@5-ab"] {
            assert_eq!(text.parse::<TaskId>().unwrap().to_string(), text);
        }
        for text in ["j", "j@-@x@-@READY@-@1.2.3.4@-@5", "j@-@0@-@READY@-@host@-@5"] {
            assert!(text.parse::<TaskId>().is_err(), "{text}");
        }
    }

    #[test]
    fn shard_gets_its_parameters_from_the_job() {
        let job = Job::named("j").unwrap().shards(2).items("1=x").unwrap().parameter("p");
        let fire = Fire::scheduled(job.name.clone(), Timestamp::UNIX_EPOCH);
        let task: TaskId = "j@-@0,1@-@READY@-@1.2.3.4@-@5".parse().unwrap();

        let shard = Shard::of(&job, &fire, task, 1, FencingToken::new(7));
        let again = shard.clone().attempt(shard.attempt.next(RunReason::Retry));

        assert_eq!((shard.parameter.as_deref(), shard.job_parameter.as_str()), (Some("x"), "p"));
        assert_eq!((again.attempt.number.get(), again.attempt.reason), (2, RunReason::Retry));
        assert_eq!(again.run, fire.run);
    }
}
