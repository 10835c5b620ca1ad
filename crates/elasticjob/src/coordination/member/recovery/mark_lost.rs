//! Finding dead holders, and marking their shards as lost.

use std::collections::{BTreeMap, BTreeSet};

use super::{GRACE, Recovery, holders};
use crate::{
    coordination::{
        claim::{FailoverFlag, ShardLoss},
        flaw::Flaw,
        ledger::{LedgerPage, LedgerState, VersionedPage},
        member::mirror::Mirror,
        view::{CachedNode, ShardView},
    },
    job::{Failover, InstanceId, Monitor},
    registry::{Error, Path},
};

impl Recovery {
    /// Checks the holders of all shards and marks the shards of dead ones as lost. `in_hand` are the shards that this instance has
    /// claimed, or may have.
    pub(crate) async fn check_holders(
        &mut self,
        mirror: &mut Mirror,
        in_hand: &BTreeSet<u32>,
    ) -> Result<(), Error> {
        self.is_suspicious = false;
        self.checked_at = Some(mirror.now());
        self.undecided.clear();
        for refusals in self.refused.values_mut() {
            refusals.retry();
        }
        let checked = self.try_check_holders(mirror, in_hand).await;
        self.is_suspicious |= checked.is_err();
        checked
    }

    async fn try_check_holders(
        &mut self,
        mirror: &mut Mirror,
        in_hand: &BTreeSet<u32>,
    ) -> Result<(), Error> {
        let unread = mirror.view().dirty_holders();
        mirror.read(&unread).await?;
        clear_own_leftovers(mirror, in_hand).await?;
        let absent = absent_holders(mirror);
        let names: BTreeSet<&str> = absent.iter().map(|(_, id)| id.as_str()).collect();
        self.dead_at.retain(|id, _| names.contains(id.as_str()));
        self.refused.retain(|shard, _| absent.iter().any(|(of, _)| of == shard));
        let mut shards_of: BTreeMap<InstanceId, Vec<u32>> = BTreeMap::new();
        for (shard, id) in absent {
            shards_of.entry(id).or_default().push(shard);
        }
        for (id, shards) in shards_of {
            if self.is_dead(mirror, &id).await? {
                self.mark_lost(mirror, &shards, &id).await?;
            } else {
                self.undecided.insert(id.to_string());
            }
        }
        Ok(())
    }

    async fn is_dead(&mut self, mirror: &Mirror, id: &InstanceId) -> Result<bool, Error> {
        if mirror.context().flaws.has(Flaw::MarkLostUnchecked) {
            return Ok(true);
        }
        if !id.is_java() {
            return Ok(!mirror.is_alive(id).await?);
        }
        if mirror.context().flaws.has(Flaw::NoGracePeriod) {
            return Ok(true);
        }
        let now = mirror.now();
        let dead_at = *self.dead_at.entry(id.to_string()).or_insert(now + GRACE);
        Ok(now >= dead_at)
    }

    /// Marks these shards of a dead instance as lost, in as many requests as that takes.
    async fn mark_lost(
        &mut self,
        mirror: &mut Mirror,
        shards: &[u32],
        dead: &InstanceId,
    ) -> Result<(), Error> {
        let losses = self.read_losses(mirror, shards, dead).await?;
        // A shard that was refused before must not have the others refused with it.
        let (refused, losses): (Vec<Loss>, Vec<Loss>) =
            losses.into_iter().partition(|loss| self.refused.contains_key(&loss.shard));
        let limits = mirror.context().registry.limits();
        let mut rest = &losses[..];
        while !rest.is_empty() {
            let Some(transactions) = mirror.transactions() else { return Ok(()) };
            let mut steps = transactions.mark_lost(dead, rest.iter().map(Loss::change));
            let count = steps.fitting(limits).min(rest.len());
            if count < rest.len() {
                steps = transactions.mark_lost(dead, rest[..count].iter().map(Loss::change));
            }
            match mirror.commit(steps.ops()).await {
                Ok(_) => note_lost(mirror, &rest[..count], dead),
                // Another instance was faster, a shard has changed, or it has a node that is not ours to change.
                Err(error) if error.is_refusal() && !error.is_temporary() => {
                    self.mark_each_lost(mirror, &rest[..count], dead).await?;
                }
                Err(error) => return Err(error),
            }
            rest = &rest[count..];
        }
        if !refused.is_empty() {
            self.mark_each_lost(mirror, &refused, dead).await?;
        }
        mirror.refresh().await
    }

