//! A clock that tests advance by hand.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::runtime::{Clock, Monotonic};

/// A clock that a test advances by hand. Clones are the same clock.
///
/// ```
/// use std::time::Duration;
/// use elasticjob::{runtime::Clock, testing::ManualClock};
///
/// let clock = ManualClock::at("2026-03-29T02:00:00Z".parse()?);
/// clock.advance(Duration::from_secs(90));
/// assert_eq!(clock.now().to_string(), "2026-03-29T02:01:30Z");
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    readings: Arc<Mutex<Readings>>,
    advanced: watch::Sender<Monotonic>,
}

#[derive(Debug, Clone, Copy)]
struct Readings {
    now: Timestamp,
    monotonic: Monotonic,
}

impl ManualClock {
    /// Creates a clock that shows `now` until it is advanced.
    pub fn at(now: Timestamp) -> Self {
        // Does not start at zero, so that a reading long ago differs from one that stands for "never".
        let monotonic = Monotonic::from_start(Duration::from_hours(1));
        Self {
            readings: Arc::new(Mutex::new(Readings { now, monotonic })),
            advanced: watch::Sender::new(monotonic),
        }
    }

    /// Advances wall-clock and monotonic time.
    pub fn advance(&self, span: Duration) {
        let mut readings = self.lock();
        readings.now = readings.now.saturating_add(span).unwrap_or(Timestamp::MAX);
        readings.monotonic = readings.monotonic + span;
        self.advanced.send_replace(readings.monotonic);
    }

    /// Sets the wall clock, as an operator or NTP might; monotonic time does not advance.
    pub fn set_wall(&self, now: Timestamp) {
        self.lock().now = now;
    }

    fn lock(&self) -> MutexGuard<'_, Readings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn monotonic(&self) -> Monotonic {
        self.lock().monotonic
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        let mut advanced = self.advanced.subscribe();
        // The sender lives in `self`, so the channel cannot be closed here.
        let _ = advanced.wait_for(|now| *now >= deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn sleeper_wakes_at_its_deadline_and_not_before() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let deadline = clock.monotonic() + Duration::from_secs(10);
        let mut sleeper = std::pin::pin!(clock.sleep_until(deadline));

        let mut context = Context::from_waker(Waker::noop());

        clock.advance(Duration::from_secs(9));
        assert!(sleeper.as_mut().poll(&mut context).is_pending());

        clock.advance(Duration::from_secs(1));
        assert!(sleeper.as_mut().poll(&mut context).is_ready());
    }
}
