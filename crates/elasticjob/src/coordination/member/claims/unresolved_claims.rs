//! Claims that got no answer. Whether they were committed has to be known before anything else is claimed.

use super::{ShardClaims, still_cleared};
use crate::{
    coordination::{claim::Stake, ledger::State, member::mirror::Mirror, tree::Part},
    registry::{Error, Version},
};

impl ShardClaims {
    /// A claim of these shards ended with `error`. If that leaves its result unknown, it has to be resolved.
    pub(crate) fn note_unresolved(
        &mut self,
        mirror: &mut Mirror,
        error: &Error,
        candidates: &[Stake],
    ) {
        if error.is_outage() {
            for candidate in candidates {
                mirror.pages().forget(candidate.shard);
                self.unresolved.insert(candidate.shard, candidate.clone());
            }
        }
    }

    /// Undoes claims that were committed although their answer was lost.
    pub(crate) async fn resolve(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        if self.unresolved.is_empty() || !mirror.view().is_current() {
            return Ok(());
        }
        mirror.sync().await?;
        mirror.refresh().await?;
        for (shard, candidate) in self.unresolved.clone() {
            let seen = mirror.reread_page(shard).await?;
            let is_ours = seen.page.state == State::Running
                && seen.page.owner.as_ref() == Some(mirror.own_id())
                && !self.held.contains_key(&shard);
            if let (true, Some(version)) = (is_ours, seen.version) {
                let paths = Part::HOLDERS.map(|part| mirror.tree().shard(shard, part));
                mirror.read(&paths).await?;
                let view = mirror.shard(shard).cloned().unwrap_or_default();
                let put_back = still_cleared(mirror, &candidate);
                let transactions = mirror.transactions_for(Version::default());
                let steps = transactions.undo(&candidate, version, &view, put_back);
                match mirror.write(steps.ops()).await {
                    Ok(_) => {}
                    Err(Error::Member { .. }) => continue,
                    Err(error) => return Err(error),
                }
                mirror.pages().forget(shard);
                mirror.refresh().await?;
            }
            self.unresolved.remove(&shard);
        }
        Ok(())
    }
}
