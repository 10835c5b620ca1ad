//! What becomes of the shards of the dead.
//!
//! Who holds a shard is written in it. When a holder is gone its shards are *buried*: the ledger says that they were lost, their nodes go,
//! and, if the job asks for it, they are flagged. Whoever is idle takes a fair share of the flagged ones, through the ancestor's latch, and
//! claims them in the same multi. All of it is derived from what is seen, so it does not matter who saw the death, or whether anybody did.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::{
    actor::{Actor, Beside},
    blink::GRACE,
    duties::is_enabled,
    handle::{Claimed, Lost, News, Refused},
};
use crate::{
    coordination::{
        claim::{ClaimCandidate, FailoverFlag},
        flaw::Flaw,
        latch::{self, HeldLatch},
        ledger::{LedgerPage, LedgerState},
        sharding::available_instances,
        view::{CachedNode, ShardView},
    },
    job::{Failover, FencingToken, Fire, InstanceId, Monitor, RunId},
    registry::{Error, ExpectedVersion, Op, Zxid},
    runtime::CancelToken,
};

/// How long to queue for taking over.
const TURN: Duration = Duration::from_secs(10);
/// How often a taking-over looks again when others were faster.
const TRIES: usize = 8;

/// A taking-over that waits for its turn.
pub(super) struct Taking {
    cancel: CancelToken,
    busy: BTreeSet<u32>,
    pub(super) reply: oneshot::Sender<Result<Claimed, Refused>>,
}

