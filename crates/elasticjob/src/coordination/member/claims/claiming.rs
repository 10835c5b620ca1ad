//! From a request to a claim: choose the shards, commit the transaction, confirm that they are still ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::{
    ShardClaims,
    misfire_marks::{mark_for_newcomers, mark_misfires, mark_taken_over},
};
use crate::{
    coordination::{
        claim::{ClaimCandidate, EntryChange, Refusal, ShardTransaction},
        flaw::Flaw,
        member::{
            assignment::Assignment,
            claim_status::ClaimStatus,
            handle::{
                ClaimError, ClaimRequest, ClaimScope, ClaimedShard, MemberEvent, Release,
                ShardClaim,
            },
            mirror::Mirror,
        },
        view::CachedNode,
    },
    job::{FencingToken, Fire, InstanceId},
    registry::{Committed, Error},
    runtime::Monotonic,
};

/// A claim that waits for an assignment, or for a shard that another instance still runs.
pub(super) struct WaitingClaim {
    pub(super) request: ClaimRequest,
    pub(super) until: Monotonic,
    /// How often it was tried while another instance ran its shards.
    pub(super) tries: u32,
    pub(super) reply: oneshot::Sender<Result<ShardClaim, ClaimError>>,
}

/// A claim whose transaction was committed.
pub(crate) struct CommittedClaim {
    pub(crate) fire: Fire,
    pub(crate) candidates: Vec<ClaimCandidate>,
    pub(crate) steps: ShardTransaction,
    pub(crate) committed: Committed,
}

/// Whether a claim whose time is over is refused. Even a claim that may not wait at all is tried again after the next pass: it may be this
/// instance that has to assign the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lateness {
    Tolerated,
    Refused,
}

enum Progress {
    Claimed(Box<ShardClaim>),
    Refused(ClaimError),
    /// Shards are being assigned, or another instance still runs them: try again. Refused with this error once its time is over.
    Wait(ClaimError),
}

/// How long a claim waits for the view after a gap. Without it nothing can be confirmed, and the claim is withdrawn.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(2);
/// How often a shard may be refused in one claim: other instances may be faster a few times.
const MAX_REFUSALS: u32 = 8;

/// The shards of a request, as far as they are ours.
#[derive(Default)]
struct Choice {
    /// Shards that can be claimed now.
    candidates: Vec<ClaimCandidate>,
    /// Shards that cannot be claimed now. A trigger is for them, too.
    unavailable: BTreeSet<u32>,
    /// Shards that could have been claimed, had their part of the claim been answered.
    unclaimed: BTreeSet<u32>,
    /// Another instance has one of them.
    must_wait: bool,
    /// A shard that another live instance holds according to the ledger, and that instance.
    held_elsewhere: Option<(u32, InstanceId)>,
    /// The session holds no more ephemeral nodes until other shards have ended.
    is_session_full: bool,
    /// A task of this process still runs one of them, and it was triggered.
    is_busy: bool,
    /// Shards whose ledger page cannot be read: they cannot be claimed, and waiting does not help.
    unreadable: BTreeSet<u32>,
    /// How often each shard was refused in this claim.
    refusals: BTreeMap<u32, u32>,
}

impl Choice {
    /// What follows if no shard can be claimed now.
    fn without_candidates(&self) -> Progress {
        if self.is_session_full {
            return Progress::Refused(ClaimError::SessionFull);
        }
        match (self.is_busy, self.must_wait, &self.held_elsewhere) {
            (true, _, _) => Progress::Refused(ClaimError::Busy),
            (false, _, Some((shard, holder))) => {
                let (shard, holder) = (*shard, holder.clone());
                Progress::Wait(ClaimError::HeldElsewhere { shard, holder })
            }
            (false, true, None) => Progress::Wait(ClaimError::Resharding),
            (false, false, None) => Progress::Refused(ClaimError::NothingToRun),
        }
    }
}

