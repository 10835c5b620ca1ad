//! Claims that got no answer. Whether they were committed has to be known before anything else is claimed.

use std::collections::BTreeMap;

use super::{held_shards::HeldShards, still_cleared};
use crate::{
    coordination::{
        claim::{ClaimCandidate, ClaimUndo, Refusal, ShardTransaction},
        ledger::LedgerState,
        member::mirror::Mirror,
        tree::ShardNode,
    },
    registry::{Error, Path, Version},
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
        let shards: Vec<u32> = self.numbers().collect();
        for shard in &shards {
            mirror.pages().forget(*shard);
        }
        mirror.fetch_pages(&shards).await?;
        let mut committed: BTreeMap<u32, Version> = BTreeMap::new();
        for shard in shards {
            let seen = mirror.pages().get(shard);
            let is_ours = seen.as_ref().is_some_and(|seen| {
                seen.page.state == LedgerState::Running
                    && seen.page.holder.as_ref() == Some(mirror.own_id())
                    && !held.contains(shard)
            });
            match seen.and_then(|seen| seen.version).filter(|_| is_ours) {
                Some(version) => drop(committed.insert(shard, version)),
                // It was not committed; or another program replaced the page since, which then no longer is the one that our claim wrote.
                None => drop(self.candidates.remove(&shard)),
            }
        }
        if committed.is_empty() {
            return Ok(());
        }
        let holders =
            |shard: &u32| ShardNode::HOLDERS.map(|part| mirror.tree().shard(*shard, part));
        let paths: Vec<Path> = committed.keys().flat_map(holders).collect();
        mirror.read(&paths).await?;
        let limits = mirror.context().registry.limits();
        while !committed.is_empty() {
            let mut steps = self.undo(mirror, &committed);
            let rest = committed.keys().nth(steps.fitting(limits)).copied();
            let rest = rest.map(|next| committed.split_off(&next)).unwrap_or_default();
            if !rest.is_empty() {
                steps = self.undo(mirror, &committed);
            }
            match mirror.commit(steps.ops()).await {
                Ok(_) => self.forget(mirror, committed.keys()),
                // One of them has changed: each alone.
                Err(Error::Operation { .. }) => {
                    for (shard, version) in committed {
                        let one = BTreeMap::from([(shard, version)]);
                        let steps = self.undo(mirror, &one);
                        match mirror.commit(steps.ops()).await {
                            Ok(_) => self.forget(mirror, one.keys()),
                            Err(error @ Error::Operation { .. }) => {
                                let is_removed =
                                    steps.refusal(&error) == Some(Refusal::Entry(shard));
                                if let Some(candidate) = self.candidates.get_mut(&shard)
                                    && is_removed
                                {
                                    // The trigger was removed meanwhile.
                                    candidate.entry = None;
                                }
                            }
                            Err(error) => return Err(error),
                        }
                    }
                }
                Err(error) => return Err(error),
            }
            committed = rest;
        }
        mirror.refresh().await
    }

    /// The transaction that undoes the claims of these shards, whose pages have these versions.
    fn undo(&self, mirror: &Mirror, shards: &BTreeMap<u32, Version>) -> ShardTransaction {
        let undos = shards.iter().filter_map(|(shard, version)| {
            let candidate = self.candidates.get(shard)?;
            let (view, restore) = (mirror.shard(*shard), still_cleared(mirror, candidate));
            Some(ClaimUndo { candidate, version: *version, view, restore })
        });
        mirror.transactions_for(Version::default()).undo(undos)
    }

    fn forget<'s>(&mut self, mirror: &mut Mirror, shards: impl Iterator<Item = &'s u32>) {
        for shard in shards {
            mirror.pages().forget(*shard);
            self.candidates.remove(shard);
        }
    }
}
