//! The ledger pages as last read. A page that is out of date makes the next write that relies on it fail; it is then read again.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::{context::Context, handle::LostShard};
use crate::{
    coordination::{
        ledger::{LedgerPage, VersionedPage, with_tolerance},
        view::View,
    },
    job::{Failover, FencingToken, InstanceId, Job, JobName, Monitor},
    problem::Hint,
    registry::{Error, Path, Zxid},
};

#[derive(Default)]
pub(super) struct LedgerPages {
    /// Boxed: a map node reserves space for eleven values.
    known: BTreeMap<u32, Box<VersionedPage>>,
    /// Runs found in pages whose instance is absent; see [`possibly_lost`].
    possibly_lost: BTreeMap<u32, LostShard>,
    /// Pages that cannot be read, each with the problem. They are read again every time, because an operator may have replaced them.
    unreadable: BTreeMap<u32, String>,
}

impl LedgerPages {
    /// The page as last read or written; `None` if it is not known or cannot be read.
    pub(super) fn get(&self, shard: u32) -> Option<VersionedPage> {
        self.known.get(&shard).map(|seen| VersionedPage::clone(seen))
    }

    /// Why a page cannot be read.
    pub(super) fn problem(&self, shard: u32) -> Option<&str> {
        self.unreadable.get(&shard).map(String::as_str)
    }

    pub(super) fn remember(&mut self, shard: u32, page: VersionedPage) {
        self.unreadable.remove(&shard);
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

    /// Those of the shards whose page names a fire that is due by our clock, and was not due by the registry's clock when the page was written.
    pub(super) fn due_after_written(&self, shards: &[u32], latest: Timestamp) -> Vec<u32> {
        let is_doubtful = |shard: &u32| {
            let Some(seen) = self.known.get(shard) else { return false };
            let Some((due_at, written_at)) = seen.page.due_at.zip(seen.written_at) else {
                return false;
            };
            due_at > with_tolerance(written_at) && due_at <= latest
        };
        shards.iter().copied().filter(is_doubtful).collect()
    }

    /// Moves the time at which a page was written from the registry's clock to ours, which is ahead of it by `skew`.
    pub(super) fn correct_written_at(&mut self, shard: u32, skew: SignedDuration) {
        if let Some(seen) = self.known.get_mut(&shard) {
            let written_at = seen.written_at.and_then(|at| at.checked_add(skew).ok());
            seen.written_at = written_at.or(seen.written_at);
        }
    }

    /// Reads the pages that are not known, all at once. A page that cannot be parsed concerns its own shard only.
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
            let node = match node {
                Err(error @ Error::NotAuthorised { .. }) => {
                    self.deny(&job.name, shard, &error);
                    continue;
                }
                node => node?,
            };
            let seen = match node {
                None => VersionedPage::default(),
                Some(node) => {
                    let page = match LedgerPage::read(&node.data) {
                        Ok(page) => page,
                        Err(error) => {
                            let problem = format!("{error} ({})", reset_hint(&job.name, shard));
                            if self.unreadable.insert(shard, problem).is_none() {
                                let hint = reset_hint(&job.name, shard);
                                tracing::error!(job = %job.name, shard, %path, %error, hint, "ledger page is unreadable, the shard does not run");
                            }
                            continue;
                        }
                    };
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

    /// We may not read or write a page, or another node of its shard: its access list is another user's.
    pub(super) fn deny(&mut self, job: &JobName, shard: u32, error: &Error) {
        self.known.remove(&shard);
        let error = if let Error::Operation { cause, .. } = error { cause } else { error };
        let hint = error.hint().unwrap_or_default();
        if self.unreadable.insert(shard, format!("{error} ({hint})")).is_none() {
            tracing::error!(%job, shard, %error, %hint, "registry refuses to change the shard, the shard does not run");
        }
    }

    /// Runs whose instance was absent when their page was read. Whether that instance is dead has not been checked.
    pub(super) fn take_possibly_lost(&mut self) -> BTreeMap<u32, LostShard> {
        std::mem::take(&mut self.possibly_lost)
    }
}

/// How an operator replaces a page that cannot be read.
pub(super) fn reset_hint(job: &JobName, shard: u32) -> String {
    format!("elasticjob shard reset {job} {shard}")
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
