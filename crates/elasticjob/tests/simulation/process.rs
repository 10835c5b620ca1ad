//! A process and its clock: both can be stopped, and one of them can be wrong.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use tokio::{sync::Notify, time::Instant};

use elasticjob::runtime::{Clock, Monotonic};

/// Not at zero, so that "long ago" can be told from "never".
const START: Duration = Duration::from_hours(1);

/// Whether a process gets on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Runs,
    /// As with SIGSTOP, or a long pause of a virtual machine.
    Frozen,
    /// As with `kill -9`.
    Gone,
}

/// One process. Whatever waits in it goes on only while it runs.
#[derive(Debug, Clone)]
pub(super) struct Process(Arc<(Mutex<Life>, Notify)>);

impl Process {
    pub(super) fn new() -> Self {
        Self(Arc::new((Mutex::new(Life::Runs), Notify::new())))
    }

    pub(super) fn life(&self) -> Life {
        *self.0.0.lock().expect("nobody panics with it")
    }

    /// What is gone stays gone.
    pub(super) fn set(&self, life: Life) {
        let mut now = self.0.0.lock().expect("nobody panics with it");
        if *now != Life::Gone {
            *now = life;
        }
        self.0.1.notify_waiters();
    }

    /// Returns while the process runs: at once, after it is thawed, or never.
    pub(super) async fn runs(&self) {
        loop {
            let mut changed = pin!(self.0.1.notified());
            changed.as_mut().enable();
            if self.life() == Life::Runs {
                return;
            }
            changed.await;
        }
    }
}

/// Tokio's paused time, as everybody's true time.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrueTime {
    begun: Instant,
    epoch: Timestamp,
}

impl TrueTime {
    pub(super) fn starting_at(epoch: Timestamp) -> Self {
        Self { begun: tokio_now(), epoch }
    }

    pub(super) fn elapsed(&self) -> Duration {
        tokio_now() - self.begun
    }

    /// How long after the beginning this instant is.
    pub(super) fn since_epoch(&self, then: Timestamp) -> SignedDuration {
        then.duration_since(self.epoch)
    }

    pub(super) fn at(&self, elapsed: Duration) -> Timestamp {
        self.epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

#[async_trait]
impl Clock for TrueTime {
    fn now(&self) -> Timestamp {
        self.at(self.elapsed())
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(START + self.elapsed())
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        let then = deadline.since_start().saturating_sub(START);
        tokio::time::sleep_until(self.begun + then).await;
    }
}

/// The clock of one process: its wall may be wrong, and it stands still while the process does.
#[derive(Clone)]
pub(super) struct ProcessClock {
    pub(super) time: TrueTime,
    pub(super) process: Process,
    /// By how many milliseconds its wall is ahead.
    pub(super) ahead: Arc<AtomicI64>,
}

impl fmt::Debug for ProcessClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessClock({} ms ahead)", self.ahead.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_millis(self.ahead.load(Ordering::Relaxed));
        self.time.now().saturating_add(ahead).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Monotonic {
        self.time.monotonic()
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        self.time.sleep_until(deadline).await;
        self.process.runs().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's paused time is the simulation's time")]
fn tokio_now() -> Instant {
    Instant::now()
}
