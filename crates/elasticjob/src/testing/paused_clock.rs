//! A clock on tokio's paused time that stands still unless a test advances it.
//!
//! A runtime with paused time advances it only when every task waits, and then to the next instant that a task waits for. So a task that sleeps knows
//! on waking that everything before that instant has happened, and a test need not guess how long that takes. The schedule, sessions, timeouts and
//! the sleeps of a handler all use the same time.
//!
//! This clock adds two things. Time passes only as far as the test allowed ([`Progress::limit`]), not whenever the test happens to wait for
//! something. And when the limit is reached, all tasks that are due at that instant have to finish their work first: the clock sleeps one more tick
//! and does not count it ([`Progress::uncounted`]).

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::{sync::watch, time::Instant};

use crate::runtime::{Clock, Monotonic, SystemClock};

/// The resolution of tokio's time.
const TICK: Duration = Duration::from_millis(1);

/// The first monotonic reading. Not zero, so that a reading long ago differs from one that stands for "never".
const START: Duration = Duration::from_hours(1);

/// A clock that stands still unless it is advanced. Clones are the same clock.
#[derive(Debug, Clone)]
pub(super) struct PausedClock {
    epoch: Timestamp,
    started: Instant,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// How far time may pass, from the start.
    limit: Duration,
    /// Tokio's time that this clock does not count.
    uncounted: Duration,
}

impl PausedClock {
    /// Creates a clock that shows `epoch` until it is advanced. The runtime's time must be paused.
    pub(super) fn at(epoch: Timestamp) -> Self {
        Self { epoch, started: tokio_now(), progress: watch::Sender::new(Progress::default()) }
    }

    /// Lets time pass; everything that is due meanwhile happens. On return, every task waits.
    pub(super) async fn advance(&self, span: Duration) {
        let progress = *self.progress.borrow();
        let until = progress.limit.saturating_add(span);
        self.progress.send_modify(|progress| progress.limit = until);
        tokio::time::sleep_until(self.started + progress.uncounted + until).await;
        tokio::time::sleep(TICK).await;
        self.progress.send_modify(|progress| progress.uncounted += TICK);
    }

    fn elapsed(&self, progress: Progress) -> Duration {
        let counted = (tokio_now() - self.started).saturating_sub(progress.uncounted);
        counted.min(progress.limit)
    }
}

#[async_trait]
impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.elapsed(*self.progress.borrow());
        self.epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(START + self.elapsed(*self.progress.borrow()))
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        let deadline = deadline.since_start().saturating_sub(START);
        let mut changes = self.progress.subscribe();
        loop {
            let progress = *changes.borrow_and_update();
            if self.elapsed(progress) >= deadline {
                return;
            }
            // The sender lives in `self`, so the channel cannot be closed here.
            if deadline > progress.limit {
                let _ = changes.changed().await;
            } else {
                tokio::select! {
                    _ = changes.changed() => {}
                    () = tokio::time::sleep_until(self.started + progress.uncounted + deadline) => {}
                }
            }
        }
    }

    async fn sleep_until_wall_time(&self, then: Timestamp) {
        // This clock cannot be set, so one sleep is enough; checking every second would make a night thirty thousand checks.
        let left = Duration::try_from(then.duration_since(self.now())).unwrap_or_default();
        self.sleep_until(self.monotonic() + left).await;
    }
}

/// Whether tokio's time stands still while real time passes.
pub(super) fn is_paused() -> bool {
    let (paused, real) = (tokio_now(), SystemClock.monotonic());
    while SystemClock.monotonic() == real {
        std::hint::spin_loop();
    }
    tokio_now() == paused
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads tokio's paused time")]
fn tokio_now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::runtime::Tasks;

    fn clock() -> PausedClock {
        PausedClock::at("2026-11-15T06:00:00Z".parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_only_as_far_as_allowed() {
        let clock = clock();

        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(clock.now().to_string(), "2026-11-15T06:00:00Z");
        clock.advance(Duration::from_secs(90)).await;

        assert_eq!(clock.now().to_string(), "2026-11-15T06:01:30Z");
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_wake_at_their_own_instant_and_finish_before_advance_returns() {
        let clock = clock();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Tasks::new();
        for seconds in [3, 1, 2, 9] {
            let (clock, seen) = (clock.clone(), Arc::clone(&seen));
            let deadline = clock.monotonic() + Duration::from_secs(seconds);
            tasks.spawn(async move {
                clock.sleep_until(deadline).await;
                // Work at one instant may take many polls.
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                seen.lock().unwrap().push((seconds, clock.now().as_second() % 60));
            });
        }

        clock.advance(Duration::from_secs(1)).await;
        assert_eq!(*seen.lock().unwrap(), [(1, 1)]);
        clock.advance(Duration::from_secs(2)).await;

        assert_eq!(*seen.lock().unwrap(), [(1, 1), (2, 2), (3, 3)]);
    }
}