impl Actor {
    /// Looks who holds what, and buries what the dead held.
    pub(super) async fn bury(&mut self) -> Result<(), Error> {
        self.memory.is_suspicious = false;
        self.memory.undecided.clear();
        let unread = self.view.dirty_holders();
        if let Err(error) = self.read(&unread).await {
            self.memory.is_suspicious = true;
            return Err(error);
        }
        if let Err(error) = self.disown().await {
            self.memory.is_suspicious = true;
            return Err(error);
        }
        let mut absent: Vec<(u32, InstanceId)> = Vec::new();
        for (shard, view) in &self.view.shards {
            for holder in holders(view) {
                let is_known = self.view.instances.contains_key(holder.as_str());
                if !is_known && holder != self.me {
                    absent.push((*shard, holder));
                }
            }
        }
        let names: BTreeSet<&str> = absent.iter().map(|(_, id)| id.as_str()).collect();
        self.memory.doubts.retain(|id, _| names.contains(id.as_str()));
        for (shard, id) in absent {
            match self.is_dead(&id).await {
                Ok(true) => {}
                Ok(false) => {
                    self.memory.undecided.insert(id.to_string());
                    self.memory.look_again_at(self.clock.monotonic(), &*self.randomness);
                    continue;
                }
                Err(error) => {
                    self.memory.is_suspicious = true;
                    return Err(error);
                }
            }
            if let Err(error) = self.bury_one(shard, &id).await {
                self.memory.is_suspicious = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// A `running` that is to be taken over stays when its instance dies; any other goes with it, and the ledger alone knows that it did not end.
    pub(super) fn look_for_the_dead(&mut self, shard: u32, page: &LedgerPage, written: Zxid) {
        let is_taken_over =
            self.job.failover == Failover::TakeOver && self.job.monitor == Monitor::Executions;
        let (Some(instance), Some(run)) = (page.other_holder(&self.me), &page.run) else {
            return;
        };
        if is_taken_over || self.view.instances.contains_key(instance.as_str()) {
            return;
        }
        let token = FencingToken::new(written.0.saturating_add(1));
        let lost = Lost { run: run.clone(), item: shard, instance: instance.clone(), token };
        self.memory.bereft.insert(shard, lost);
    }

    /// Tells of what ended with its instance.
    pub(super) async fn mourn(&mut self) -> Result<(), Error> {
        while let Some((shard, lost)) = self.memory.bereft.pop_first() {
            match self.lives(&lost.instance).await {
                Ok(true) => {}
                Ok(false) => self.tell(News::Lost(Box::new(lost))),
                Err(error) => {
                    self.memory.bereft.insert(shard, lost);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// What names us and is not held by us is nobody's: nobody else would ever take it away, because we live.
    async fn disown(&mut self) -> Result<(), Error> {
        let ours: Vec<u32> = self
            .view
            .shards
            .iter()
            .filter(|(shard, view)| {
                let taken = view.failover.as_ref().and_then(CachedNode::text);
                (holders(view).contains(&self.me) || taken == Some(self.me.as_str()))
                    && !self.held.contains_key(shard)
                    && !self.uncertain.contains_key(shard)
            })
            .map(|(shard, _)| *shard)
            .collect();
        for shard in ours {
            self.pages.remove(&shard);
            let seen = self.page(shard).await?;
            let view = self.view.shards.get(&shard).cloned().unwrap_or_default();
            let Some(claimant) = self.claimant() else { return Ok(()) };
            let steps = claimant.mark_lost(
                &self.me,
                shard,
                &seen,
                &seen.page.after_loss(&self.me),
                &view,
                FailoverFlag::Keep,
            );
            match self.registry.multi(steps.ops()).await {
                Ok(_) | Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
            self.pages.remove(&shard);
        }
        self.catch_up().await
    }

    /// Whether an absent instance is dead.
    async fn is_dead(&mut self, id: &InstanceId) -> Result<bool, Error> {
        if self.flaws.has(Flaw::MarkLostUnchecked) {
            return Ok(true);
        }
        if !id.is_java() {
            let lives = self.lives(id).await?;
            return Ok(!lives);
        }
        if self.flaws.has(Flaw::NoGracePeriod) {
            return Ok(true);
        }
        let now = self.clock.monotonic();
        let dead_at = *self.memory.doubts.entry(id.to_string()).or_insert(now + GRACE);
        Ok(now >= dead_at)
    }

    async fn bury_one(&mut self, shard: u32, dead: &InstanceId) -> Result<(), Error> {
        // What is seen may be old: whoever is buried must be gone, and the shard still theirs, as of now. The page is read after that, so
        // whatever happens later changes it, and the multi is refused.
        self.registry.sync().await?;
        self.catch_up().await?;
        let unread = self.view.dirty_holders_of(shard);
        self.read(&unread).await?;
        if self.view.instances.contains_key(dead.as_str()) {
            self.memory.doubts.remove(dead.as_str());
            return Ok(());
        }
        let view = self.view.shards.get(&shard).cloned();
        let Some(view) = view.filter(|view| holders(view).contains(dead)) else { return Ok(()) };
        self.pages.remove(&shard);
        let seen = self.page(shard).await?;
        // Somebody else runs it by the ledger: it is for them to say how it ends.
        if let Some(other) = seen.page.other_holder(dead) {
            let other = other.clone();
            if self.lives(&other).await? {
                return Ok(());
            }
        }
        // Rust instances write what they run into the ledger: what is not there has been made up for, and only its nodes were left.
        let was_running =
            seen.page.state == LedgerState::Running && seen.page.holder.as_ref() == Some(dead);
        let is_lost = was_running || dead.is_java() || self.flaws.has(Flaw::MarkLostUnchecked);
        let flag = is_lost
            && self.job.failover == Failover::TakeOver
            && self.job.monitor == Monitor::Executions
            && shard < self.job.shards.get()
            // A disabled one waits, flagged, until it is enabled. Java would take it all the same, not run it, and keep it.
            && !(view.disabled && self.has_java());
        let flag = match (flag, self.view.failover_items.contains(&shard)) {
            (false, _) => FailoverFlag::Keep,
            (true, false) => FailoverFlag::Create,
            (true, true) => FailoverFlag::Recreate,
        };
        let Some(claimant) = self.claimant() else { return Ok(()) };
        let after = if is_lost { seen.page.after_loss(dead) } else { seen.page.clone() };
        let steps = claimant.mark_lost(dead, shard, &seen, &after, &view, flag);
        match self.registry.multi(steps.ops()).await {
            Ok(_) => {
                tracing::warn!(job = %self.job.name, shard, instance = %dead, run = ?seen.page.run, "the instance that ran this shard is gone");
            }
            // Somebody else was faster, or it is not what it was: it is looked at again.
            Err(error) if steps.refusal(&error).is_some() => self.memory.is_suspicious = true,
            Err(error) => return Err(error),
        }
        self.pages.remove(&shard);
        self.catch_up().await
    }

    /// Flagged shards that we could take over.
    pub(super) fn orphans(&self) -> BTreeSet<u32> {
        let may_take = self.view.is_current()
            && self.job.failover == Failover::TakeOver
            && is_enabled(&self.view, &self.me, &self.job) == Some(true)
            && self.view.instances.contains_key(self.me.as_str());
        if !may_take {
            return BTreeSet::new();
        }
        let now = self.clock.monotonic();
        let is_free = |shard: &u32| {
            *shard < self.job.shards.get()
                && !self.memory.blinks.is_undecided(*shard, now)
                && !self.held.contains_key(shard)
                && !self.uncertain.contains_key(shard)
                && self.view.shards.get(shard).is_some_and(|view| {
                    view.running.is_none() && view.failover.is_none() && !view.disabled
                })
        };
        self.view.failover_items.iter().copied().filter(is_free).collect()
    }

    pub(super) fn queue_to_take(
        &mut self,
        cancel: CancelToken,
        busy: BTreeSet<u32>,
        reply: oneshot::Sender<Result<Claimed, Refused>>,
    ) {
        if self.orphans().is_subset(&busy) || self.taking.is_some() {
            return Self::answer(reply, Err(Refused::Nothing));
        }
        self.taking = Some(Taking { cancel, busy, reply });
        let (registry, latch) = (Arc::clone(&self.registry), self.tree.failover_latch());
        let ticket = self.randomness.bits();
        self.beside.spawn(async move {
            Beside::MayTake(latch::acquire(&*registry, &latch, ticket, TURN).await)
        });
    }

    /// It is our turn, or it did not come.
    pub(super) async fn take(&mut self, turn: Result<Option<HeldLatch>, Error>) {
        let answer = match (&turn, &self.taking) {
            (Ok(Some(turn)), Some(_)) => self.take_now(turn).await,
            (Err(_) | Ok(None), _) | (_, None) => Err(Refused::Nothing),
        };
        if let Ok(Some(turn)) = turn {
            let registry = Arc::clone(&self.registry);
            self.beside.spawn(async move {
                turn.release(&*registry).await;
                Beside::Passed
            });
        }
        // What was not taken is told of again.
        self.memory.told_orphans.clear();
        if let Some(taking) = self.taking.take() {
            Self::answer(taking.reply, answer);
        }
    }

    async fn take_now(&mut self, turn: &HeldLatch) -> Result<Claimed, Refused> {
        for _ in 0..TRIES {
            self.catch_up().await?;
            self.drop_what_is_not_lost().await?;
            let (fire, stakes) = self.share().await?;
            let (Some(fire), false) = (fire, stakes.is_empty()) else {
                return Err(Refused::Nothing);
            };
            let Some(claimant) = self.claimant() else { return Err(Refused::Nothing) };
            let steps = claimant.take_over(turn, &fire, &stakes);
            match self.registry.multi(steps.ops()).await {
                Ok(committed) => {
                    let cancel = self.taking.as_ref().map(|taking| taking.cancel.clone());
                    let cancel = cancel.unwrap_or_default();
                    let shards = self.hold(&fire, &stakes, &steps, &committed, &cancel);
                    let token = FencingToken::new(committed.zxid.0);
                    // They are ours whatever else is seen: an outage now is no reason to leave them lying.
                    if let Err(error) = self.catch_up().await {
                        tracing::debug!(job = %self.job.name, %error, "could not look again after taking over");
                    }
                    return Ok(Claimed { fire, shards, token, left: BTreeSet::new() });
                }
                Err(error) if steps.refusal(&error).is_some() => {
                    for stake in &stakes {
                        self.pages.remove(&stake.shard);
                    }
                }
                Err(error) => {
                    self.doubt(&error, &stakes);
                    return Err(error.into());
                }
            }
        }
        Err(Refused::Nothing)
    }

    /// Our share of what waits: of the run of the first of them, as many as there are for each instance.
    async fn share(&mut self) -> Result<(Option<Fire>, Vec<ClaimCandidate>), Error> {
        let busy = self.taking.as_ref().map(|taking| taking.busy.clone()).unwrap_or_default();
        let orphans: Vec<u32> = self.orphans().difference(&busy).copied().collect();
        let instances = available_instances(&self.view).map_or(1, |all| all.len().max(1));
        let count = orphans.len().div_ceil(instances);
        let mut fire: Option<Fire> = None;
        let mut stakes = Vec::new();
        let unread = self.view.dirty_holders();
        self.read(&unread).await?;
        for shard in orphans {
            if stakes.len() == count {
                break;
            }
            self.pages.remove(&shard);
            let stake = self.stake(shard).await?;
            let lost = self.lost_fire(&stake);
            if *fire.get_or_insert_with(|| lost.clone()) == lost || stakes.is_empty() {
                stakes.push(stake);
            }
        }
        Ok((fire, stakes))
    }

    /// What the dead one ran; of Java's we know only that it was something.
    fn lost_fire(&self, stake: &ClaimCandidate) -> Fire {
        let page = &stake.page.page;
        // What the page tells of has ended: it was Java that ran it since, and is gone.
        let run = page.run.as_ref().filter(|_| page.state == LedgerState::Lost);
        match (run, page.due_at) {
            (Some(run), Some(due_at)) if run.is_scheduled() => {
                Fire::scheduled(self.job.name.clone(), due_at)
            }
            (Some(run), _) => {
                let asked = page.trigger.as_deref();
                let at = asked.map_or_else(|| self.clock.now(), |asked| asked.at);
                Fire::triggered(self.job.name.clone(), at, run.clone())
                    .by(asked.and_then(|asked| asked.by.clone()))
                    .given(asked.and_then(|asked| asked.parameter.clone()))
            }
            (None, _) => {
                let run = RunId::triggered(self.randomness.bits());
                Fire::triggered(self.job.name.clone(), self.clock.now(), run)
            }
        }
    }

    /// Flagged shards that their owners still run. One that reconnects takes `running` away, which one that was started anew under the same
    /// id would not.
    fn mistaken(&self) -> Vec<u32> {
        let is_so = |&(shard, id): &(u32, &str)| {
            self.view.instances.contains_key(id)
                && self.view.shards.get(&shard).is_some_and(|view| view.running.is_none())
        };
        self.memory.blinks.mistaken().filter(is_so).map(|(shard, _)| shard).collect()
    }

    /// A shard that ran since it was flagged has made up for what was lost; Java forgets to take the flag away. And nothing was lost when only
    /// a reconnect was taken for a death.
    async fn drop_what_is_not_lost(&mut self) -> Result<(), Error> {
        if self.flaws.has(Flaw::TakeOverTwice) {
            return Ok(());
        }
        let flagged = self.view.failover_items.clone();
        for shard in
            flagged.into_iter().filter(|shard| self.is_not_lost(*shard)).collect::<Vec<_>>()
        {
            self.pages.remove(&shard);
            let seen = self.page(shard).await?;
            // What the page was read with is heard by now. Whoever flags it anew after that writes the page, and the multi is refused.
            self.catch_up().await?;
            let is_mistaken = self.mistaken().contains(&shard);
            // What the ledger calls lost is: somebody else ran it, who died.
            if !self.is_not_lost(shard) || (is_mistaken && seen.page.state == LedgerState::Lost) {
                continue;
            }
            if is_mistaken {
                tracing::info!(job = %self.job.name, shard, "flagged because its owner reconnected, which still runs it");
            }
            let page = self.tree.ledger_page(shard);
            let expected = seen.version.map(ExpectedVersion::Version);
            let mut ops: Vec<Op> =
                expected.map(|expected| Op::Check { path: page, expected }).into_iter().collect();
            ops.push(Op::Delete {
                path: self.tree.failover_item(shard),
                expected: ExpectedVersion::Any,
            });
            match self.registry.multi(ops).await {
                Ok(_) | Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.catch_up().await
    }

    fn is_not_lost(&self, shard: u32) -> bool {
        self.memory.ran_since_flagged.contains(&shard) || self.mistaken().contains(&shard)
    }
}

/// Everybody a shard names as having it in hand, and who would have to be alive for that.
fn holders(view: &ShardView) -> BTreeSet<InstanceId> {
    let known = [&view.running, &view.failovering].into_iter().flatten();
    known.filter_map(CachedNode::text).filter_map(|id| id.parse().ok()).collect()
}
