//! Policies: failover, misfire, monitoring, overwrite, resharding, lease loss, catch-up and retry.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use super::{bounds::MAX_DURATION, duration, error::InvalidValue};

/// What happens to a running shard whose instance dies: `failover`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Failover {
    /// The shard runs again in the next regular run.
    #[default]
    Wait,
    /// Another instance takes the shard over at once. Requires [`Monitor::Executions`].
    TakeOver,
}

/// What happens to a fire that is due while the previous run is still going: `misfire`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Misfire {
    /// The fire does not run.
    Skip,
    /// The job runs once more, right after the previous run.
    #[default]
    RunOnce,
}

/// Whether running shards are recorded in the registry: `monitorExecution`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Monitor {
    /// No. Saves two writes per run, but there is no failover, and two runs of a shard may overlap on different instances.
    Nothing,
    /// Yes: which shards run, and on which instance.
    #[default]
    Executions,
}

/// Which configuration is used if the program's and the stored one differ at start: `overwrite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// The stored one; differences are logged.
    #[default]
    StoredWins,
    /// The program's, which is stored.
    LocalWins,
}

/// When shards are reassigned: `staticSharding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resharding {
    /// Whenever instances join or leave.
    #[default]
    Elastic,
    /// Only when the number of shards changes.
    Static,
}

/// How far an instance's clock may differ from the registry's: `maxTimeDiffSeconds`. Negative means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxTimeDiff(i32);

impl MaxTimeDiff {
    /// No limit.
    pub const ANY: Self = Self(-1);

    /// A limit in seconds.
    pub const fn seconds(seconds: i32) -> Self {
        Self(seconds)
    }

    /// The number as stored.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The limit, if there is one; at most ten years, so that no clock overflows.
    pub fn limit(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(|seconds| Duration::from_secs(seconds).min(MAX_DURATION))
    }
}

impl Default for MaxTimeDiff {
    fn default() -> Self {
        Self::ANY
    }
}

/// How often the leader checks that every shard's owner is alive: `reconcileIntervalMinutes`. Zero or less means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconcile(i32);

impl Reconcile {
    pub const OFF: Self = Self(0);

    /// An interval in minutes.
    pub const fn minutes(minutes: i32) -> Self {
        Self(minutes)
    }

    /// The number as stored.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The interval, if there is one. Java accepts thousands of years, in which nothing is checked: ten years are as good, and no clock overflows.
    pub fn interval(self) -> Option<Duration> {
        let minutes = u64::try_from(self.0).ok().filter(|minutes| *minutes > 0)?;
        Some(Duration::from_mins(minutes).min(MAX_DURATION))
    }
}

impl Default for Reconcile {
    /// Ten minutes.
    fn default() -> Self {
        Self(10)
    }
}

/// What happens to a running shard whose instance loses its lease: `elasticjob.on.lease.loss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LeaseLoss {
    /// It is cancelled before another instance can start it (`cancel`).
    #[default]
    Cancel,
    /// It runs to its end and counts as fenced, not as succeeded (`finish-fenced`). Its fencing token lets others refuse its late writes.
    FinishFenced,
    /// It continues normally (`continue`). For work that may safely happen twice.
    Continue,
}

impl FromStr for LeaseLoss {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "cancel" => Ok(Self::Cancel),
            "finish-fenced" => Ok(Self::FinishFenced),
            "continue" => Ok(Self::Continue),
            _ => Err(InvalidValue::new(
                "lease loss policy",
                text,
                "cancel, finish-fenced or continue",
            )),
        }
    }
}

impl fmt::Display for LeaseLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancel => "cancel",
            Self::FinishFenced => "finish-fenced",
            Self::Continue => "continue",
        })
    }
}

/// What happens to fires that were due while no instance was up: `elasticjob.catch.up`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CatchUp {
    /// They are reported as missed and do not run (`none`).
    #[default]
    None,
    /// The last of them runs (`last`).
    Last,
    /// All of them run, in order, except those older than the window (`all:6h`).
    All { window: Duration },
}

