//! Taking over flagged shards.

use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};

use super::Recovery;
use crate::{
    coordination::{
        claim::{ClaimCandidate, EntryChange},
        flaw::Flaw,
        latch::{self, HeldLatch},
        ledger::LedgerState,
        member::{
            claims::{CommittedClaim, candidate},
            context::Context,
            mirror::Mirror,
        },
        sharding::available_instances,
        trigger::Trigger,
    },
    job::{Fire, RunId},
    registry::{Error, ExpectedVersion, Op},
    runtime::{CancelToken, Monotonic},
};

/// How long to queue for the right to take over.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// Most shards of one takeover: about as many as fit into a request of ZooKeeper. Their pages are read while others wait for their turn.
const MAX_SHARE: usize = 1_000;
/// How often a takeover starts again after other instances were faster.
const TRIES: usize = 8;
/// How long to wait with the next takeover after one that came to nothing.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Whether this instance takes over orphaned shards.
#[derive(Default)]
pub(super) enum Takeovers {
    #[default]
    Off,
    On {
        /// Cancels the shards that are taken over.
        cancel: CancelToken,
    },
}

pub(crate) enum TakeoverResult {
    Committed(CommittedClaim),
    Nothing,
    /// The transaction that takes over these shards failed, and may have been committed all the same.
    Failed(Error, Vec<ClaimCandidate>),
}

impl Recovery {
    /// From now on orphaned shards are taken over as they appear; `cancel` cancels all of them.
    pub(crate) fn start_taking_over(&mut self, cancel: CancelToken) {
        self.takeovers = Takeovers::On { cancel };
    }

    pub(crate) fn stop_taking_over(&mut self) {
        self.takeovers = Takeovers::Off;
    }

    /// The next takeover would end the same way: the owner withdrew a claim, because its lease is too short to start anything, or our turn did
    /// not come, or the transaction failed.
    pub(crate) fn postpone_takeovers(&mut self, now: Monotonic) {
        self.postponed_until = Some(now + RETRY_DELAY);
    }

    /// What the shards of the next takeover are cancelled by; `None` while this instance takes over nothing.
    pub(crate) fn takeover_cancel(&self) -> Option<CancelToken> {
        match &self.takeovers {
            Takeovers::On { cancel } => Some(cancel.child()),
            Takeovers::Off => None,
        }
    }

