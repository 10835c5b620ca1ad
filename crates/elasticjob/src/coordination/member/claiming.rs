//! Claiming shards for a fire.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::oneshot;

use super::{
    actor::Actor,
    duties::{has_ghosts, is_enabled},
    handle::{Claimed, ClaimedShard, Ended, Refused, Request, Why},
    hold::Hold,
    releasing::Releasing,
};
use crate::{
    coordination::{
        claim::{ClaimCandidate, Refusal, TransactionBuilder},
        flaw::Flaw,
        tree::ShardNode,
        view::CachedNode,
    },
    job::FencingToken,
    registry::{Error, Version},
    runtime::Monotonic,
};

/// A claim that waits until shards are dealt.
pub(super) struct Parked {
    pub(super) request: Request,
    pub(super) until: Monotonic,
    pub(super) reply: oneshot::Sender<Result<Claimed, Refused>>,
}

/// What came of one try to claim.
enum Attempt {
    ConfigDecision(Result<Claimed, Refused>),
    /// Shards are being dealt, or somebody is in the way: try again.
    Wait,
}

impl Actor {
    /// Tries every claim that waits; what was in the way is told to whoever waits.
    pub(super) async fn settle_parked(&mut self) {
        for parked in std::mem::take(&mut self.parked) {
            let is_late = self.clock.monotonic() >= parked.until;
            match self.try_claim(&parked.request).await {
                Ok(Attempt::ConfigDecision(answer)) => Self::answer(parked.reply, answer),
                Ok(Attempt::Wait) if is_late => {
                    Self::answer(parked.reply, Err(Refused::Resharding));
                }
                Ok(Attempt::Wait) => self.parked.push(parked),
                Err(error) => Self::answer(parked.reply, Err(error.into())),
            }
        }
    }

    async fn try_claim(&mut self, request: &Request) -> Result<Attempt, Error> {
        self.catch_up().await?;
        // Whoever is disabled is dealt nothing, however long that takes; what was to run then is not to run later.
        if is_enabled(&self.view, &self.me, &self.job) == Some(false) {
            return Ok(Attempt::ConfigDecision(Err(Refused::Nothing)));
        }
        if !self.is_settled() || !self.uncertain.is_empty() {
            return Ok(Attempt::Wait);
        }
        // Nothing makes up for a trigger: what still belongs to somebody who is gone may be ours in a moment.
        if matches!(request.why, Why::Asked(_)) && has_ghosts(&self.view, &self.job) {
            return Ok(Attempt::Wait);
        }
        let fire = &request.fire;
        // By our clock it is due now; by that of whoever came a moment ago, and got the shard we had, it was before their time.
        if matches!(request.why, Why::Late { .. } | Why::Due) {
            self.mark_for_newcomers(fire).await?;
        }
        let mut stakes = Vec::new();
        let mine = self.mine();
        // What is ours and cannot be claimed now. A fire that is due is marked as missed there; a trigger is for them, too.
        let mut left = self.not_free(&mine);
        if request.why == Why::Due {
            self.mark_what_others_took(fire, &left).await?;
        }
        left.retain(|shard| request.why.is_asked_of(*shard));
        let (mut waits, mut is_busy) = (!left.is_empty(), false);
        self.fetch_pages(&mine).await?;
        for shard in mine {
            if request.busy.contains(&shard) {
                if request.why.is_asked_of(shard) {
                    left.insert(shard);
                    is_busy = true;
                }
                continue;
            }
            let stake = self.stake(shard).await?;
            if !self.is_wanted(request, &stake) {
                continue;
            }
            if self.is_in_other_hands(&stake).await? {
                self.pages.remove(&shard);
                left.insert(shard);
                waits = true;
            } else {
                stakes.push(stake);
            }
        }
        let (steps, committed) = loop {
            if stakes.is_empty() {
                return Ok(match (is_busy, waits) {
                    (true, _) => Attempt::ConfigDecision(Err(Refused::Busy)),
                    (false, true) => Attempt::Wait,
                    (false, false) => Attempt::ConfigDecision(Err(Refused::Nothing)),
                });
            }
            let Some(claimant) = self.claimant() else { return Ok(Attempt::Wait) };
            let steps = claimant.claim(fire, &stakes);
            if self.flaws.has(Flaw::SkipClaim) {
                self.registry.sync().await?;
                return Ok(Attempt::ConfigDecision(Ok(self.unclaimed(request, &stakes))));
            }
            let error = match self.registry.multi(steps.ops()).await {
                Ok(committed) => break (steps, committed),
                Err(error) => error,
            };
            match steps.refusal(&error) {
                Some(Refusal::Precondition) => {
                    self.catch_up().await?;
                    return Ok(Attempt::Wait);
                }
                // Nothing makes up for a trigger: it waits until the shard is free.
                Some(Refusal::Running(shard)) if matches!(request.why, Why::Asked(_)) => {
                    self.catch_up().await?;
                    stakes.retain(|stake| stake.shard != shard);
                    left.insert(shard);
                    waits = true;
                }
                Some(Refusal::Running(shard)) => {
                    // If that run is over by now the shard is free.
                    if self.mark_missed(shard, ShardNode::Running).await? {
                        stakes.retain(|stake| stake.shard != shard);
                    } else {
                        self.catch_up().await?;
                    }
                }
                Some(Refusal::Page(shard) | Refusal::Shard(shard)) => {
                    self.pages.remove(&shard);
                    self.catch_up().await?;
                    let stake = self.stake(shard).await?;
                    stakes.retain(|old| old.shard != shard);
                    if self.is_wanted(request, &stake) && !self.is_in_other_hands(&stake).await? {
                        stakes.push(stake);
                    }
                }
                None => {
                    self.doubt(&error, &stakes);
                    return Err(error);
                }
            }
        };
        let shards = self.hold(fire, &stakes, &steps, &committed, &request.cancel);
        let token = FencingToken::new(committed.zxid.0);
        let left = if matches!(request.why, Why::Asked(_)) { left } else { BTreeSet::new() };
        self.keep_what_is_ours(Claimed { fire: fire.clone(), shards, token, left }).await
    }

