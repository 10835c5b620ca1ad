//! Time that passes when told to.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::runtime::{Clock, Monotonic};

/// A clock that a test turns by hand. Clones are the same clock.
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
    hands: Arc<Mutex<Hands>>,
    moved: watch::Sender<Monotonic>,
}

#[derive(Debug, Clone, Copy)]
struct Hands {
    now: Timestamp,
    monotonic: Monotonic,
}

impl ManualClock {
    /// A clock that shows `now` until it is moved.
    pub fn at(now: Timestamp) -> Self {
        // Not at zero, so that "long ago" can be told from "never".
        let monotonic = Monotonic::from_start(Duration::from_hours(1));
        Self {
            hands: Arc::new(Mutex::new(Hands { now, monotonic })),
            moved: watch::Sender::new(monotonic),
        }
    }

    /// Lets this much time pass.
    pub fn advance(&self, span: Duration) {
        let mut hands = self.lock();
        hands.now = hands.now.saturating_add(span).unwrap_or(Timestamp::MAX);
        hands.monotonic = hands.monotonic + span;
        self.moved.send_replace(hands.monotonic);
    }

    /// Sets the wall clock, as an operator or NTP might; no time passes.
    pub fn set_wall(&self, now: Timestamp) {
        self.lock().now = now;
    }

    fn lock(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut moved = self.moved.subscribe();
        // The sender lives in `self`, so the channel cannot be closed here.
        let _ = moved.wait_for(|now| *now >= deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_sleeper_wakes_when_its_time_is_turned_to_and_not_before() {
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
