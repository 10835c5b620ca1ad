//! Which shards of a job tasks of this process still run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Which shards of a job tasks of this process still run, in this life or an earlier one: none of them is started a second time.
#[derive(Debug, Clone, Default)]
pub(super) struct Busy(Arc<Mutex<BTreeMap<u32, usize>>>);

/// As long as it lives its shards are busy.
pub(super) struct Occupied {
    busy: Busy,
    shards: Vec<u32>,
}

impl Busy {
    pub(super) fn shards(&self) -> BTreeSet<u32> {
        self.lock().keys().copied().collect()
    }

    pub(super) fn occupy(&self, shards: Vec<u32>) -> Occupied {
        let mut counts = self.lock();
        for shard in &shards {
            *counts.entry(*shard).or_default() += 1;
        }
        drop(counts);
        Occupied { busy: self.clone(), shards }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        // Nothing under this lock panics half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Occupied {
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