    /// Shards that were dealt to us, may run, and are in somebody's hands: those who took them over, or our own.
    fn not_free(&self, mine: &[u32]) -> BTreeSet<u32> {
        let mut dealt = self.dealt_to_me();
        dealt.retain(|shard| {
            !mine.contains(shard)
                && self.view.shards.get(shard).is_some_and(|view| !view.disabled)
                && is_enabled(&self.view, &self.me, &self.job) == Some(true)
        });
        dealt
    }

    /// Whether this request is for this shard, by its page and its marks.
    fn is_wanted(&self, request: &Request, stake: &ClaimCandidate) -> bool {
        let has_started =
            stake.page.page.has_started(&request.fire) && !self.flaws.has(Flaw::IgnoreLedger);
        match &request.why {
            Why::Due => !has_started,
            Why::Asked(shards) => {
                !has_started && (shards.is_empty() || shards.contains(&stake.shard))
            }
            // What never ran has nothing to catch up with.
            Why::CatchUp => !has_started && stake.page.page.due_at.is_some(),
            Why::Late { since } => {
                let (shard, due_at) = (stake.shard, request.fire.due_at);
                // Java keeps no ledger: what it ran looks as if nobody had. What was due while we ran it nobody else can have run.
                let is_known_missed = request.fire.run.is_scheduled()
                    && due_at > *since
                    && self.presence.was_to_run(shard, due_at)
                    && (!self.has_java() || self.memory.ran_at(shard, due_at));
                // A mark does not say what was missed. Once the last fire has been started nothing before it is missed any more: whoever
                // left the mark did not know of that run yet.
                !has_started && (is_known_missed || self.is_missed(shard))
            }
        }
    }

    /// Whether somebody else runs it by the ledger, whatever the tree shows.
    async fn is_in_other_hands(&mut self, stake: &ClaimCandidate) -> Result<bool, Error> {
        let running = self.view.shards.get(&stake.shard).and_then(|shard| shard.running.as_ref());
        match stake.page.page.other_holder(&self.me) {
            // A `running` that is there refuses the claim by itself, and the run is marked as missed.
            Some(owner) if running.is_none() => {
                let owner = owner.clone();
                self.lives(&owner).await
            }
            Some(_) | None => Ok(false),
        }
    }

    pub(super) async fn stake(&mut self, shard: u32) -> Result<ClaimCandidate, Error> {
        let seen = self.page(shard).await?;
        let view = self.view.shards.get(&shard);
        let stale_failovering =
            view.and_then(|view| view.failovering.as_ref()).and_then(CachedNode::document);
        Ok(ClaimCandidate {
            shard,
            page: seen,
            awaits_failover: self.view.failover_items.contains(&shard),
            has_misfire_mark: view.is_some_and(|view| view.misfire),
            stale_failovering: stale_failovering.map(|document| document.version),
        })
    }

    /// What the simulation calls a claim when none was made.
    fn unclaimed(&self, request: &Request, stakes: &[ClaimCandidate]) -> Claimed {
        let shards = stakes.iter().map(|stake| ClaimedShard {
            item: stake.shard,
            attempt: 1,
            hold: Arc::new(Hold::new(request.cancel.child())),
        });
        let token = FencingToken::new(self.clock.now().as_millisecond());
        let (fire, left) = (request.fire.clone(), BTreeSet::new());
        Claimed { fire, shards: shards.collect(), token, left }
    }

    /// The claim's answer was a sync: whatever moved before it is seen now, and what is not ours any more is given back.
    async fn keep_what_is_ours(&mut self, claimed: Claimed) -> Result<Attempt, Error> {
        if let Err(error) = self.catch_up().await {
            // Whoever asked is told that nothing came of it: so nothing may stay claimed.
            let shards = claimed.shards.into_iter();
            let ended: Vec<_> = shards.map(|shard| (shard.item, Ended::Withdrawn)).collect();
            self.begin_release(&ended);
            self.releasing.push(Releasing { ended, reply: None });
            return Err(error);
        }
        let mine = if self.is_settled() { self.owned() } else { BTreeSet::new() };
        let is_kept = |shard: &ClaimedShard| {
            mine.contains(&shard.item) || self.flaws.has(Flaw::KeepReassigned)
        };
        let (keep, give_back): (Vec<_>, Vec<_>) = claimed.shards.into_iter().partition(is_kept);
        if !give_back.is_empty() {
            let ended: Vec<(u32, Ended)> =
                give_back.into_iter().map(|shard| (shard.item, Ended::Withdrawn)).collect();
            self.begin_release(&ended);
            self.releasing.push(Releasing { ended, reply: None });
            self.settle_releases().await?;
        }
        if keep.is_empty() {
            return Ok(Attempt::Wait);
        }
        Ok(Attempt::ConfigDecision(Ok(Claimed { shards: keep, ..claimed })))
    }

    pub(super) fn claimant(&self) -> Option<TransactionBuilder<'_>> {
        Some(self.claimant_on(self.view.config.as_ref()?.document()?.version))
    }

    pub(super) fn claimant_on(&self, config: Version) -> TransactionBuilder<'_> {
        TransactionBuilder {
            tree: &self.tree,
            instance: &self.me,
            session: self.session,
            config_version: config,
            monitor: self.job.monitor,
            failover: self.job.failover,
        }
    }
}