    /// Marks shards as lost that could not be marked together: those that are still the dead instance's, each alone.
    async fn mark_each_lost(
        &mut self,
        mirror: &mut Mirror,
        refused: &[Loss],
        dead: &InstanceId,
    ) -> Result<(), Error> {
        let shards: Vec<u32> = refused.iter().map(|loss| loss.shard).collect();
        for loss in self.read_losses(mirror, &shards, dead).await? {
            let Some(transactions) = mirror.transactions() else { return Ok(()) };
            let steps = transactions.mark_lost(dead, [loss.change()]);
            match mirror.commit(steps.ops()).await {
                Ok(_) => note_lost(mirror, &[loss], dead),
                // Refused again: it has changed once more, or another program's node is below `running`, and it will always be refused.
                Err(error) if steps.refusal(&error).is_some() => {
                    let shard = loss.shard;
                    mirror.pages().forget(shard);
                    match self.refused.entry(shard).or_default().note(mirror.now()) {
                        None => self.is_suspicious = true,
                        Some(delay) => {
                            tracing::warn!(job = %mirror.job().name, shard, instance = %dead, %error, ?delay, "shard of a dead instance cannot be marked as lost, waiting before the next attempt");
                        }
                    }
                }
                // It must not keep us from the other shards.
                Err(error) if error.is_refusal() && !error.is_temporary() => {
                    tracing::error!(job = %mirror.job().name, shard = loss.shard, instance = %dead, %error, "shard of a dead instance cannot be marked as lost");
                    self.undecided.insert(dead.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Those of the shards that the dead instance still holds, as they are now.
    async fn read_losses(
        &mut self,
        mirror: &mut Mirror,
        shards: &[u32],
        dead: &InstanceId,
    ) -> Result<Vec<Loss>, Error> {
        // The view may be old: the instance must be gone and the shards still its own as of now. The pages are read after that, so any later
        // change of a shard changes its page, and the transaction is refused.
        mirror.sync().await?;
        mirror.refresh().await?;
        let unread: Vec<Path> =
            shards.iter().flat_map(|shard| mirror.view().dirty_holders_of(*shard)).collect();
        mirror.read(&unread).await?;
        if mirror.view().instances.contains_key(dead.as_str()) {
            self.dead_at.remove(dead.as_str());
            return Ok(Vec::new());
        }
        let is_held =
            |shard: &u32| mirror.shard(*shard).is_some_and(|view| holders(view).contains(dead));
        let held: Vec<u32> = shards.iter().copied().filter(is_held).collect();
        for shard in &held {
            mirror.pages().forget(*shard);
        }
        mirror.fetch_pages(&held).await?;
        let mut losses = Vec::new();
        for shard in held {
            let Some(before) = mirror.pages().get(shard) else {
                // Until an operator has replaced the page it is unknown whether the run was lost. The ledger is not watched: check again soon.
                self.undecided.insert(dead.to_string());
                continue;
            };
            // By the ledger another live instance runs it: that instance will say how the run ended.
            if let Some(other) = before.page.other_holder(dead)
                && mirror.is_alive(other).await?
            {
                continue;
            }
            let Some(view) = mirror.shard(shard).cloned() else { continue };
            let is_lost = is_lost(mirror, &before.page, dead);
            let flag = failover_flag(mirror, shard, &view, is_lost);
            let after = if is_lost { before.page.after_loss(dead) } else { before.page.clone() };
            losses.push(Loss { shard, before, after, view, flag });
        }
        Ok(losses)
    }
}

/// A shard of a dead instance, and the page to write.
struct Loss {
    shard: u32,
    before: VersionedPage,
    after: LedgerPage,
    view: ShardView,
    flag: FailoverFlag,
}

impl Loss {
    fn change(&self) -> ShardLoss<'_> {
        let Self { shard, before, after, view, flag } = self;
        ShardLoss { shard: *shard, before, after, view, flag: *flag }
    }
}

/// These losses are stored.
fn note_lost(mirror: &mut Mirror, losses: &[Loss], dead: &InstanceId) {
    for Loss { shard, before, .. } in losses {
        tracing::warn!(job = %mirror.job().name, shard, instance = %dead, run_id = ?before.page.run, "shard lost, its instance is dead");
        mirror.pages().forget(*shard);
    }
}

/// Holders that are not members of the job, except us.
fn absent_holders(mirror: &Mirror) -> Vec<(u32, InstanceId)> {
    let mut absent = Vec::new();
    for (shard, view) in &mirror.view().shards {
        for holder in holders(view) {
            let is_member = mirror.view().instances.contains_key(holder.as_str());
            if !is_member && holder != *mirror.own_id() {
                absent.push((*shard, holder));
            }
        }
    }
    absent
}

/// Whether `dead` died in the middle of a run. Rust instances write their runs into the ledger: a run that is not there was repeated since,
/// and only nodes were left. Java writes none.
fn is_lost(mirror: &Mirror, page: &LedgerPage, dead: &InstanceId) -> bool {
    let was_running = page.state == LedgerState::Running && page.holder.as_ref() == Some(dead);
    was_running || dead.is_java() || mirror.context().flaws.has(Flaw::MarkLostUnchecked)
}

/// Whether a shard whose holder is dead is flagged for failover.
fn failover_flag(mirror: &Mirror, shard: u32, view: &ShardView, is_lost: bool) -> FailoverFlag {
    let job = mirror.job();
    let is_taken_over = is_lost
        && job.failover == Failover::TakeOver
        && job.monitor == Monitor::Executions
        && shard < job.shards.get()
        // A disabled shard waits, flagged, until it is enabled. Java would take it over all the same, not run it, and keep it.
        && !(view.disabled && mirror.assignment().has_java_members());
    match (is_taken_over, mirror.view().failover_items.contains(&shard)) {
        (false, _) => FailoverFlag::Keep,
        (true, false) => FailoverFlag::Create,
        (true, true) => FailoverFlag::Recreate,
    }
}

/// Clears nodes that name us although we do not hold the shard. No other instance ever would, because we are alive.
async fn clear_own_leftovers(mirror: &mut Mirror, in_hand: &BTreeSet<u32>) -> Result<(), Error> {
    let own_id = mirror.own_id();
    let leftovers: Vec<u32> = mirror
        .view()
        .shards
        .iter()
        .filter(|(shard, view)| {
            let taken_over_by = view.failover.as_ref().and_then(CachedNode::text);
            (holders(view).contains(own_id) || taken_over_by == Some(own_id.as_str()))
                && !in_hand.contains(shard)
        })
        .map(|(shard, _)| *shard)
        .collect();
    for shard in leftovers {
        let Some(seen) = mirror.reread_page(shard).await? else { continue };
        let view = mirror.shard(shard).cloned().unwrap_or_default();
        let Some(transactions) = mirror.transactions() else { return Ok(()) };
        let own_id = mirror.own_id();
        let lost = seen.page.after_loss(own_id);
        let flag = FailoverFlag::Keep;
        let clearing = ShardLoss { shard, before: &seen, after: &lost, view: &view, flag };
        let steps = transactions.mark_lost(own_id, [clearing]);
        match mirror.commit(steps.ops()).await {
            Ok(_) | Err(Error::Operation { .. }) => {}
            Err(error) => return Err(error),
        }
        mirror.pages().forget(shard);
    }
    mirror.refresh().await
}
