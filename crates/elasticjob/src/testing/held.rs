//! Tokio's paused time as a clock that stands still unless it is let pass.
//!
//! A runtime whose time is paused moves it only when nobody has anything to do, and then to the next instant somebody waits for.
//! So whoever sleeps through it knows on waking that everything before has happened, and nobody has to guess how long that takes.
//! The schedule, sessions, timeouts and the sleeps of a handler all go by the same time.
//!
//! Two things are added. Time passes only as far as it was allowed to ([`Hands::limit`]), not whenever a test happens to wait for
//! something. And at the end of it everybody who is due at that very instant has to have come to rest: that is seen by sleeping one
//! tick more, which is then not counted ([`Hands::uncounted`]).

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::{sync::watch, time::Instant};

use crate::runtime::{Clock, Monotonic, SystemClock};

/// The least that tokio's time moves.
const TICK: Duration = Duration::from_millis(1);

/// Not at zero, so that "long ago" can be told from "never".
const START: Duration = Duration::from_hours(1);

/// A clock that stands still unless it is let pass. Clones are the same clock.
#[derive(Debug, Clone)]
pub(super) struct HeldClock {
    epoch: Timestamp,
    begun: Instant,
    hands: watch::Sender<Hands>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hands {
    /// How far time may pass, from the beginning.
    limit: Duration,
    /// Time of tokio's that is none of ours.
    uncounted: Duration,
}

impl HeldClock {
    /// Shows `epoch` until it is let pass. The runtime's time must be paused.
    pub(super) fn at(epoch: Timestamp) -> Self {
        Self { epoch, begun: tokio_now(), hands: watch::Sender::new(Hands::default()) }
    }

    /// Lets this much time pass, and everything that is due meanwhile happen. On return everybody waits for something.
    pub(super) async fn pass(&self, span: Duration) {
        let hands = *self.hands.borrow();
        let until = hands.limit.saturating_add(span);
        self.hands.send_modify(|hands| hands.limit = until);
        tokio::time::sleep_until(self.begun + hands.uncounted + until).await;
        tokio::time::sleep(TICK).await;
        self.hands.send_modify(|hands| hands.uncounted += TICK);
    }

    fn elapsed(&self, hands: Hands) -> Duration {
        let counted = (tokio_now() - self.begun).saturating_sub(hands.uncounted);
        counted.min(hands.limit)
    }
}

#[async_trait]
impl Clock for HeldClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.elapsed(*self.hands.borrow());
        self.epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(START + self.elapsed(*self.hands.borrow()))
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        let deadline = deadline.since_start().saturating_sub(START);
        let mut changes = self.hands.subscribe();
        loop {
            let hands = *changes.borrow_and_update();
            if self.elapsed(hands) >= deadline {
                return;
            }
            // The sender lives in `self`, so the channel cannot be closed here.
            if deadline > hands.limit {
                let _ = changes.changed().await;
            } else {
                tokio::select! {
                    _ = changes.changed() => {}
                    () = tokio::time::sleep_until(self.begun + hands.uncounted + deadline) => {}
                }
            }
        }
    }

    async fn sleep_until_shown(&self, then: Timestamp) {
        // Nobody sets it, so one sleep is enough: a night is not thirty thousand looks.
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

#[expect(clippy::disallowed_methods, reason = "the one place that asks for tokio's paused time")]
fn tokio_now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::runtime::Tasks;

    fn clock() -> HeldClock {
        HeldClock::at("2026-11-15T06:00:00Z".parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_only_as_far_as_it_is_let() {
        let clock = clock();

        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(clock.now().to_string(), "2026-11-15T06:00:00Z");
        clock.pass(Duration::from_secs(90)).await;

        assert_eq!(clock.now().to_string(), "2026-11-15T06:01:30Z");
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_wakes_at_their_own_instant_and_has_come_to_rest_when_time_stands_still() {
        let clock = clock();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Tasks::new();
        for seconds in [3, 1, 2, 9] {
            let (clock, seen) = (clock.clone(), Arc::clone(&seen));
            let deadline = clock.monotonic() + Duration::from_secs(seconds);
            tasks.spawn(async move {
                clock.sleep_until(deadline).await;
                // What there is to do at an instant may take many turns.
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                seen.lock().unwrap().push((seconds, clock.now().as_second() % 60));
            });
        }

        clock.pass(Duration::from_secs(1)).await;
        assert_eq!(*seen.lock().unwrap(), [(1, 1)]);
        clock.pass(Duration::from_secs(2)).await;

        assert_eq!(*seen.lock().unwrap(), [(1, 1), (2, 2), (3, 3)]);
    }
}
