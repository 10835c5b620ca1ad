//! What time it is.

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;

/// A reading of a clock that never goes back and goes on while the machine sleeps. Only differences mean anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// A reading this long after the clock's own beginning.
    pub const fn from_start(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// How long after the clock's own beginning.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// How long after `earlier`; zero if it was before.
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

/// Tells the time and waits for it. Only loops ask a clock; everything else takes the time as an argument.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now, on the wall. It can jump, so it is for people and for cron, never for how long something took.
    fn now(&self) -> Timestamp;

    /// Now, on a clock that counts the time the machine was suspended: a lease runs out in a sleeping laptop, too.
    fn monotonic(&self) -> Monotonic;

    /// Returns at `deadline` or soon after; at once if it has passed.
    async fn sleep_until(&self, deadline: Monotonic);

    /// Returns when the wall shows `then`, or soon after. That clock can be set and a machine can sleep, so it is looked at every
    /// second; a clock that nobody sets may know better.
    async fn sleep_until_shown(&self, then: Timestamp) {
        const LOOK: Duration = Duration::from_secs(1);
        loop {
            let left = Duration::try_from(then.duration_since(self.now())).unwrap_or_default();
            if left.is_zero() {
                return;
            }
            self.sleep_until(self.monotonic() + left.min(LOOK)).await;
        }
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that asks the machine for the time"
    )]
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
        // The runtime's timers stand still while the machine sleeps, so look again in steps instead of trusting one long one.
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
    fn the_system_clock_never_goes_back() {
        let first = SystemClock.monotonic();
        let second = SystemClock.monotonic();

        assert!(second >= first);
    }

    #[test]
    fn differences_never_wrap() {
        let start = Monotonic::from_start(Duration::from_secs(1));

        assert_eq!((start - Duration::from_secs(5)).since_start(), Duration::ZERO);
        assert_eq!(start.saturating_since(start + Duration::from_secs(1)), Duration::ZERO);
    }
}
