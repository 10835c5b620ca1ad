//! Shards of a job that tasks of this process still run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Shards of a job that tasks of this process still run, whatever session the task started in. None of them is started a second time.
///
/// The value counts the tasks that run the shard.
#[derive(Debug, Clone, Default)]
pub(super) struct BusyShards(Arc<Mutex<BTreeMap<u32, usize>>>);

/// Keeps its shards busy until it is dropped.
pub(super) struct BusyGuard {
    busy: BusyShards,
    shards: Vec<u32>,
}

impl BusyShards {
    pub(super) fn shards(&self) -> BTreeSet<u32> {
        self.lock().keys().copied().collect()
    }

    pub(super) fn mark(&self, shards: Vec<u32>) -> BusyGuard {
        let mut counts = self.lock();
        for shard in &shards {
            *counts.entry(*shard).or_default() += 1;
        }
        drop(counts);
        BusyGuard { busy: self.clone(), shards }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        // No code panics while it holds this lock, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        let mut counts = self.busy.lock();
        for shard in &self.shards {
            if let Some(count) = counts.get_mut(shard) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(shard);
                }
            }
        }
    }
}
