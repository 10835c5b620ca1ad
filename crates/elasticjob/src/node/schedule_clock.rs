//! The time by which a node's jobs are due.
//!
//! A wall clock can be set wrong, and so can the registry's. Schedule time follows the wall clock while both agree. While they do not, it runs on
//! without them, so that neither a clock that jumps nor a registry whose leader has another time starts a fire early, twice or not at all. A node
//! that starts with a clock that does not agree starts from the registry's time, which all nodes share.
//!
//! The registry's time is in the answer to every write that sets a node, so it costs no request: a claim tells it, and a release.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use crate::{
    coordination::ledger::CLOCK_TOLERANCE,
    runtime::{Clock, Monotonic},
};

/// The answer to a request that took longer says too little about the registry's time: the process may have been frozen meanwhile.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(5);
/// How soon a sleeper notices that the clocks agree again.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The time by which a node's jobs are due.
#[derive(Debug)]
pub(super) struct ScheduleClock {
    wall: Arc<dyn Clock>,
    readings: Mutex<Readings>,
}

#[derive(Debug, Default)]
struct Readings {
    /// The registry's time, and when it was that.
    registry: Option<(Timestamp, Monotonic)>,
    /// Schedule time as last shown, and when that was; `None` before the registry's time is known.
    schedule: Option<(Timestamp, Monotonic)>,
}

impl Readings {
    fn now(&mut self, wall: Timestamp, now: Monotonic) -> Timestamp {
        let Some(registry) = self.registry.map(|reading| later(reading, now)) else { return wall };
        let shown = if agree(wall.duration_since(registry)) {
            wall
        } else {
            later(self.schedule.unwrap_or((registry, now)), now)
        };
        self.schedule = Some((shown, now));
        shown
    }
}

/// What a clock that showed `at` when it was `then` shows `now`.
fn later((at, then): (Timestamp, Monotonic), now: Monotonic) -> Timestamp {
    at.saturating_add(now.saturating_since(then)).unwrap_or(Timestamp::MAX)
}

fn agree(skew: SignedDuration) -> bool {
    skew.abs() <= CLOCK_TOLERANCE
}

impl ScheduleClock {
    pub(super) fn new(wall: Arc<dyn Clock>) -> Self {
        Self { wall, readings: Mutex::default() }
    }

    /// The registry showed `at_ms` between `sent` and now.
    pub(super) fn observe(&self, at_ms: i64, sent: Monotonic) {
        let round_trip = self.wall.monotonic().saturating_since(sent);
        if let (true, Ok(at)) = (round_trip <= MAX_ROUND_TRIP, Timestamp::from_millisecond(at_ms)) {
            self.lock().registry = Some((at, sent + round_trip / 2));
        }
    }

    /// How far the wall clock is ahead of the registry's; `None` before the registry's time is known.
    pub(super) fn skew(&self) -> Option<SignedDuration> {
        let registry = later(self.lock().registry?, self.wall.monotonic());
        Some(self.wall.now().duration_since(registry))
    }

    /// Whether schedule time runs on without the wall clock.
    pub(super) fn is_free_running(&self) -> bool {
        self.skew().is_some_and(|skew| !agree(skew))
    }

    fn lock(&self) -> MutexGuard<'_, Readings> {
        // No code panics while it holds this lock.
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for ScheduleClock {
    fn now(&self) -> Timestamp {
        self.lock().now(self.wall.now(), self.wall.monotonic())
    }

    fn monotonic(&self) -> Monotonic {
        self.wall.monotonic()
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        self.wall.sleep_until(deadline).await;
    }

    async fn sleep_until_wall_time(&self, then: Timestamp) {
        loop {
            let left = Duration::try_from(then.duration_since(self.now())).unwrap_or_default();
            if left.is_zero() {
                return;
            }
            if self.is_free_running() {
                let check_at = self.wall.monotonic() + left.min(CHECK_INTERVAL);
                self.wall.sleep_until(check_at).await;
            } else {
                // The wall clock may be set meanwhile, and then no longer agree.
                tokio::select! {
                    biased;
                    () = self.wall.sleep_until_wall_time(then) => {}
                    () = self.wall.sleep_until(self.wall.monotonic() + left) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ManualClock;

    const HOUR: SignedDuration = SignedDuration::from_hours(1);

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A clock that agrees with the registry at six o'clock.
    fn agreed() -> (ManualClock, ScheduleClock) {
        let wall = ManualClock::at(at("2026-11-15T06:00:00Z"));
        let schedule = ScheduleClock::new(Arc::new(wall.clone()));
        schedule.observe(wall.now().as_millisecond(), wall.monotonic());
        assert_eq!(schedule.now(), wall.now());
        (wall, schedule)
    }

    #[test]
    fn schedule_time_runs_on_while_the_wall_clock_is_wrong() {
        for step in [HOUR, -HOUR] {
            let (wall, schedule) = agreed();

            wall.set_wall(wall.now() + step);
            wall.advance(Duration::from_secs(10));

            assert_eq!(schedule.now(), at("2026-11-15T06:00:10Z"));
            assert_eq!(schedule.skew(), Some(step));
            wall.set_wall(at("2026-11-15T06:00:12Z"));
            assert_eq!(schedule.now(), at("2026-11-15T06:00:12Z"), "they agree again");
        }
    }

    #[test]
    fn schedule_time_runs_on_when_the_registry_shows_another_time() {
        let (wall, schedule) = agreed();

        schedule.observe((wall.now() + HOUR).as_millisecond(), wall.monotonic());
        wall.advance(Duration::from_secs(10));

        assert_eq!(schedule.now(), at("2026-11-15T06:00:10Z"));
        wall.set_wall(wall.now() + HOUR);
        assert_eq!(schedule.now(), at("2026-11-15T07:00:10Z"), "both were set");
    }

    #[test]
    fn schedule_time_starts_from_the_registry() {
        let wall = ManualClock::at(at("2026-11-15T06:00:00Z"));
        let schedule = ScheduleClock::new(Arc::new(wall.clone()));
        assert_eq!((schedule.now(), schedule.skew()), (wall.now(), None));

        schedule.observe(at("2026-11-15T05:00:00Z").as_millisecond(), wall.monotonic());
        wall.advance(Duration::from_secs(10));

        assert_eq!(schedule.now(), at("2026-11-15T05:00:10Z"));
    }

    #[test]
    fn answer_that_took_long_says_nothing_about_the_time() {
        let (wall, schedule) = agreed();
        let sent = wall.monotonic();
        wall.advance(Duration::from_secs(100));

        schedule.observe(at("2026-11-15T06:00:01Z").as_millisecond(), sent);

        assert_eq!(schedule.skew(), Some(SignedDuration::ZERO));
    }
}
