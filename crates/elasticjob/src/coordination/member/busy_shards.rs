//! The shards of a job that tasks of this process still run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::sync::watch;

/// The shards of a job that tasks of this process still run, in this session or an earlier one. None of them is claimed a second time.
///
/// It outlives a session: a new member of the same process is given the one of the member before. Clones share their shards.
#[derive(Debug, Clone)]
pub struct BusyShards(Arc<watch::Sender<BTreeMap<u32, usize>>>);

/// Notices when shards become busy or free.
pub(super) struct BusyChanges(watch::Receiver<BTreeMap<u32, usize>>);

/// Its shards are busy until it is dropped.
#[derive(Debug)]
pub(super) struct BusyGuard {
    busy: BusyShards,
    shards: Vec<u32>,
}

impl BusyShards {
    pub fn shards(&self) -> BTreeSet<u32> {
        self.0.borrow().keys().copied().collect()
    }

    pub(super) fn occupy(&self, shards: Vec<u32>) -> BusyGuard {
        self.0.send_modify(|counts| {
            for shard in &shards {
                *counts.entry(*shard).or_default() += 1;
            }
        });
        BusyGuard { busy: self.clone(), shards }
    }

    pub(super) fn changes(&self) -> BusyChanges {
        BusyChanges(self.0.subscribe())
    }
}

impl BusyChanges {
    /// The busy shards, as of now.
    pub(super) fn shards(&mut self) -> BTreeSet<u32> {
        self.0.borrow_and_update().keys().copied().collect()
    }

    /// Waits until shards have become busy or free since [`shards`](Self::shards). Cancel safe.
    pub(super) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Default for BusyShards {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(BTreeMap::new())))
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.busy.0.send_modify(|counts| {
            for shard in &self.shards {
                if let Some(count) = counts.get_mut(shard) {
                    *count -= 1;
                    if *count == 0 {
                        counts.remove(shard);
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn shard_is_busy_until_its_last_guard_is_dropped() {
        let busy = BusyShards::default();
        let mut changes = busy.changes();
        let (one, two) = (busy.occupy(vec![0, 1]), busy.clone().occupy(vec![1]));

        drop(one);
        assert_eq!(changes.shards(), BTreeSet::from([1]));
        drop(two);
        changes.changed().await;
        assert!(busy.shards().is_empty());
    }
}