impl FromStr for CatchUp {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "last" => Ok(Self::Last),
            Some(("all", window)) => {
                Ok(Self::All { window: duration::parse("catch-up window", window)? })
            }
            _ => Err(InvalidValue::new(
                "catch-up",
                text,
                "none, last, or all within a window: all:6h",
            )),
        }
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Last => f.write_str("last"),
            Self::All { window } => write!(f, "all:{}", duration::format(*window)),
        }
    }
}

/// How a failed shard is retried: `elasticjob.retry.max.attempts` and `elasticjob.retry.backoff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retry {
    /// Attempts at a shard in one run, including the first; one means no retry.
    pub max_attempts: NonZeroU32,
    /// How long to wait between attempts.
    pub backoff: Backoff,
}

impl Retry {
    /// A failed shard is not retried in the same run.
    pub const NEVER: Self = Self { max_attempts: NonZeroU32::MIN, backoff: Backoff::DEFAULT };

    /// At most this many attempts, with the default back-off: one second, then twice as long each time, up to a minute.
    pub fn attempts(max_attempts: u32) -> Self {
        Self {
            max_attempts: NonZeroU32::new(max_attempts).unwrap_or(NonZeroU32::MIN),
            ..Self::NEVER
        }
    }

    /// Sets the wait between attempts.
    #[must_use]
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self { backoff: Backoff { first, longest: longest.max(first) }, ..self }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::NEVER
    }
}

/// How long to wait before the next attempt: twice as long each time, with jitter, up to a limit. `1s..1m`, or `5s` for a constant wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The wait before the second attempt.
    pub first: Duration,
    /// The upper limit of a wait.
    pub longest: Duration,
}

impl Backoff {
    /// One second to one minute.
    pub const DEFAULT: Self =
        Self { first: Duration::from_secs(1), longest: Duration::from_mins(1) };

    /// How long to wait after `failed` failed attempts, before jitter.
    pub fn after(self, failed: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest.max(self.first))
    }
}

impl FromStr for Backoff {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let (first, longest) = text.split_once("..").unwrap_or((text, text));
        let backoff = Self {
            first: duration::parse("retry back-off", first)?,
            longest: duration::parse("retry back-off", longest)?,
        };
        if backoff.longest < backoff.first {
            let problem = "the longest wait is shorter than the first; for example 1s..1m";
            return Err(InvalidValue::new("retry back-off", text, problem));
        }
        Ok(backoff)
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, longest) = (duration::format(self.first), duration::format(self.longest));
        if first == longest { f.write_str(&first) } else { write!(f, "{first}..{longest}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_round_trip_as_text() {
        for text in ["cancel", "finish-fenced", "continue"] {
            assert_eq!(text.parse::<LeaseLoss>().unwrap().to_string(), text);
        }
        for text in ["none", "last", "all:6h"] {
            assert_eq!(text.parse::<CatchUp>().unwrap().to_string(), text);
        }
        for text in ["5s", "1s..1m"] {
            assert_eq!(text.parse::<Backoff>().unwrap().to_string(), text);
        }
        assert!("all".parse::<CatchUp>().is_err());
        assert!("1m..1s".parse::<Backoff>().is_err());
    }

    #[test]
    fn backoff_doubles_up_to_its_limit() {
        let seconds = |failed| Backoff::DEFAULT.after(failed).as_secs();

        assert_eq!(
            [seconds(1), seconds(2), seconds(3), seconds(7), seconds(u32::MAX)],
            [1, 2, 4, 60, 60]
        );
    }

    #[test]
    fn numbers_that_mean_off_are_no_interval_or_limit() {
        assert_eq!(Reconcile::OFF.interval(), None);
        assert_eq!(Reconcile::minutes(-1).interval(), None);
        assert_eq!(Reconcile::default().interval(), Some(Duration::from_mins(10)));
        assert_eq!(MaxTimeDiff::ANY.limit(), None);
        assert_eq!(MaxTimeDiff::seconds(0).limit(), Some(Duration::ZERO));
        assert_eq!(MaxTimeDiff::seconds(i32::MAX).limit(), Some(MAX_DURATION));
        assert_eq!(Reconcile::minutes(i32::MAX).interval(), Some(MAX_DURATION));
        assert_eq!(Reconcile::minutes(i32::MAX).get(), i32::MAX, "it is stored as it is");
    }
}
