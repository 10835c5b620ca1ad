//! Claims that got no answer. Whether they were committed has to be known before anything else is claimed.

use std::collections::BTreeMap;

use super::{held_shards::HeldShards, still_cleared};
use crate::{
    coordination::{
        claim::ClaimCandidate, ledger::LedgerState, member::mirror::Mirror, tree::ShardNode,
    },
    registry::{Error, Version},
};

#[derive(Default)]
pub(super) struct UnresolvedClaims {
    /// The shards as they were before the claim.
    candidates: BTreeMap<u32, ClaimCandidate>,
}

impl UnresolvedClaims {
    #[cfg(test)]
    pub(super) fn of(candidates: impl IntoIterator<Item = ClaimCandidate>) -> Self {
        let candidates = candidates.into_iter().map(|candidate| (candidate.shard, candidate));
        Self { candidates: candidates.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.candidates.keys().copied()
    }

    /// A claim of these shards ended with `error`. If that leaves its result unknown, it has to be resolved.
    pub(super) fn note(
        &mut self,
        mirror: &mut Mirror,
        error: &Error,
        candidates: &[ClaimCandidate],
    ) {
        if error.is_outage() {
            for candidate in candidates {
                mirror.pages().forget(candidate.shard);
                self.candidates.insert(candidate.shard, candidate.clone());
            }
        }
    }

    /// Undoes claims that were committed although their answer was lost.
    pub(super) async fn resolve(
        &mut self,
        mirror: &mut Mirror,
        held: &HeldShards,
    ) -> Result<(), Error> {
        if self.candidates.is_empty() || !mirror.view().is_current() {
            return Ok(());
        }
        mirror.sync().await?;
        mirror.refresh().await?;
        for (shard, candidate) in self.candidates.clone() {
            let Some(seen) = mirror.reread_page(shard).await? else {
                // Another program replaced the page since: it no longer is the one that our claim wrote.
                self.candidates.remove(&shard);
                continue;
            };
            let is_ours = seen.page.state == LedgerState::Running
                && seen.page.holder.as_ref() == Some(mirror.own_id())
                && !held.contains(shard);
            if let (true, Some(version)) = (is_ours, seen.version) {
                let paths = ShardNode::HOLDERS.map(|part| mirror.tree().shard(shard, part));
                mirror.read(&paths).await?;
                let view = mirror.shard(shard).cloned().unwrap_or_default();
                let restore = still_cleared(mirror, &candidate);
                let transactions = mirror.transactions_for(Version::default());
                let steps = transactions.undo(&candidate, version, &view, restore);
                match mirror.write(steps.ops()).await {
                    Ok(_) => {}
                    Err(Error::Operation { .. }) => continue,
                    Err(error) => return Err(error),
                }
                mirror.pages().forget(shard);
                mirror.refresh().await?;
            }
            self.candidates.remove(&shard);
        }
        Ok(())
    }
}
