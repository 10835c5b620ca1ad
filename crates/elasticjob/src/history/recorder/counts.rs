//! Counters of recorded, dropped and spilled events.

use std::sync::atomic::{AtomicU64, Ordering};

use super::queue::Importance;

/// Counts of events for one sink, since the recorder started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Events that the sink stored.
    pub recorded: u64,
    /// Dropped events by [`Importance`]; see [`Counts::dropped`].
    pub(super) dropped: [u64; Importance::ALL.len()],
    /// Events written to spill files. Most of them are [recorded](Self::recorded) later.
    pub spilled: u64,
    /// Events that could not be read back from spill files: torn by a crash, or damaged.
    pub unreadable: u64,
    /// Failed attempts to store a batch.
    pub failures: u64,
    /// Events waiting in memory now.
    pub queued: u64,
    /// Bytes waiting in spill files now.
    pub spill_bytes: u64,
}

impl Counts {
    /// Dropped events of this worth: there was no room for them, or the sink could not store them.
    pub fn dropped(&self, worth: Importance) -> u64 {
        self.dropped[worth as usize]
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    recorded: AtomicU64,
    dropped: [AtomicU64; Importance::ALL.len()],
    spilled: AtomicU64,
    unreadable: AtomicU64,
    failures: AtomicU64,
    spill_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn recorded(&self, events: usize) {
        self.recorded.fetch_add(events as u64, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self, worth: Importance) {
        self.dropped[worth as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn spilled(&self, events: usize) {
        self.spilled.fetch_add(events as u64, Ordering::Relaxed);
    }

    pub(super) fn unreadable(&self, lines: u64) {
        self.unreadable.fetch_add(lines, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn spill_bytes(&self, bytes: u64) {
        self.spill_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn read(&self, queued: usize) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            recorded: read(&self.recorded),
            dropped: Importance::ALL.map(|worth| read(&self.dropped[worth as usize])),
            spilled: read(&self.spilled),
            unreadable: read(&self.unreadable),
            failures: read(&self.failures),
            queued: queued as u64,
            spill_bytes: read(&self.spill_bytes),
        }
    }
}
