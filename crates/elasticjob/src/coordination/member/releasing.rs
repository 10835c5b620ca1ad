//! Giving shards back.

use tokio::sync::oneshot;

use super::{actor::Actor, handle::Ended, holding::Held};
use crate::{
    coordination::{
        claim::{ClaimCandidate, ClearedMarks, ShardRelease},
        ledger::{LedgerPage, LedgerState, VersionedPage},
        tree::ShardNode,
        view::CachedNode,
    },
    registry::{Error, Path, Version},
};

/// Shards that are to be given back.
pub(super) struct Releasing {
    pub(super) ended: Vec<(u32, Ended)>,
    pub(super) reply: Option<oneshot::Sender<Result<(), Error>>>,
}

impl Actor {
    /// From now on it is no loss when the nodes of these go.
    pub(super) fn begin_release(&mut self, ended: &[(u32, Ended)]) {
        for (shard, _) in ended {
            if let Some(held) = self.held.get_mut(shard) {
                held.is_ending = true;
            }
        }
    }

    /// Gives back what is to be given back. What cannot be now is tried again: only the end of the session ends it otherwise.
    pub(super) async fn settle_releases(&mut self) -> Result<(), Error> {
        for mut releasing in std::mem::take(&mut self.releasing) {
            match self.release(&mut releasing.ended).await {
                Ok(()) => {
                    if let Some(reply) = releasing.reply {
                        Self::answer(reply, Ok(()));
                    }
                }
                Err(error) => {
                    tracing::warn!(job = %self.job.name, %error, "could not give shards back yet");
                    self.releasing.push(releasing);
                }
            }
        }
        Ok(())
    }

    /// Those that are dealt with are taken out of `ended`, so that a second try is for the rest. Of a claim that was taken away, or whose
    /// lease had ended, only what is certainly ours goes: nodes that this very claim created, and the page if nobody wrote it since. If
    /// they are there the session lives on after all, and nobody else would ever take them away.
    async fn release(&mut self, ended: &mut Vec<(u32, Ended)>) -> Result<(), Error> {
        self.catch_up().await?;
        // A job that was removed took its shards along: there is nothing to give back, and nobody to give it to.
        let is_removed = self.view.is_current() && self.view.config.is_none();
        if is_removed {
            for (shard, _) in ended.drain(..) {
                self.held.remove(&shard);
                self.pages.remove(&shard);
            }
        }
        // After a gap it is not known whose the nodes are, and until the picture is whole not even which there are: what is not read would be left
        // behind.
        let unread: Vec<Path> = if self.view.is_current() {
            let unread = ended.iter().flat_map(|(shard, _)| self.view.dirty_holders_of(*shard));
            unread.collect()
        } else {
            let shards = ended.iter().map(|(shard, _)| *shard);
            shards
                .flat_map(|shard| ShardNode::HOLDERS.map(|part| self.tree.shard(shard, part)))
                .collect()
        };
        self.read(&unread).await?;
        // What was taken away is given back, too: the page refuses it if somebody has it, and names us for ever if nobody has.
        ended.retain(|(shard, _)| self.held.contains_key(shard));
        if !ended.is_empty() {
            match self.release_together(ended).await {
                Ok(()) => {}
                // One of them changed under us: each for itself, so that the others are not held up.
                Err(Error::Operation { .. }) => {
                    while let Some(one) = ended.pop() {
                        if let Err(error) = self.release_alone(one).await {
                            ended.push(one);
                            return Err(error);
                        }
                    }
                }
                Err(error) => return Err(error),
            }
            self.pass_on().await?;
        }
        ended.clear();
        self.catch_up().await
    }

    async fn release_together(&mut self, ended: &[(u32, Ended)]) -> Result<(), Error> {
        // What was claimed is given back on any ground: a job that was removed meanwhile has no configuration.
        let claimant = self.claimant_on(Version::default());
        let pages: Vec<(u32, Ended, LedgerPage)> = ended
            .iter()
            .filter_map(|(shard, how)| {
                Some((*shard, *how, page_after(self.held.get(shard)?, *how)))
            })
            .collect();
        let parts = pages.iter().filter_map(|(shard, how, page)| {
            let Held { version, claim_zxid, stake, .. } = &**self.held.get(shard)?;
            let restore = match how {
                Ended::Withdrawn => self.to_put_back(stake),
                Ended::Done | Ended::Failed | Ended::Fenced => ClearedMarks::default(),
            };
            let (version, claim_zxid) = (*version, *claim_zxid);
            let view = self.view.shards.get(shard);
            Some(ShardRelease { shard: *shard, page, version, view, claim_zxid, restore })
        });
        let is_fenced = ended.iter().any(|(_, how)| *how == Ended::Fenced);
        let steps = claimant.release(parts, is_fenced);
        let committed = self.registry.multi(steps.ops()).await?;
        for (shard, version) in steps.page_versions(&committed) {
            let page = pages.iter().find(|(written, ..)| *written == shard);
            let page = page.map(|(.., page)| page.clone()).unwrap_or_default();
            if let Some(held) = self.held.remove(&shard)
                && held.is_monitored
                && !held.hold.is_lost()
            {
                self.memory.ran.insert(shard, held.since..=self.clock.now());
            }
            self.pages.insert(shard, Box::new(VersionedPage { page, version: Some(version) }));
        }
        Ok(())
    }

    /// What a claim of this took away and nobody has put there since.
    pub(super) fn to_put_back(&self, stake: &ClaimCandidate) -> ClearedMarks {
        let is_flagged = self.view.failover_items.contains(&stake.shard);
        let is_marked = self.view.shards.get(&stake.shard).is_some_and(|view| view.misfire);
        stake.cleared_marks().unless_existing(is_flagged, is_marked)
    }

    async fn release_alone(&mut self, (shard, how): (u32, Ended)) -> Result<(), Error> {
        self.catch_up().await?;
        let error = match self.release_together(&[(shard, how)]).await {
            Ok(()) => return Ok(()),
            Err(error @ Error::Operation { .. }) => error,
            Err(error) => return Err(error),
        };
        let Some(held) = self.held.get(&shard) else { return Ok(()) };
        let expected = page_after(held, how);
        self.pages.remove(&shard);
        let seen = self.page(shard).await?;
        if seen.page != expected {
            tracing::warn!(job = %self.job.name, shard, %error, "a claim was taken away while it ran");
        } else if let Some(CachedNode::Read(running)) =
            self.view.shards.get(&shard).and_then(|view| view.running.clone())
            && self.held.get(&shard).is_some_and(|held| held.claim_zxid == running.created)
        {
            // The page was written by an earlier try whose answer was lost, so its nodes are gone, too: wait until we see it.
            self.registry.sync().await?;
        }
        self.held.remove(&shard);
        Ok(())
    }
}

/// What the page says once a shard we hold has ended.
fn page_after(held: &Held, how: Ended) -> LedgerPage {
    match how {
        Ended::Done => LedgerPage { state: LedgerState::Done, ..held.page.clone() },
        Ended::Failed | Ended::Fenced => {
            LedgerPage { state: LedgerState::Failed, ..held.page.clone() }
        }
        Ended::Withdrawn => held.stake.page.page.clone(),
    }
}
