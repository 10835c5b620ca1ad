//! What happens when: a node dies, a run is late, a lease is lost, a shard fails, nobody was there.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use super::{duration, error::Invalid};

/// If the node that runs a shard dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Failover {
    /// The shard runs again with the next regular run.
    #[default]
    Wait,
    /// Another node takes the shard over at once. Needs [`Monitor::Executions`].
    TakeOver,
}

/// If a job is due while its last run is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Misfire {
    /// Nothing; the run that was due does not happen.
    Skip,
    /// It runs once more, right after.
    #[default]
    RunOnce,
}

/// What the registry is told about running shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Monitor {
    /// Nothing: two writes fewer for each run, but no failover, and two runs of a shard may overlap on different nodes.
    Nothing,
    /// Which shards run, and where.
    #[default]
    Executions,
}

/// If the job's own configuration and the stored one differ at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// What is stored counts, and what differs is logged.
    #[default]
    StoredWins,
    /// What the program says is stored.
    LocalWins,
}

/// When shards are dealt again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resharding {
    /// Whenever instances come or go.
    #[default]
    Elastic,
    /// Once, and again only when their number changes (`staticSharding`).
    Static,
}

/// How far a node's clock may be from the registry's: `maxTimeDiffSeconds`. Negative means that nobody looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxTimeDiff(i32);

impl MaxTimeDiff {
    /// Nobody looks.
    pub const ANY: Self = Self(-1);

    /// At most this many seconds.
    pub const fn seconds(seconds: i32) -> Self {
        Self(seconds)
    }

    /// The stored number.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The limit, if there is one.
    pub fn limit(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_secs)
    }
}

impl Default for MaxTimeDiff {
    fn default() -> Self {
        Self::ANY
    }
}

/// How often the leader looks whether a shard's owner is still there: `reconcileIntervalMinutes`. Zero and less mean never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconcile(i32);

impl Reconcile {
    /// Never.
    pub const OFF: Self = Self(0);

    /// Every so many minutes.
    pub const fn minutes(minutes: i32) -> Self {
        Self(minutes)
    }

    /// The stored number.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The interval, if there is one.
    pub fn interval(self) -> Option<Duration> {
        let minutes = u64::try_from(self.0).ok().filter(|minutes| *minutes > 0)?;
        Some(Duration::from_secs(60 * minutes))
    }
}

impl Default for Reconcile {
    /// Ten minutes.
    fn default() -> Self {
        Self(10)
    }
}

/// If a running shard's lease is lost: `elasticjob.on.lease.loss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LeaseLoss {
    /// It is cancelled before anybody else can start it (`cancel`).
    #[default]
    Cancel,
    /// It runs to its end and counts as fenced, not as done (`finish-fenced`). Its fencing token keeps late writes out.
    FinishFenced,
    /// It runs on as if nothing had happened (`continue`). For work that may happen twice.
    Continue,
}

impl FromStr for LeaseLoss {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "cancel" => Ok(Self::Cancel),
            "finish-fenced" => Ok(Self::FinishFenced),
            "continue" => Ok(Self::Continue),
            _ => Err(Invalid::new("lease loss policy", text, "cancel, finish-fenced or continue")),
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

/// What becomes of fires that nobody was there for: `elasticjob.catch.up`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CatchUp {
    /// They are reported and not run (`none`).
    #[default]
    None,
    /// The last of them runs (`last`).
    Last,
    /// All of them run, in order, unless they are older than the window (`all:6h`).
    All {
        /// How old a fire may be.
        window: Duration,
    },
}

impl FromStr for CatchUp {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "last" => Ok(Self::Last),
            Some(("all", window)) => {
                Ok(Self::All { window: duration::parse("catch-up window", window)? })
            }
            _ => Err(Invalid::new("catch-up", text, "none, last, or all within a window: all:6h")),
        }
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Last => f.write_str("last"),
            Self::All { window } => write!(f, "all:{}", duration::text(*window)),
        }
    }
}

/// If a shard fails: `elasticjob.retry.max.attempts` and `elasticjob.retry.backoff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retry {
    /// How often a shard is tried in one run, the first time included; one means that it is not tried again.
    pub max_attempts: NonZeroU32,
    /// How long to wait in between.
    pub backoff: Backoff,
}

impl Retry {
    /// A shard that fails is not tried again in the same run.
    pub const NEVER: Self = Self { max_attempts: NonZeroU32::MIN, backoff: Backoff::DEFAULT };

    /// Tries once, and again until it was tried this often; waits one second, then twice as long each time, up to a minute.
    pub fn attempts(max_attempts: u32) -> Self {
        Self {
            max_attempts: NonZeroU32::new(max_attempts).unwrap_or(NonZeroU32::MIN),
            ..Self::NEVER
        }
    }

    /// Waits differently in between.
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

/// How long to wait before the next attempt: twice as long each time, with jitter, up to a limit. `1s..1m`, or `5s` for always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// Before the second attempt.
    pub first: Duration,
    /// Never longer than this.
    pub longest: Duration,
}

impl Backoff {
    /// One second to one minute.
    pub const DEFAULT: Self =
        Self { first: Duration::from_secs(1), longest: Duration::from_mins(1) };

    /// How long to wait after so many failed attempts, before jitter.
    pub fn after(self, failed: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest.max(self.first))
    }
}

impl FromStr for Backoff {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (first, longest) = text.split_once("..").unwrap_or((text, text));
        let backoff = Self {
            first: duration::parse("retry back-off", first)?,
            longest: duration::parse("retry back-off", longest)?,
        };
        if backoff.longest < backoff.first {
            let problem = "the longest wait is shorter than the first; for example 1s..1m";
            return Err(Invalid::new("retry back-off", text, problem));
        }
        Ok(backoff)
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, longest) = (duration::text(self.first), duration::text(self.longest));
        if first == longest { f.write_str(&first) } else { write!(f, "{first}..{longest}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_it_is_written() {
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
    fn a_wait_doubles_up_to_its_limit() {
        let seconds = |failed| Backoff::DEFAULT.after(failed).as_secs();

        assert_eq!(
            [seconds(1), seconds(2), seconds(3), seconds(7), seconds(u32::MAX)],
            [1, 2, 4, 60, 60]
        );
    }

    #[test]
    fn a_number_that_means_off_is_no_interval() {
        assert_eq!(Reconcile::OFF.interval(), None);
        assert_eq!(Reconcile::minutes(-1).interval(), None);
        assert_eq!(Reconcile::default().interval(), Some(Duration::from_mins(10)));
        assert_eq!(MaxTimeDiff::ANY.limit(), None);
        assert_eq!(MaxTimeDiff::seconds(0).limit(), Some(Duration::ZERO));
    }
}
