//! Finding dead holders, and marking their shards as lost.

use std::collections::BTreeSet;

use super::{GRACE, Recovery, holders};
use crate::{
    coordination::{
        claim::FailoverFlag,
        flaw::Flaw,
        ledger::{LedgerPage, LedgerState},
        member::mirror::Mirror,
        view::{CachedNode, ShardView},
    },
    job::{Failover, InstanceId, Monitor},
    registry::Error,
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
        for (shard, id) in absent {
            if self.is_dead(mirror, &id).await? {
                self.mark_lost(mirror, shard, &id).await?;
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

    async fn mark_lost(
        &mut self,
        mirror: &mut Mirror,
        shard: u32,
        dead: &InstanceId,
    ) -> Result<(), Error> {
        // The view may be old: the instance must be gone and the shard still its own as of now. The page is read after that, so any later
        // change of the shard changes the page, and the transaction is refused.
        mirror.sync().await?;
        mirror.refresh().await?;
        let unread = mirror.view().dirty_holders_of(shard);
        mirror.read(&unread).await?;
        if mirror.view().instances.contains_key(dead.as_str()) {
            self.dead_at.remove(dead.as_str());
            return Ok(());
        }
        let view = mirror.shard(shard).cloned();
        let Some(view) = view.filter(|view| holders(view).contains(dead)) else { return Ok(()) };
        let Some(seen) = mirror.reread_page(shard).await? else {
            // Until an operator has replaced the page it is unknown whether the run was lost. The ledger is not watched: check again soon.
            self.undecided.insert(dead.to_string());
            return Ok(());
        };
        // By the ledger another live instance runs it: that instance will say how the run ended.
        if let Some(other) = seen.page.other_holder(dead)
            && mirror.is_alive(other).await?
        {
            return Ok(());
        }
        let is_lost = is_lost(mirror, &seen.page, dead);
        let flag = failover_flag(mirror, shard, &view, is_lost);
        let Some(transactions) = mirror.transactions() else { return Ok(()) };
        let after = if is_lost { seen.page.after_loss(dead) } else { seen.page.clone() };
        let steps = transactions.mark_lost(dead, shard, &seen, &after, &view, flag);
        match mirror.write(steps.ops()).await {
            Ok(_) => {
                tracing::warn!(job = %mirror.job().name, shard, instance = %dead, run_id = ?seen.page.run, "shard lost, its instance is dead");
            }
            // Another instance was faster, or the shard has changed: check again. Or another program's node is below `running`, and it will always
            // be refused.
            Err(error) if steps.refusal(&error).is_some() => {
                match self.refused.entry(shard).or_default().note(mirror.now()) {
                    None => self.is_suspicious = true,
                    Some(delay) => {
                        tracing::warn!(job = %mirror.job().name, shard, instance = %dead, %error, ?delay, "shard of a dead instance cannot be marked as lost, waiting before the next attempt");
                    }
                }
            }
            Err(error) => return Err(error),
        }
        mirror.pages().forget(shard);
        mirror.refresh().await
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
        let steps = transactions.mark_lost(own_id, shard, &seen, &lost, &view, FailoverFlag::Keep);
        match mirror.write(steps.ops()).await {
            Ok(_) | Err(Error::Operation { .. }) => {}
            Err(error) => return Err(error),
        }
        mirror.pages().forget(shard);
    }
    mirror.refresh().await
}