impl ShardClaims {
    /// Tries every waiting claim again. A claim whose time is over is refused.
    pub(crate) async fn retry_waiting(&mut self, mirror: &mut Mirror) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.advance(mirror, waiting, Lateness::Refused).await;
        }
    }

    /// Tries a claim: answers it, or lets it wait.
    pub(super) async fn advance(
        &mut self,
        mirror: &mut Mirror,
        waiting: WaitingClaim,
        lateness: Lateness,
    ) {
        let is_late = mirror.now() >= waiting.until && lateness == Lateness::Refused;
        let answer = match self.try_claim(mirror, &waiting.request).await {
            Ok(Progress::Claimed(claim)) => Ok(*claim),
            Ok(Progress::Refused(error)) => Err(error),
            Ok(Progress::Wait(error)) if is_late => Err(error),
            Ok(Progress::Wait(error)) => {
                let is_held = matches!(error, ClaimError::HeldElsewhere { .. });
                let tries = if is_held { waiting.tries.saturating_add(1) } else { 0 };
                return self.waiting.push(WaitingClaim { tries, ..waiting });
            }
            Err(error) => Err(error.into()),
        };
        let _ = waiting.reply.send(answer);
    }

    async fn try_claim(
        &mut self,
        mirror: &mut Mirror,
        request: &ClaimRequest,
    ) -> Result<Progress, Error> {
        mirror.refresh().await?;
        self.observe(mirror);
        if let Some(progress) = self.cannot_claim_yet(&mirror.assignment(), &request.scope) {
            return Ok(progress);
        }
        let mut choice = self.choose(mirror, request).await?;
        let skips_claim = mirror.context().flaws.has(Flaw::SkipClaim);
        if skips_claim && !choice.candidates.is_empty() && mirror.transactions().is_some() {
            mirror.sync().await?;
            return Ok(Progress::Claimed(Box::new(unclaimed(mirror, request, &choice.candidates))));
        }
        let progress = match self.commit_all(mirror, request, &mut choice).await? {
            None => choice.without_candidates(),
            Some(mut claimed) => {
                claimed.remaining = std::mem::take(&mut choice.unclaimed);
                if request.scope.is_trigger() {
                    claimed.remaining.append(&mut choice.unavailable);
                }
                let scope = &request.scope;
                let was_due = |shard| {
                    !request.fire.run.is_scheduled()
                        || self.missed.should_have_run(shard, request.fire.due_at)
                };
                let expected = mirror
                    .assignment()
                    .expected_shards(|shard| scope.selects(shard) && was_due(shard));
                claimed.expected = Some(expected);
                self.confirm(mirror, claimed).await?
            }
        };
        // A claim that waits is tried again, and reports when it is answered.
        if matches!(progress, Progress::Claimed(_) | Progress::Refused(ClaimError::NothingToRun)) {
            self.report_unreadable(mirror, request, &choice.unreadable);
        }
        Ok(progress)
    }

    /// What stands in the way of any claim. Pure.
    fn cannot_claim_yet(
        &self,
        assignment: &Assignment<'_>,
        scope: &ClaimScope,
    ) -> Option<Progress> {
        // Until the view is complete nothing is known. An instance that was shut down starts nothing; the next pass refuses its claims.
        if !assignment.is_member() {
            return Some(Progress::Wait(ClaimError::Resharding));
        }
        // A disabled instance is assigned nothing, however long that takes; what was due meanwhile is not to run later.
        if assignment.is_enabled() == Some(false) {
            return Some(Progress::Refused(ClaimError::NothingToRun));
        }
        if !assignment.is_settled() || !self.unresolved.is_empty() || self.is_withdrawing() {
            return Some(Progress::Wait(ClaimError::Resharding));
        }
        // Nothing compensates a trigger: a shard whose owner is gone may be ours in a moment.
        let is_trigger = scope.is_trigger();
        let is_awaiting_owners = is_trigger && assignment.has_absent_owners();
        is_awaiting_owners.then_some(Progress::Wait(ClaimError::Resharding))
    }

    /// Which shards the request is for. Marks those that it misses as misfired.
    async fn choose(&self, mirror: &mut Mirror, request: &ClaimRequest) -> Result<Choice, Error> {
        // By our clock the fire is due. If one of our shards has just moved to a newcomer, it was due before the newcomer's time.
        if matches!(request.scope, ClaimScope::Misfired { .. } | ClaimScope::Scheduled) {
            mark_for_newcomers(mirror, &request.fire, &self.missed).await?;
        }
        let free = self.free(&mirror.assignment());
        let mut unavailable = Self::unavailable(&mirror.assignment(), &free);
        if request.scope == ClaimScope::Scheduled {
            mark_taken_over(mirror, &request.fire, &unavailable, &self.held).await?;
        }
        unavailable.retain(|shard| request.scope.is_trigger_for(*shard));
        let must_wait = !unavailable.is_empty();
        let mut choice = Choice { unavailable, must_wait, ..Choice::default() };
        let busy = mirror.context().busy.shards();
        let now = mirror.time_for_pages(&free).await?;
        for shard in free {
            if busy.contains(&shard) {
                if request.scope.is_trigger_for(shard) {
                    choice.unavailable.insert(shard);
                    choice.is_busy = true;
                }
                continue;
            }
            self.consider(mirror, request, shard, now, &mut choice).await?;
        }
        Ok(choice)
    }

    /// Adds a shard to the candidates, if the request is for it and no other live instance holds it.
    async fn consider(
        &self,
        mirror: &mut Mirror,
        request: &ClaimRequest,
        shard: u32,
        now: Timestamp,
        choice: &mut Choice,
    ) -> Result<(), Error> {
        let Some(candidate) = candidate(mirror, shard) else {
            choice.unreadable.insert(shard);
            return Ok(());
        };
        if !self.is_for(mirror, request, &candidate, now) {
            return Ok(());
        }
        if let Some(holder) = live_holder(mirror, &candidate).await? {
            // Its holder writes the page when it ends, so the page has to be read again.
            mirror.pages().forget(shard);
            choice.unavailable.insert(shard);
            choice.held_elsewhere = Some((shard, holder));
        } else {
            let page = candidate.page.corrected(now);
            let is_trigger = request.scope.is_trigger()
                && !request.fire.run.is_scheduled()
                && !mirror.context().flaws.has(Flaw::OmitEntries);
            let entry = is_trigger.then(|| EntryChange {
                path: mirror.tree().trigger_entry(&request.fire.run, shard),
                before: None,
            });
            choice.candidates.push(ClaimCandidate { page, entry, ..candidate });
        }
        Ok(())
    }

    /// Claims all candidates, in as many requests as that takes. Once a request has succeeded, its shards are ours whatever becomes of the next ones:
    /// those are [`unclaimed`](Choice::unclaimed). `None` if no shard was claimed.
    async fn commit_all(
        &mut self,
        mirror: &mut Mirror,
        request: &ClaimRequest,
        choice: &mut Choice,
    ) -> Result<Option<ShardClaim>, Error> {
        let Some(first) = self.commit(mirror, request, choice).await? else { return Ok(None) };
        let mut claimed = self.adopt(mirror, first, request.cancel.clone());
        while !choice.candidates.is_empty() {
            match self.commit_next(mirror, request, choice).await {
                Ok(Some(part)) => {
                    let part = self.adopt(mirror, part, request.cancel.clone());
                    claimed.shards.extend(part.shards);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(job = %request.fire.job, due_at = %request.fire.due_at, %error, "only a part of the shards was claimed");
                    choice.give_up_candidates();
                }
            }
        }
        Ok(Some(claimed))
    }

    /// Commits another part of a claim. The nodes of the part before are seen first: if this request breaks the connection, its notifications are
    /// lost, and that part would look as if it had been taken away.
    async fn commit_next(
        &mut self,
        mirror: &mut Mirror,
        request: &ClaimRequest,
        choice: &mut Choice,
    ) -> Result<Option<CommittedClaim>, Error> {
        mirror.refresh().await?;
        self.commit(mirror, request, choice).await
    }

    /// Commits the claim of as many candidates as fit into one request; they are no longer candidates then. A shard that lost a race is looked at
    /// again, alone, and left out if it is no longer free. `None` if no shard is left to claim.
    async fn commit(
        &mut self,
        mirror: &mut Mirror,
        request: &ClaimRequest,
        choice: &mut Choice,
    ) -> Result<Option<CommittedClaim>, Error> {
        loop {
            if choice.candidates.is_empty() {
                return Ok(None);
            }
            let Some(transactions) = mirror.transactions() else {
                return Ok(choice.wait());
            };
            let mut steps = transactions.claim(&request.fire, &choice.candidates);
            let registry = &mirror.context().registry;
            let fitting_session = steps.fitting_session(registry.ephemeral_room());
            if fitting_session == 0 {
                choice.is_session_full = true;
                choice.give_up_candidates();
                return Ok(None);
            }
            let count = steps.fitting(registry.limits()).min(fitting_session);
            if count < choice.candidates.len() {
                steps = transactions.claim(&request.fire, &choice.candidates[..count]);
            }
            let error = match mirror.commit(steps.ops()).await {
                Ok(committed) => {
                    let candidates = choice.candidates.drain(..count).collect();
                    let fire = request.fire.clone();
                    return Ok(Some(CommittedClaim { fire, candidates, steps, committed }));
                }
                Err(error) => error,
            };
            let refusal = steps.refusal(&error);
            let refused = steps.refused_shard(&error).filter(|_| refusal.is_some());
            if let Some(shard) = refused
                && choice.is_refused_too_often(shard)
            {
                // For example by a node that another program put below one that a claim deletes. It must not hold up the other shards.
                mirror.deny_page(shard, &error);
                choice.drop_candidates(&BTreeSet::from([shard]));
                choice.unreadable.insert(shard);
                continue;
            }
            match refusal {
                Some(Refusal::Precondition) => {
                    mirror.refresh().await?;
                    return Ok(choice.wait());
                }
                // It was removed: nothing is left to run.
                Some(Refusal::Trigger) => {
                    *choice = Choice::default();
                    return Ok(None);
                }
                // Another instance has claimed it, or it was decided that it does not run.
                Some(Refusal::Entry(shard)) => {
                    choice.drop_candidates(&BTreeSet::from([shard]));
                }
                // Nothing compensates a trigger: it waits until the shard is free.
                Some(Refusal::Running(shard)) if request.scope.is_trigger() => {
                    mirror.refresh().await?;
                    let running = choice.running(mirror, shard);
                    choice.drop_candidates(&running);
                    choice.unavailable.extend(running);
                    choice.must_wait = true;
                }
                Some(Refusal::Running(shard)) => {
                    mirror.refresh().await?;
                    let running = choice.running(mirror, shard);
                    let marked = mark_misfires(mirror, running).await?;
                    choice.drop_candidates(&marked);
                    // A run that has ended by now was not marked: its shard is free.
                    mirror.refresh().await?;
                }
                Some(Refusal::Page(shard) | Refusal::Shard(shard)) => {
                    mirror.pages().forget(shard);
                    mirror.refresh().await?;
                    choice.drop_candidates(&BTreeSet::from([shard]));
                    let now = mirror.time_for_pages(&[shard]).await?;
                    self.consider(mirror, request, shard, now, choice).await?;
                }
                None => {
                    let Some(shard) = steps.refused_shard(&error).filter(|_| error.is_denial())
                    else {
                        self.unresolved.note(mirror, &error, &choice.candidates[..count]);
                        return Err(error);
                    };
                    mirror.deny_page(shard, &error);
                    choice.drop_candidates(&BTreeSet::from([shard]));
                    choice.unreadable.insert(shard);
                }
            }
        }
    }

    /// Keeps the shards that are still ours now that the claim is answered, and withdraws the claims of all others.
    async fn confirm(
        &mut self,
        mirror: &mut Mirror,
        claimed: ShardClaim,
    ) -> Result<Progress, Error> {
        // The answer of a claim may have been lost and its result settled since: then the connection broke, and the view starts over.
        if let Err(error) = mirror.refresh_after_gap(SNAPSHOT_WAIT).await {
            // The request is answered with this error, so nothing may stay claimed.
            self.withdraw(claimed.shards);
            return Err(error);
        }
        let assignment = mirror.assignment();
        let ours = if assignment.is_settled() { assignment.runnable() } else { BTreeSet::new() };
        let keeps_moved = mirror.context().flaws.has(Flaw::KeepReassigned);
        let is_ours = |shard: &ClaimedShard| ours.contains(&shard.item) || keeps_moved;
        let (kept, moved): (Vec<_>, Vec<_>) = claimed.shards.into_iter().partition(is_ours);
        if !moved.is_empty() {
            self.withdraw(moved);
            self.settle_releases(mirror).await;
        }
        if kept.is_empty() {
            return Ok(Progress::Wait(ClaimError::Resharding));
        }
        let busy = mirror.occupy(kept.iter().map(|shard| shard.item));
        Ok(Progress::Claimed(Box::new(ShardClaim { shards: kept, busy, ..claimed })))
    }

    fn withdraw(&mut self, shards: Vec<ClaimedShard>) {
        self.release(
            shards.into_iter().map(|shard| (shard.item, Release::Withdrawn)).collect(),
            None,
        );
    }

    /// Shards assigned to us that may run and are not free: another instance has taken them over, or we hold them.
    fn unavailable(assignment: &Assignment<'_>, free: &[u32]) -> BTreeSet<u32> {
        let mut assigned = assignment.assigned();
        let free: BTreeSet<u32> = free.iter().copied().collect();
        assigned.retain(|shard| {
            !free.contains(shard)
                && assignment.view.shards.get(shard).is_some_and(|view| !view.disabled)
                && assignment.is_enabled() == Some(true)
        });
        assigned
    }

    /// Reports shards that do not start because of their ledger page, once for each fire.
    fn report_unreadable(
        &mut self,
        mirror: &mut Mirror,
        request: &ClaimRequest,
        shards: &BTreeSet<u32>,
    ) {
        let due_at = request.fire.due_at;
        self.reported_triggers.retain(|(shard, _)| shards.contains(shard));
        let mut problems = BTreeMap::new();
        for shard in shards {
            let is_for = match &request.scope {
                ClaimScope::Scheduled => true,
                ClaimScope::Triggered(selection) => selection.contains(*shard),
                ClaimScope::Misfired { since } => {
                    request.fire.run.is_scheduled()
                        && due_at > *since
                        && self.missed.should_have_run(*shard, due_at)
                }
                ClaimScope::CatchUp => false,
            };
            let is_reported = request.fire.run.is_scheduled()
                && self.reported.get(shard).is_some_and(|reported| due_at <= *reported);
            if !is_for || is_reported {
                continue;
            }
            if request.fire.run.is_scheduled() {
                self.reported.insert(*shard, due_at);
            } else if !self.reported_triggers.insert((*shard, request.fire.run.to_string())) {
                continue;
            }
            if let Some(problem) = mirror.pages().problem(*shard) {
                problems.insert(*shard, problem.to_owned());
            }
        }
        if !problems.is_empty() {
            let due_at = request.fire.run.due_at();
            mirror.context().send(MemberEvent::ShardsUnreadable { due_at, problems });
        }
    }

    /// Whether the request is for this shard, by the shard's page, as judged at `now`, and by its marks.
    fn is_for(
        &self,
        mirror: &Mirror,
        request: &ClaimRequest,
        candidate: &ClaimCandidate,
        now: Timestamp,
    ) -> bool {
        let flaws = mirror.context().flaws;
        let (seen, due_at) = (&candidate.page, request.fire.due_at);
        let is_covered = flaws.has(Flaw::TrustEveryPage)
            && request.fire.run.is_scheduled()
            && seen.page.due_at.is_some_and(|known| known >= due_at);
        let has_started =
            (is_covered || seen.has_started(&request.fire, now)) && !flaws.has(Flaw::IgnoreLedger);
        match &request.scope {
            ClaimScope::Scheduled => !has_started,
            ClaimScope::Triggered(shards) => !has_started && shards.contains(candidate.shard),
            // A shard that never ran has nothing to catch up on.
            ClaimScope::CatchUp => {
                !has_started
                    && seen.page.due_at.is_some()
                    && self.missed.is_ledger_complete(due_at)
                    && (self.missed.should_have_run(candidate.shard, due_at)
                        || flaws.has(Flaw::IgnoreFloor))
            }
            ClaimScope::Misfired { since } => {
                let shard = candidate.shard;
                let assignment = mirror.assignment();
                // Java writes no ledger, so its runs look as if no instance had run them. While we ran the shard, no other instance did.
                let is_known_missed = request.fire.run.is_scheduled()
                    && due_at > *since
                    && self.missed.should_have_run(shard, due_at)
                    && (self.missed.is_ledger_complete(due_at)
                        || self.missed.ran_here(shard, due_at));
                // A mark does not say which fire was missed. Once the last fire has started, no earlier one is missed: the instance
                // that left the mark did not know of that run yet.
                !has_started && (is_known_missed || self.has_misfire_mark(&assignment, shard))
            }
        }
    }
}

