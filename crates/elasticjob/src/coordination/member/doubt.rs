//! Claims that got no answer: whether they came about has to be found out before anything else is claimed.

use super::actor::Actor;
use crate::{
    coordination::{claim::ClaimCandidate, ledger::LedgerState, tree::ShardNode},
    registry::{Error, Version},
};

impl Actor {
    /// A claim got no answer: whether it came about has to be found out before anything else is claimed.
    pub(super) fn doubt(&mut self, error: &Error, stakes: &[ClaimCandidate]) {
        if error.is_outage() {
            for stake in stakes {
                self.pages.remove(&stake.shard);
                self.uncertain.insert(stake.shard, stake.clone());
            }
        }
    }

    /// Takes back claims that came about without our knowing.
    pub(super) async fn settle_uncertain(&mut self) -> Result<(), Error> {
        if self.uncertain.is_empty() || !self.view.is_current() {
            return Ok(());
        }
        self.registry.sync().await?;
        self.catch_up().await?;
        for (shard, stake) in self.uncertain.clone() {
            self.pages.remove(&shard);
            let seen = self.page(shard).await?;
            let is_ours = seen.page.state == LedgerState::Running
                && seen.page.holder.as_ref() == Some(&self.me)
                && !self.held.contains_key(&shard);
            if let (true, Some(version)) = (is_ours, seen.version) {
                let paths = ShardNode::HOLDERS.map(|part| self.tree.shard(shard, part));
                self.read(&paths).await?;
                let view = self.view.shards.get(&shard).cloned().unwrap_or_default();
                let claimant = self.claimant_on(Version::default());
                let restore = self.to_put_back(&stake);
                let steps = claimant.undo(&stake, version, &view, restore);
                match self.registry.multi(steps.ops()).await {
                    Ok(_) => {}
                    Err(Error::Operation { .. }) => continue,
                    Err(error) => return Err(error),
                }
                self.pages.remove(&shard);
                self.catch_up().await?;
            }
            self.uncertain.remove(&shard);
        }
        Ok(())
    }
}
