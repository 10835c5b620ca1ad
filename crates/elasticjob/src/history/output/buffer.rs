//! Collects an attempt's lines and records them about every second.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::bounded::BoundedOutput;
use crate::{
    history::{Event, Recording},
    job::Shard,
    runtime::{AttachedValue, Clock},
};

/// How long a line waits before it is recorded.
const FLUSH_DELAY: Duration = Duration::from_secs(1);

/// The output buffers of a node.
pub(crate) struct OutputBuffers {
    recording: Recording,
    clock: Arc<dyn Clock>,
    limit: usize,
    /// Buffers with lines that are not recorded yet.
    unflushed: Mutex<Vec<Arc<OutputBuffer>>>,
    changed: Notify,
}

/// The output of one attempt.
pub(crate) struct OutputBuffer {
    all: Arc<OutputBuffers>,
    output: Mutex<BoundedOutput>,
    /// Whether it is in [`OutputBuffers::unflushed`].
    is_unflushed: AtomicBool,
}

impl OutputBuffers {
    pub(crate) fn new(recording: Recording, clock: Arc<dyn Clock>, limit: usize) -> Arc<Self> {
        let (unflushed, changed) = (Mutex::default(), Notify::new());
        Arc::new(Self { recording, clock, limit, unflushed, changed })
    }

    /// A buffer for the attempt that this shard describes.
    pub(crate) fn open(self: &Arc<Self>, shard: &Shard) -> Arc<OutputBuffer> {
        let output = Mutex::new(BoundedOutput::of(shard, self.limit));
        Arc::new(OutputBuffer {
            all: Arc::clone(self),
            output,
            is_unflushed: AtomicBool::new(false),
        })
    }

    /// Records printed lines about every second, forever.
    pub(crate) async fn flush_periodically(self: Arc<Self>) {
        loop {
            self.changed.notified().await;
            self.clock.sleep_until(self.clock.monotonic() + FLUSH_DELAY).await;
            let unflushed = std::mem::take(&mut *lock(&self.unflushed));
            for buffer in unflushed {
                buffer.flush();
            }
        }
    }
}

impl OutputBuffer {
    /// Adds a line.
    pub(crate) fn print(self: &Arc<Self>, stream: &'static str, text: &str) {
        lock(&self.output).print(self.all.clock.now(), stream, text);
        if !self.is_unflushed.swap(true, Ordering::AcqRel) {
            lock(&self.all.unflushed).push(Arc::clone(self));
            self.all.changed.notify_one();
        }
    }

    /// Records the lines that are not recorded yet.
    pub(crate) fn flush(&self) {
        self.is_unflushed.store(false, Ordering::Release);
        // Under the lock, so that parts are recorded in their order.
        let mut output = lock(&self.output);
        let events: Vec<Event> = output.take_events();
        for event in events {
            self.all.recording.record(event);
        }
    }

    /// Captures what `work` logs, wherever it is polled.
    pub(crate) fn capture<F: Future>(self: Arc<Self>, work: F) -> impl Future<Output = F::Output> {
        AttachedValue::new(self).around(work)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks panics halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
