//! Taking over flagged shards.

use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::Recovery;
use crate::{
    coordination::{
        claim::Stake,
        flaw::Flaw,
        latch::{self, Turn},
        ledger::State,
        member::{
            claims::{CommittedClaim, candidate},
            context::Context,
            handle::{Claimed, Refused},
            mirror::Mirror,
        },
        sharding::available,
    },
    job::{Fire, RunId},
    registry::{Error, Expected, Op},
    runtime::Cancel,
};

/// How long to queue for the right to take over.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a takeover starts again after other instances were faster.
const TRIES: usize = 8;

/// A takeover that was asked for and waits for its turn in the latch.
pub(crate) struct PendingTakeover {
    pub(crate) cancel: Cancel,
    busy: BTreeSet<u32>,
    pub(crate) reply: oneshot::Sender<Result<Claimed, Refused>>,
}

pub(crate) enum TakeoverResult {
    Committed(CommittedClaim),
    Nothing,
    /// The transaction that takes over these shards failed, and may have been committed all the same.
    Failed(Error, Vec<Stake>),
}

impl Recovery {
    /// Begins a takeover of orphans that no task of this process still runs (`busy`). The returned future queues in the latch and has to be
    /// polled elsewhere, because it waits for others; [`take_over`](Self::take_over) has to follow it.
    pub(crate) fn begin_takeover(
        &mut self,
        context: &Context,
        orphans: &BTreeSet<u32>,
        cancel: Cancel,
        busy: BTreeSet<u32>,
        reply: oneshot::Sender<Result<Claimed, Refused>>,
    ) -> Option<impl Future<Output = Result<Option<Turn>, Error>> + Send + 'static> {
        if orphans.is_subset(&busy) || self.takeover.is_some() {
            let _ = reply.send(Err(Refused::Nothing));
            return None;
        }
        self.takeover = Some(PendingTakeover { cancel, busy, reply });
        let (registry, latch) = (Arc::clone(&context.registry), context.tree.failover_latch());
        let ticket = context.randomness.bits();
        Some(async move { latch::queue(&*registry, &latch, ticket, TURN_TIMEOUT).await })
    }

    pub(crate) fn end_takeover(&mut self) -> Option<PendingTakeover> {
        self.takeover.take()
    }

    /// Takes over our share of the orphans, now that it is our turn.
    pub(crate) async fn take_over(
        &mut self,
        mirror: &mut Mirror,
        turn: &Turn,
        in_hand: &BTreeSet<u32>,
    ) -> TakeoverResult {
        if self.takeover.is_none() {
            return TakeoverResult::Nothing;
        }
        match self.try_take_over(mirror, turn, in_hand).await {
            Ok(result) => result,
            Err(error) => TakeoverResult::Failed(error, Vec::new()),
        }
    }

    async fn try_take_over(
        &mut self,
        mirror: &mut Mirror,
        turn: &Turn,
        in_hand: &BTreeSet<u32>,
    ) -> Result<TakeoverResult, Error> {
        for _ in 0..TRIES {
            mirror.refresh().await?;
            self.clear_settled_flags(mirror).await?;
            let Some((fire, candidates)) = self.share(mirror, in_hand).await? else { break };
            let Some(transactions) = mirror.transactions() else { break };
            let steps = transactions.take(turn, &fire, &candidates);
            match mirror.write(steps.ops()).await {
                Ok(committed) => {
                    let claim = CommittedClaim { fire, candidates, steps, committed };
                    return Ok(TakeoverResult::Committed(claim));
                }
                Err(error) if steps.refusal(&error).is_some() => {
                    for candidate in &candidates {
                        mirror.pages().forget(candidate.shard);
                    }
                }
                Err(error) => return Ok(TakeoverResult::Failed(error, candidates)),
            }
        }
        Ok(TakeoverResult::Nothing)
    }

    /// Our share of the orphans: of the run of the first of them, as many as there are for each instance.
    async fn share(
        &mut self,
        mirror: &mut Mirror,
        in_hand: &BTreeSet<u32>,
    ) -> Result<Option<(Fire, Vec<Stake>)>, Error> {
        self.observe(mirror);
        let busy = self.takeover.as_ref().map(|pending| pending.busy.clone()).unwrap_or_default();
        let orphans = self.orphans(&mirror.assignment(), in_hand, mirror.now());
        let orphans: Vec<u32> = orphans.difference(&busy).copied().collect();
        let instances = available(mirror.view()).map_or(1, |all| all.len().max(1));
        let count = orphans.len().div_ceil(instances);
        let mut fire: Option<Fire> = None;
        let mut candidates = Vec::new();
        let unread = mirror.view().unread_holders();
        mirror.read(&unread).await?;
        for shard in orphans {
            if candidates.len() == count {
                break;
            }
            mirror.pages().forget(shard);
            let candidate = candidate(mirror, shard).await?;
            let lost = lost_fire(mirror, &candidate);
            if *fire.get_or_insert_with(|| lost.clone()) == lost || candidates.is_empty() {
                candidates.push(candidate);
            }
        }
        Ok(fire.map(|fire| (fire, candidates)))
    }

    /// Clears flags of shards that need no takeover: a shard that ran since it was flagged has repeated the lost run, which Java forgets to
    /// note, and nothing was lost if a mere reconnect was taken for a death.
    async fn clear_settled_flags(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        if mirror.context().flaws.has(Flaw::TakeTwice) {
            return Ok(());
        }
        self.observe(mirror);
        let flagged = mirror.view().failover_items.iter().copied();
        let settled: Vec<u32> = flagged.filter(|shard| self.is_settled(mirror, *shard)).collect();
        for shard in settled {
            let seen = mirror.reread_page(shard).await?;
            // Everything up to the read is visible now. An instance that flags the shard again after that writes the page, and the
            // transaction is refused.
            mirror.refresh().await?;
            self.observe(mirror);
            let is_mistaken = self.is_mistaken(mirror, shard);
            // A run that is lost by the ledger is lost: another instance ran it, and died.
            if !self.is_settled(mirror, shard) || (is_mistaken && seen.page.state == State::Lost) {
                continue;
            }
            if is_mistaken {
                tracing::info!(job = %mirror.job().name, shard, "failover flag cleared, the owner reconnected and still runs the shard");
            }
            let page = mirror.tree().page(shard);
            let expected = seen.version.map(Expected::Version);
            let mut ops: Vec<Op> =
                expected.map(|expected| Op::Check { path: page, expected }).into_iter().collect();
            let flag = mirror.tree().failover_item(shard);
            ops.push(Op::Delete { path: flag, expected: Expected::Any });
            match mirror.write(ops).await {
                Ok(_) | Err(Error::Member { .. }) => {}
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

/// The fire that the dead instance ran. Of a Java instance it is known only that it ran something.
fn lost_fire(mirror: &Mirror, candidate: &Stake) -> Fire {
    let page = &candidate.seen.page;
    let name = mirror.job().name.clone();
    let context = mirror.context();
    // Otherwise the run in the page has ended, and a Java instance, now dead, ran the shard since.
    let run = page.run.as_ref().filter(|_| page.state == State::Lost);
    match (run, page.due_at) {
        (Some(run), Some(due_at)) if run.is_scheduled() => Fire::scheduled(name, due_at),
        (Some(run), _) => {
            let asked = page.asked.as_deref();
            let at = asked.map_or_else(|| context.clock.now(), |asked| asked.at);
            Fire::triggered(name, at, run.clone())
                .by(asked.and_then(|asked| asked.by.clone()))
                .given(asked.and_then(|asked| asked.parameter.clone()))
        }
        (None, _) => {
            let run = RunId::triggered(context.randomness.bits());
            Fire::triggered(name, context.clock.now(), run)
        }
    }
}
