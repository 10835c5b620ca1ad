//! What became of events, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::queue::Worth;

/// What became of the events for one sink, since the recorder started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// How many the sink keeps.
    pub recorded: u64,
    /// How many are lost, by [`Worth`]; see [`Counts::dropped`].
    pub(super) dropped: [u64; Worth::ALL.len()],
    /// How many went to the file to wait there. Most of them were [recorded](Self::recorded) later.
    pub spilled: u64,
    /// How many could not be read back from the file: torn by a crash, or damaged.
    pub unreadable: u64,
    /// How often the sink failed.
    pub failures: u64,
    /// How many wait in memory now.
    pub queued: u64,
    /// How many bytes wait in the file now.
    pub spill_bytes: u64,
}

impl Counts {
    /// How many of this worth are lost: there was no room for them.
    pub fn dropped(&self, worth: Worth) -> u64 {
        self.dropped[worth as usize]
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    recorded: AtomicU64,
    dropped: [AtomicU64; Worth::ALL.len()],
    spilled: AtomicU64,
    unreadable: AtomicU64,
    failures: AtomicU64,
    spill_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn recorded(&self, events: usize) {
        self.recorded.fetch_add(events as u64, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self, worth: Worth) {
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
            dropped: Worth::ALL.map(|worth| read(&self.dropped[worth as usize])),
            spilled: read(&self.spilled),
            unreadable: read(&self.unreadable),
            failures: read(&self.failures),
            queued: queued as u64,
            spill_bytes: read(&self.spill_bytes),
        }
    }
}
