//! A simulated process, which can be frozen or killed, and its clock, which can be wrong.

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

/// The monotonic clock does not start at zero, so that an instant in the past differs from zero, which means "never".
const START: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessState {
    Running,
    /// As after SIGSTOP, or during a long pause of a virtual machine.
    Frozen,
    /// As after `kill -9`.
    Dead,
}

/// One process. Code that waits inside it continues only while the process is running.
#[derive(Debug, Clone)]
pub(super) struct Process(Arc<(Mutex<ProcessState>, Notify)>);

impl Process {
    pub(super) fn new() -> Self {
        Self(Arc::new((Mutex::new(ProcessState::Running), Notify::new())))
    }

    pub(super) fn state(&self) -> ProcessState {
        *self.0.0.lock().expect("no panic while locked")
    }

    /// A dead process stays dead.
    pub(super) fn set(&self, state: ProcessState) {
        let mut now = self.0.0.lock().expect("no panic while locked");
        if *now != ProcessState::Dead {
            *now = state;
        }
        self.0.1.notify_waiters();
    }

    /// Returns immediately if the process is running, later if it is frozen and thaws, and never if it is dead.
    pub(super) async fn wait_until_running(&self) {
        loop {
            let mut changed = pin!(self.0.1.notified());
            changed.as_mut().enable();
            if self.state() == ProcessState::Running {
                return;
            }
            changed.await;
        }
    }
}

/// The true time of the simulation, which is tokio's paused time.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrueTime {
    started: Instant,
    epoch: Timestamp,
}

impl TrueTime {
    pub(super) fn starting_at(epoch: Timestamp) -> Self {
        Self { started: tokio_now(), epoch }
    }

    pub(super) fn elapsed(&self) -> Duration {
        tokio_now() - self.started
    }

    /// Time from the start of the simulation to `then`.
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
        tokio::time::sleep_until(self.started + then).await;
    }
}

/// The registry's clock, whose wall time may be wrong.
#[derive(Debug, Clone)]
pub(super) struct RegistryClock {
    pub(super) time: TrueTime,
    /// Milliseconds by which it is ahead of the true time.
    pub(super) offset: Arc<AtomicI64>,
}

#[async_trait]
impl Clock for RegistryClock {
    fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_millis(self.offset.load(Ordering::Relaxed));
        self.time.now().saturating_add(offset).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Monotonic {
        self.time.monotonic()
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        self.time.sleep_until(deadline).await;
    }
}

/// The clock of one process. Its wall clock may be wrong, and a sleep on it does not end while the process is frozen.
#[derive(Clone)]
pub(super) struct ProcessClock {
    pub(super) time: TrueTime,
    pub(super) process: Process,
    /// Milliseconds by which the wall clock is ahead of the true time.
    pub(super) clock_offset: Arc<AtomicI64>,
}

impl fmt::Debug for ProcessClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessClock({} ms ahead)", self.clock_offset.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        let clock_offset = SignedDuration::from_millis(self.clock_offset.load(Ordering::Relaxed));
        self.time.now().saturating_add(clock_offset).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Monotonic {
        self.time.monotonic()
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        self.time.sleep_until(deadline).await;
        self.process.wait_until_running().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's paused time is the simulation's time")]
fn tokio_now() -> Instant {
    Instant::now()
}