    /// Begins a takeover if there are orphans and none has begun. The returned future queues in the latch and has to be polled elsewhere,
    /// because it waits for others; [`take_over`](Self::take_over) has to follow it.
    pub(crate) fn begin_takeover(
        &mut self,
        context: &Context,
        orphans: &BTreeSet<u32>,
        now: Monotonic,
    ) -> Option<impl Future<Output = Result<Option<HeldLatch>, Error>> + Send + 'static> {
        self.postponed_until.take_if(|until| now >= *until);
        let is_off = matches!(self.takeovers, Takeovers::Off);
        let must_wait = self.is_taking_over || self.postponed_until.is_some();
        if is_off || must_wait || orphans.is_empty() {
            return None;
        }
        self.is_taking_over = true;
        let (registry, latch) = (Arc::clone(&context.registry), context.tree.failover_latch());
        let ticket = context.randomness.bits();
        Some(async move { latch::acquire(&*registry, &latch, ticket, TURN_TIMEOUT).await })
    }

    /// Takes over our share of the orphans, if our turn has come. `in_hand` are shards that this instance has claimed or may have, and those
    /// that its process still runs.
    pub(crate) async fn take_over(
        &mut self,
        mirror: &mut Mirror,
        turn: Option<&HeldLatch>,
        in_hand: &BTreeSet<u32>,
    ) -> TakeoverResult {
        self.is_taking_over = false;
        let Some(turn) = turn else {
            self.postpone_takeovers(mirror.now());
            return TakeoverResult::Nothing;
        };
        if matches!(self.takeovers, Takeovers::Off) {
            return TakeoverResult::Nothing;
        }
        let taken = self.try_take_over(mirror, turn, in_hand).await;
        let result = taken.unwrap_or_else(|error| TakeoverResult::Failed(error, Vec::new()));
        if matches!(result, TakeoverResult::Failed(..)) {
            self.postpone_takeovers(mirror.now());
        }
        result
    }

    async fn try_take_over(
        &mut self,
        mirror: &mut Mirror,
        turn: &HeldLatch,
        in_hand: &BTreeSet<u32>,
    ) -> Result<TakeoverResult, Error> {
        let mut refused = None;
        for _ in 0..TRIES {
            mirror.refresh().await?;
            self.clear_settled_flags(mirror).await?;
            let Some((fire, mut candidates)) = self.share(mirror, in_hand).await? else {
                return Ok(TakeoverResult::Nothing);
            };
            let Some(transactions) = mirror.transactions() else {
                return Ok(TakeoverResult::Nothing);
            };
            let mut steps = transactions.take_over(turn, &fire, &candidates);
            let registry = &mirror.context().registry;
            let fitting_session = steps.fitting_session(registry.ephemeral_room());
            if fitting_session == 0 {
                // Other instances may have room, and ours has it once other shards have ended.
                self.postpone_takeovers(mirror.now());
                return Ok(TakeoverResult::Nothing);
            }
            let count = steps.fitting(registry.limits()).min(fitting_session);
            if count < candidates.len() {
                // The others stay flagged: they are the next takeover.
                candidates.truncate(count);
                steps = transactions.take_over(turn, &fire, &candidates);
            }
            match mirror.commit(steps.ops()).await {
                Ok(committed) => {
                    for candidate in &candidates {
                        self.set_aside.forget(candidate.shard);
                    }
                    let claim = CommittedClaim { fire, candidates, steps, committed };
                    return Ok(TakeoverResult::Committed(claim));
                }
                Err(error) if steps.refusal(&error).is_some() => {
                    for candidate in &candidates {
                        mirror.pages().forget(candidate.shard);
                    }
                    refused = steps.refused_shard(&error);
                }
                Err(error) => {
                    if error.is_refusal() && !error.is_temporary() {
                        let shards = candidates.iter().map(|candidate| candidate.shard);
                        let at_fault = steps.refused_shard(&error);
                        for shard in shards.filter(|shard| at_fault.is_none_or(|at| at == *shard)) {
                            self.set_aside.add(shard, mirror.now());
                        }
                    }
                    return Ok(TakeoverResult::Failed(error, candidates));
                }
            }
        }
        // Refused again and again.
        match refused {
            Some(shard) => self.set_aside.add(shard, mirror.now()),
            None => self.postpone_takeovers(mirror.now()),
        }
        Ok(TakeoverResult::Nothing)
    }

    /// Our share of the orphans: of the run of the first of them, as many as there are for each instance.
    async fn share(
        &mut self,
        mirror: &mut Mirror,
        in_hand: &BTreeSet<u32>,
    ) -> Result<Option<(Fire, Vec<ClaimCandidate>)>, Error> {
        self.observe(mirror);
        let orphans = self.orphans(&mirror.assignment(), in_hand, mirror.now());
        let instances = available_instances(mirror.view()).map_or(1, |all| all.len().max(1));
        let count = orphans.len().div_ceil(instances).min(MAX_SHARE);
        let mut fire: Option<Fire> = None;
        let mut candidates = Vec::new();
        let unread = mirror.view().dirty_holders();
        mirror.read(&unread).await?;
        let mut orphans = orphans.into_iter();
        while candidates.len() < count {
            let next: Vec<u32> = orphans.by_ref().take(count - candidates.len()).collect();
            if next.is_empty() {
                break;
            }
            for shard in &next {
                mirror.pages().forget(*shard);
            }
            mirror.fetch_pages(&next).await?;
            for shard in next {
                let Some(candidate) = candidate(mirror, shard) else {
                    self.set_aside.add(shard, mirror.now());
                    continue;
                };
                let lost_run = lost_run(&candidate).cloned();
                let is_next = |fire: &Fire| Some(&fire.run) == lost_run.as_ref();
                let lost = match &fire {
                    Some(fire) if is_next(fire) => fire.clone(),
                    _ => lost_fire(mirror, &candidate, lost_run.as_ref()).await?,
                };
                if *fire.get_or_insert_with(|| lost.clone()) == lost || candidates.is_empty() {
                    let entry = lost_entry(mirror, &candidate, lost_run.as_ref()).await?;
                    candidates.push(ClaimCandidate { entry, ..candidate });
                }
            }
        }
        Ok(fire.map(|fire| (fire, candidates)))
    }

    /// Clears flags of shards that need no takeover: a shard that ran since it was flagged has repeated the lost run, which Java forgets to
    /// note, and nothing was lost if a mere reconnect was taken for a death.
    async fn clear_settled_flags(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        if mirror.context().flaws.has(Flaw::TakeOverTwice) {
            return Ok(());
        }
        self.observe(mirror);
        let flagged = mirror.view().failover_items.iter().copied();
        let settled: Vec<u32> = flagged.filter(|shard| self.is_settled(mirror, *shard)).collect();
        for shard in settled {
            let Some(seen) = mirror.reread_page(shard).await? else { continue };
            // Everything up to the read is visible now. An instance that flags the shard again after that writes the page, and the
            // transaction is refused.
            mirror.refresh().await?;
            self.observe(mirror);
            let is_mistaken = self.is_mistaken(mirror, shard);
            // A run that is lost by the ledger is lost: another instance ran it, and died.
            if !self.is_settled(mirror, shard)
                || (is_mistaken && seen.page.state == LedgerState::Lost)
            {
                continue;
            }
            if is_mistaken {
                tracing::info!(job = %mirror.job().name, shard, "failover flag cleared, the owner reconnected and still runs the shard");
            }
            let page = mirror.tree().ledger_page(shard);
            let expected = seen.version.map(ExpectedVersion::Version);
            let mut ops: Vec<Op> =
                expected.map(|expected| Op::Check { path: page, expected }).into_iter().collect();
            let flag = mirror.tree().failover_item(shard);
            ops.push(Op::Delete { path: flag, expected: ExpectedVersion::Any });
            match mirror.write(ops).await {
                Ok(_) | Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        mirror.refresh().await
    }

    /// Whether a flagged shard needs no takeover.
    fn is_settled(&self, mirror: &Mirror, shard: u32) -> bool {
        self.ran_since_flagged.contains(&shard) || self.is_mistaken(mirror, shard)
    }

    /// Whether a flagged shard is still run by its owner. A Java instance that reconnects deletes its `running` node; one that was started
    /// again under the same id would not.
    fn is_mistaken(&self, mirror: &Mirror, shard: u32) -> bool {
        self.flaps.returned_owner(shard).is_some_and(|id| {
            mirror.view().instances.contains_key(id)
                && mirror.shard(shard).is_some_and(|view| view.running.is_none())
        })
    }
}

/// The run that the dead instance ran. Otherwise the run in the page has ended, and a Java instance, now dead, ran the shard since.
fn lost_run(candidate: &ClaimCandidate) -> Option<&RunId> {
    let page = &candidate.page.page;
    page.run.as_ref().filter(|_| page.state == LedgerState::Lost)
}

/// The fire that the dead instance ran. Of a Java instance it is known only that it ran something. The parameter of a trigger is stored with the
/// trigger.
async fn lost_fire(
    mirror: &Mirror,
    candidate: &ClaimCandidate,
    run: Option<&RunId>,
) -> Result<Fire, Error> {
    let page = &candidate.page.page;
    let name = mirror.job().name.clone();
    let context = mirror.context();
    if let Some(run) = run.filter(|run| !run.is_scheduled())
        && let Some(node) = context.registry.get(&mirror.tree().accepted_trigger(run)).await?
        && let Ok(trigger) = Trigger::read(&node.data)
    {
        let fire = Fire::triggered(name, trigger.at, run.clone());
        return Ok(fire.by(trigger.by).given(trigger.parameter));
    }
    Ok(match (run, page.due_at) {
        (Some(run), Some(due_at)) if run.is_scheduled() => Fire::scheduled(name, due_at),
        (Some(run), _) => {
            let trigger = page.trigger.as_deref();
            let at = trigger.map_or_else(|| context.clock.now(), |trigger| trigger.at);
            Fire::triggered(name, at, run.clone())
                .by(trigger.and_then(|trigger| trigger.by.clone()))
                .given(trigger.and_then(|trigger| trigger.parameter.clone()))
        }
        (None, _) => {
            let run = RunId::triggered(context.randomness.bits());
            Fire::triggered(name, context.clock.now(), run)
        }
    })
}

/// The entry of a lost shard in the trigger that its run comes from.
async fn lost_entry(
    mirror: &Mirror,
    candidate: &ClaimCandidate,
    run: Option<&RunId>,
) -> Result<Option<EntryChange>, Error> {
    let Some(run) = run.filter(|run| !run.is_scheduled()) else { return Ok(None) };
    let path = mirror.tree().trigger_entry(run, candidate.shard);
    let node = mirror.context().registry.get(&path).await?;
    Ok(node.map(|node| EntryChange { path, before: Some(node.data) }))
}
