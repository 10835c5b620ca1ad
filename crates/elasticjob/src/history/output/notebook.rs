//! Where an attempt's lines go, and when they are told.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::page::Page;
use crate::{
    history::{Event, Recording},
    job::Shard,
    runtime::{Carried, Clock},
};

/// How long a line waits before it is told.
const SOON: Duration = Duration::from_secs(1);

/// All notebooks of a node.
pub(crate) struct Notebooks {
    recording: Recording,
    clock: Arc<dyn Clock>,
    limit: usize,
    /// Those with lines that are not told yet.
    written: Mutex<Vec<Arc<Notebook>>>,
    changed: Notify,
}

/// Where the lines of one attempt go.
pub(crate) struct Notebook {
    all: Arc<Notebooks>,
    page: Mutex<Page>,
    /// Whether it is among those with lines that are not told yet.
    is_written: AtomicBool,
}

impl Notebooks {
    pub(crate) fn new(recording: Recording, clock: Arc<dyn Clock>, limit: usize) -> Arc<Self> {
        let (written, changed) = (Mutex::default(), Notify::new());
        Arc::new(Self { recording, clock, limit, written, changed })
    }

    /// One for this attempt.
    pub(crate) fn open(self: &Arc<Self>, shard: &Shard) -> Arc<Notebook> {
        let page = Mutex::new(Page::of(shard, self.limit));
        Arc::new(Notebook { all: Arc::clone(self), page, is_written: AtomicBool::new(false) })
    }

    /// Tells what is printed, about every second while something is.
    pub(crate) async fn tell(self: Arc<Self>) {
        loop {
            self.changed.notified().await;
            self.clock.sleep_until(self.clock.monotonic() + SOON).await;
            let written = std::mem::take(&mut *lock(&self.written));
            for notebook in written {
                notebook.tell();
            }
        }
    }
}

impl Notebook {
    /// A line was printed.
    pub(crate) fn print(self: &Arc<Self>, stream: &'static str, text: &str) {
        lock(&self.page).print(self.all.clock.now(), stream, text);
        if !self.is_written.swap(true, Ordering::AcqRel) {
            lock(&self.all.written).push(Arc::clone(self));
            self.all.changed.notify_one();
        }
    }

    /// Tells what is not told yet.
    pub(crate) fn tell(&self) {
        self.is_written.store(false, Ordering::Release);
        // Under the lock, so that parts are recorded in their order.
        let mut page = lock(&self.page);
        let events: Vec<Event> = page.tell();
        for event in events {
            self.all.recording.record(event);
        }
    }

    /// What is printed by `work`, wherever it is polled, is printed here.
    pub(crate) fn around<F: Future>(self: Arc<Self>, work: F) -> impl Future<Output = F::Output> {
        Carried::new(self).around(work)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks panics half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