impl Choice {
    /// The candidate that was refused because it runs, and all others that are seen to run: each alone would cost a request.
    fn running(&self, mirror: &Mirror, refused: u32) -> BTreeSet<u32> {
        let is_running =
            |shard: &u32| mirror.shard(*shard).is_some_and(|view| view.running.is_some());
        let seen = self.candidates.iter().map(|candidate| candidate.shard).filter(is_running);
        seen.chain([refused]).collect()
    }

    /// Notes a refusal. Whether the shard will probably always be refused.
    fn is_refused_too_often(&mut self, shard: u32) -> bool {
        let count = self.refusals.entry(shard).or_default();
        *count += 1;
        *count > MAX_REFUSALS
    }

    fn drop_candidates(&mut self, shards: &BTreeSet<u32>) {
        self.candidates.retain(|candidate| !shards.contains(&candidate.shard));
    }

    /// Nothing more can be claimed before the view has changed.
    fn wait<T>(&mut self) -> Option<T> {
        self.give_up_candidates();
        (self.must_wait, self.is_busy, self.held_elsewhere) = (true, false, None);
        None
    }

    fn give_up_candidates(&mut self) {
        self.unclaimed.extend(self.candidates.drain(..).map(|candidate| candidate.shard));
    }
}

/// A shard as it is known now, ready to be claimed; `None` if its ledger page, which was fetched before, could not be read.
pub(crate) fn candidate(mirror: &mut Mirror, shard: u32) -> Option<ClaimCandidate> {
    let page = mirror.pages().get(shard)?;
    let view = mirror.shard(shard);
    let stale_failovering =
        view.and_then(|view| view.failovering.as_ref()).and_then(CachedNode::document);
    Some(ClaimCandidate {
        shard,
        page,
        awaits_failover: mirror.view().failover_items.contains(&shard),
        has_misfire_mark: view.is_some_and(|view| view.misfire),
        stale_failovering: stale_failovering.map(|document| document.version),
        entry: None,
    })
}

