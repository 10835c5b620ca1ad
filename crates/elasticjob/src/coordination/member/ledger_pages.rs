//! The ledger pages as last read. A page that is out of date makes the next write that relies on it fail; it is then read again.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::{context::Context, handle::LostShard};
use crate::{
    coordination::{
        ledger::{LedgerPage, VersionedPage},
        view::View,
    },
    job::{Failover, FencingToken, InstanceId, Job, Monitor},
    registry::{Error, Path, Zxid},
};

#[derive(Default)]
pub(super) struct LedgerPages {
    /// Boxed: a map node reserves space for eleven values.
    known: BTreeMap<u32, Box<VersionedPage>>,
    /// Runs found in pages whose instance is absent; see [`possibly_lost`].
    possibly_lost: BTreeMap<u32, LostShard>,
}

impl LedgerPages {
    /// The page as last read or written; a page that was never written if it is not known.
    pub(super) fn get(&self, shard: u32) -> VersionedPage {
        self.known.get(&shard).map(|seen| VersionedPage::clone(seen)).unwrap_or_default()
    }

    pub(super) fn remember(&mut self, shard: u32, page: VersionedPage) {
        self.known.insert(shard, Box::new(page));
    }

    pub(super) fn forget(&mut self, shard: u32) {
        self.known.remove(&shard);
    }

    /// Those of the shards whose page names a fire that is due after `latest`.
    pub(super) fn due_after(&self, shards: &[u32], latest: Timestamp) -> Vec<u32> {
        let due_at = |shard: &u32| self.known.get(shard).and_then(|seen| seen.page.due_at);
        let is_later = |shard: &u32| due_at(shard).is_some_and(|due_at| due_at > latest);
        shards.iter().copied().filter(is_later).collect()
    }

    /// Reads the pages that are not known, all at once.
    pub(super) async fn fetch(
        &mut self,
        context: &Context,
        view: &View,
        job: &Job,
        shards: &[u32],
    ) -> Result<(), Error> {
        let unknown: Vec<u32> =
            shards.iter().copied().filter(|shard| !self.known.contains_key(shard)).collect();
        let paths: Vec<Path> =
            unknown.iter().map(|shard| context.tree.ledger_page(*shard)).collect();
        let nodes = join_all(paths.iter().map(|path| context.registry.get(path))).await;
        for ((shard, path), node) in unknown.into_iter().zip(paths).zip(nodes) {
            let seen = match node? {
                None => VersionedPage::default(),
                Some(node) => {
                    let page = LedgerPage::read(&node.data)
                        .map_err(|error| Error::Invalid { path, reason: error.to_string() })?;
                    let lost =
                        possibly_lost(shard, &page, node.stat.changed, view, job, &context.own_id);
                    if let Some(lost) = lost {
                        self.possibly_lost.insert(shard, lost);
                    }
                    let written_at = Timestamp::from_millisecond(node.stat.changed_at_ms).ok();
                    VersionedPage { page, version: Some(node.stat.version), written_at }
                }
            };
            self.remember(shard, seen);
        }
        Ok(())
    }

    /// Runs whose instance was absent when their page was read. Whether that instance is dead has not been checked.
    pub(super) fn take_possibly_lost(&mut self) -> BTreeMap<u32, LostShard> {
        std::mem::take(&mut self.possibly_lost)
    }
}

/// The run in this page, if it may have ended with its instance and only the ledger shows that. Where lost runs are taken over, `running`
/// outlives the instance; elsewhere it vanishes with the session, and the page alone still says that the run has not ended.
fn possibly_lost(
    shard: u32,
    page: &LedgerPage,
    written: Zxid,
    view: &View,
    job: &Job,
    own_id: &InstanceId,
) -> Option<LostShard> {
    let is_taken_over = job.failover == Failover::TakeOver && job.monitor == Monitor::Executions;
    let instance = page.other_holder(own_id)?;
    let run = page.run.as_ref()?;
    if is_taken_over || view.instances.contains_key(instance.as_str()) {
        return None;
    }
    let token = FencingToken::new(written.0.saturating_add(1));
    Some(LostShard { run: run.clone(), item: shard, instance: instance.clone(), token })
}
