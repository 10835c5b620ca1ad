//! Wall-clock and monotonic time behind a trait.

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;

/// A reading of a clock that never goes back and keeps running while the machine is suspended. Only differences are meaningful.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// A reading this long after the clock's start.
    pub const fn from_start(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// Time since the clock's start.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// Time since `earlier`; zero if `earlier` is later than this reading.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl Sub<Duration> for Monotonic {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

impl fmt::Debug for Monotonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} since start", self.0)
    }
}

/// Reads the time and waits for it. Only loops use a clock; all other code takes the time as an argument.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Wall-clock time. It can jump, so use it for people and for cron, never to measure durations.
    fn now(&self) -> Timestamp;

    /// Monotonic time, including time spent suspended: a lease also expires on a sleeping laptop.
    fn monotonic(&self) -> Monotonic;

    /// Returns at `deadline` or shortly after; immediately if it has passed.
    async fn sleep_until(&self, deadline: Monotonic);

    /// Returns when the wall clock reaches `then`, or shortly after. The wall clock can be set and a machine can be suspended, so this
    /// default checks it every second; an implementation whose clock cannot be set may override it.
    async fn sleep_until_wall_time(&self, then: Timestamp) {
        const CHECK_INTERVAL: Duration = Duration::from_secs(1);
        loop {
            let left = Duration::try_from(then.duration_since(self.now())).unwrap_or_default();
            if left.is_zero() {
                return;
            }
            self.sleep_until(self.monotonic() + left.min(CHECK_INTERVAL)).await;
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system time")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Monotonic {
        let reading = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(reading.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(reading.tv_nsec).unwrap_or(0);
        Monotonic(Duration::new(seconds, nanos))
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        // Tokio's timers stop while the machine is suspended, so sleep in short steps and check the clock after each.
        const STEP: Duration = Duration::from_secs(1);
        loop {
            let left = deadline.saturating_since(self.monotonic());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(STEP)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_never_goes_back() {
        let first = SystemClock.monotonic();
        let second = SystemClock.monotonic();

        assert!(second >= first);
    }

    #[test]
    fn differences_saturate_at_zero() {
        let start = Monotonic::from_start(Duration::from_secs(1));

        assert_eq!((start - Duration::from_secs(5)).since_start(), Duration::ZERO);
        assert_eq!(start.saturating_since(start + Duration::from_secs(1)), Duration::ZERO);
    }
}