/// The other live instance that runs the shard according to the ledger alone.
async fn live_holder(
    mirror: &Mirror,
    candidate: &ClaimCandidate,
) -> Result<Option<InstanceId>, Error> {
    let running = mirror.shard(candidate.shard).and_then(|shard| shard.running.as_ref());
    match candidate.page.page.other_holder(mirror.own_id()) {
        // A `running` node refuses the claim by itself, and then the shard is marked as misfired.
        Some(holder) if running.is_none() && mirror.is_alive(holder).await? => {
            Ok(Some(holder.clone()))
        }
        Some(_) | None => Ok(None),
    }
}

/// A claim that was never made, for the simulation's flaw `SkipClaim`.
fn unclaimed(mirror: &Mirror, request: &ClaimRequest, candidates: &[ClaimCandidate]) -> ShardClaim {
    let shards = candidates.iter().map(|candidate| ClaimedShard {
        item: candidate.shard,
        attempt: 1,
        token: FencingToken::new(mirror.context().clock.now().as_millisecond()),
        status: Arc::new(ClaimStatus::new(request.cancel.child())),
        answers_since: None,
    });
    ShardClaim {
        fire: request.fire.clone(),
        shards: shards.collect(),
        remaining: BTreeSet::new(),
        expected: None,
        cancel: request.cancel.clone(),
        session: mirror.context().session.clone(),
        busy: mirror.occupy(candidates.iter().map(|candidate| candidate.shard)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        coordination::{
            floor::Floor,
            ledger::VersionedPage,
            member::claims::unresolved_claims::UnresolvedClaims,
            member::test_view::{OTHER, TestView, US},
            tree::JobTree,
        },
        job::ShardSelection,
    };

    fn progress(claims: &ShardClaims, test: &TestView, scope: &ClaimScope) -> Option<&'static str> {
        match claims.cannot_claim_yet(&test.assignment(), scope)? {
            Progress::Refused(ClaimError::NothingToRun) => Some("nothing"),
            Progress::Claimed(_) | Progress::Refused(_) => Some("another answer"),
            Progress::Wait(_) => Some("wait"),
        }
    }

    #[test]
    fn claim_waits_for_an_assignment_and_is_refused_while_disabled() {
        let test = || TestView::new(1, &[US]).owners(&[US]);
        let claims = ShardClaims::new(&test().job, BTreeSet::new(), Floor::default());
        assert_eq!(progress(&claims, &test(), &ClaimScope::Scheduled), None);

        let assigning = test().with(JobTree::processing, "");
        assert_eq!(progress(&claims, &assigning, &ClaimScope::Scheduled), Some("wait"));
        let disabled = assigning.with(|tree| tree.server("10.0.0.1"), "DISABLED");
        assert_eq!(progress(&claims, &disabled, &ClaimScope::Scheduled), Some("nothing"));
        let shut_down = disabled.without(|tree| tree.instance(US));
        assert_eq!(progress(&claims, &shut_down, &ClaimScope::Scheduled), Some("wait"));
    }

    #[test]
    fn claim_waits_until_an_earlier_one_is_resolved() {
        let test = TestView::new(1, &[US]).owners(&[US]);
        let mut claims = ShardClaims::new(&test.job, BTreeSet::new(), Floor::default());
        claims.unresolved =
            UnresolvedClaims::of([ClaimCandidate::new(0, VersionedPage::default())]);

        assert_eq!(progress(&claims, &test, &ClaimScope::Scheduled), Some("wait"));
    }

    #[test]
    fn only_a_trigger_waits_for_shards_of_absent_owners() {
        let test = TestView::new(1, &[US]).owners(&[OTHER]);
        let claims = ShardClaims::new(&test.job, BTreeSet::new(), Floor::default());

        assert_eq!(progress(&claims, &test, &ClaimScope::Scheduled), None);
        assert_eq!(
            progress(&claims, &test, &ClaimScope::Triggered(ShardSelection::All)),
            Some("wait")
        );
    }

    #[test]
    fn request_without_candidates_is_busy_before_it_waits() {
        let choice = |is_busy, must_wait| Choice { must_wait, is_busy, ..Choice::default() };
        let answer = |choice: Choice| match choice.without_candidates() {
            Progress::Refused(refused) => refused.to_string(),
            Progress::Claimed(_) => "claimed".to_owned(),
            Progress::Wait(_) => "wait".to_owned(),
        };

        assert_eq!(answer(choice(true, true)), ClaimError::Busy.to_string());
        assert_eq!(answer(choice(false, true)), "wait");
        assert_eq!(answer(choice(false, false)), ClaimError::NothingToRun.to_string());
    }
}
