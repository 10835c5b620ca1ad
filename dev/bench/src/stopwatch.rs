//! The only place where a benchmark reads the clock.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Measures the time since its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started_at: Instant,
    busy_before: Duration,
}

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time, here only")]
    pub(crate) fn start() -> Self {
        Self { started_at: Instant::now(), busy_before: busy() }
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.started_at.elapsed()
    }

    /// Processor time of this process since the start.
    pub(crate) fn busy(self) -> Duration {
        busy().saturating_sub(self.busy_before)
    }

    /// The rate per second, for `count` operations since the start.
    pub(crate) fn rate(self, count: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
        let count = count as f64;
        count / self.elapsed().as_secs_f64()
    }
}

fn busy() -> Duration {
    let reading = clock_gettime(ClockId::ProcessCPUTime);
    // Never negative.
    Duration::new(reading.tv_sec as u64, reading.tv_nsec as u32)
}
