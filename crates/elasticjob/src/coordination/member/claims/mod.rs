//! The claims of this instance: what it holds, what it waits for, what it gives back.
//!
//! ```text
//!            must wait for an assignment            unknown result
//! request ──────────────► waiting            ┌──────────────────────► unresolved ──► undone, or never happened
//!    │                       │               │
//!    └───► choose ◄──────────┘  ──► commit ──┴──► confirm ──► held ──► releasing ──► released
//!                                                    └─ moved meanwhile ──► withdrawn
//! ```
//!
//! A claim is one transaction that checks the configuration and writes every shard's ledger page by version. Its answer is also a sync: a
//! shard that was reassigned before the claim is seen then, and its claim is withdrawn. A claim with an unknown result blocks further claims
//! until it is known not to have happened, or is undone.

mod claiming;
mod held_shards;
mod misfire_marks;
mod missed_fires;
mod releasing;
mod unresolved_claims;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::oneshot;

pub(super) use self::claiming::{CommittedClaim, candidate};
use self::{
    claiming::{Lateness, WaitingClaim},
    held_shards::HeldShards,
    missed_fires::MissedFires,
    releasing::PendingRelease,
    unresolved_claims::UnresolvedClaims,
};
use super::{
    assignment::Assignment,
    handle::{ClaimError, ClaimRequest, ShardClaim},
    mirror::Mirror,
};
use crate::{
    coordination::{
        claim::{ClaimCandidate, ClearedMarks},
        flaw::Flaw,
        floor::Floor,
        trigger::Cancellation,
    },
    job::{Job, Misfire},
    registry::Error,
    runtime::{CancelToken, Monotonic},
};

/// How long to wait before an unfinished claim or release is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How often that is doubled at most while another instance holds the shards.
const MAX_DOUBLINGS: u32 = 4;

pub(super) struct ShardClaims {
    held: HeldShards,
    unresolved: UnresolvedClaims,
    waiting: Vec<WaitingClaim>,
    releasing: Vec<PendingRelease>,
    missed: MissedFires,
    /// Shards whose page could not be read, each with the newest fire for which that was reported.
    reported: BTreeMap<u32, Timestamp>,
    /// The same for triggers.
    reported_triggers: BTreeSet<(u32, String)>,
    /// A run that was cancelled stays cancelled if it is claimed again, for example because its first claim was withdrawn.
    cancellations: Vec<Cancellation>,
}

impl ShardClaims {
    /// `leftover_marks` are misfire marks that were there before any instance was.
    pub(super) fn new(job: &Job, leftover_marks: BTreeSet<u32>, floor: Floor) -> Self {
        Self {
            held: HeldShards::default(),
            unresolved: UnresolvedClaims::default(),
            waiting: Vec::new(),
            releasing: Vec::new(),
            missed: MissedFires::new(job, leftover_marks, floor),
            reported: BTreeMap::new(),
            reported_triggers: BTreeSet::new(),
            cancellations: Vec::new(),
        }
    }

    /// Notes what the view shows about which fires are to run.
    pub(super) fn observe(&mut self, mirror: &Mirror) {
        self.missed.observe(mirror.view(), mirror.job(), mirror.context().clock.now());
    }

    /// Claims the shards of a request now if that is possible; otherwise the request waits.
    pub(super) async fn claim(
        &mut self,
        mirror: &mut Mirror,
        request: ClaimRequest,
        reply: oneshot::Sender<Result<ShardClaim, ClaimError>>,
    ) {
        let until = mirror.now() + request.max_wait;
        self.advance(mirror, WaitingClaim { request, until, tries: 0, reply }, Lateness::Tolerated)
            .await;
    }

    /// Lets a request wait without trying it now.
    pub(super) fn wait(
        &mut self,
        mirror: &Mirror,
        request: ClaimRequest,
        reply: oneshot::Sender<Result<ShardClaim, ClaimError>>,
    ) {
        let until = mirror.now() + request.max_wait;
        self.waiting.push(WaitingClaim { request, until, tries: 0, reply });
    }

    /// Answers every waiting claim with a refusal.
    pub(super) fn refuse_waiting(&mut self, refusal: impl Fn() -> ClaimError) {
        for waiting in std::mem::take(&mut self.waiting) {
            let _ = waiting.reply.send(Err(refusal()));
        }
    }

    /// When a waiting claim or a pending release has to be tried again.
    pub(super) fn next_retry(&self, now: Monotonic) -> Option<Monotonic> {
        let releases = (!self.releasing.is_empty()).then_some(now + RETRY_DELAY);
        // No watch tells when a shard that only the ledger shows as held is released, and that can take hours.
        let delay = |waiting: &WaitingClaim| RETRY_DELAY * (1 << waiting.tries.min(MAX_DOUBLINGS));
        let claims = self.waiting.iter().map(|waiting| waiting.until.min(now + delay(waiting)));
        claims.chain(releases).min()
    }

    /// Shards that this instance has claimed, or may have.
    pub(super) fn in_hand(&self) -> BTreeSet<u32> {
        self.held.numbers().chain(self.unresolved.numbers()).collect()
    }

    pub(super) fn is_holding_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether a shard that is to be released is still held.
    pub(super) fn is_releasing(&self) -> bool {
        !self.releasing.is_empty()
    }

    /// Whether it is unknown if a claim was committed.
    pub(super) fn has_unresolved(&self) -> bool {
        !self.unresolved.is_empty()
    }

    pub(super) fn holds(&self, shard: u32) -> bool {
        self.held.contains(shard)
    }

    /// These are all cancellations: cancels the shards of their runs that are held, and those that will be claimed.
    pub(super) fn cancel(&mut self, cancellations: Vec<Cancellation>) {
        self.cancellations = cancellations;
        self.cancel_held();
    }

    fn cancel_held(&self) {
        for cancellation in &self.cancellations {
            self.held.cancel(cancellation);
        }
    }

    /// Holds the shards of a committed claim; see [`HeldShards::adopt`].
    pub(super) fn adopt(
        &mut self,
        mirror: &mut Mirror,
        claim: CommittedClaim,
        cancel: CancelToken,
    ) -> ShardClaim {
        let answers_since = self.answers_since(mirror, &claim);
        for candidate in &claim.candidates {
            self.missed.settle_leftover(candidate.shard);
        }
        let mut claimed = self.held.adopt(mirror, claim, cancel);
        for shard in &mut claimed.shards {
            shard.answers_since = answers_since.get(&shard.item).copied();
        }
        if !mirror.context().flaws.has(Flaw::ForgetCancellations) {
            self.cancel_held();
        }
        claimed
    }

    /// Since when the fires of each shard are answered by this claim, if it is for a scheduled fire. Java writes no ledger, so what it ran is not
    /// known.
    fn answers_since(&self, mirror: &Mirror, claim: &CommittedClaim) -> BTreeMap<u32, Timestamp> {
        if !claim.fire.run.is_scheduled() || mirror.assignment().has_java_members() {
            return BTreeMap::new();
        }
        let now = mirror.context().clock.now();
        let since = claim.candidates.iter().filter_map(|candidate| {
            let last = candidate.page.last_due(now)?;
            Some((candidate.shard, self.missed.due_since(candidate.shard, last)))
        });
        since.collect()
    }

    /// A claim of these shards ended with `error`; see [`UnresolvedClaims::note`].
    pub(super) fn note_unresolved(
        &mut self,
        mirror: &mut Mirror,
        error: &Error,
        candidates: &[ClaimCandidate],
    ) {
        self.unresolved.note(mirror, error, candidates);
    }

    /// Checks what we hold, releases what is to be released, and undoes claims that were committed although their answer was lost.
    pub(super) async fn settle(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        self.held.stop_monitoring(mirror).await?;
        self.held.check(mirror).await?;
        self.observe(mirror);
        self.settle_releases(mirror).await;
        self.missed.store_floor(mirror).await?;
        self.unresolved.resolve(mirror, &self.held).await
    }

    /// Our shards that carry a misfire mark and do not run.
    pub(super) fn misfired(&self, assignment: &Assignment<'_>) -> BTreeSet<u32> {
        let free = self.free(assignment).into_iter();
        free.filter(|shard| self.has_misfire_mark(assignment, *shard)).collect()
    }

    /// Our shards, each with the time up to which nothing is missed: its last fire that was started, or since when it is enabled, if that is later.
    /// `None` for a shard that never ran, and while a Java instance is a member: what it ran is in no page.
    pub(super) async fn last_due(
        &self,
        mirror: &mut Mirror,
    ) -> Result<BTreeMap<u32, Option<Timestamp>>, Error> {
        mirror.refresh().await?;
        let mut last = BTreeMap::new();
        let free = self.free(&mirror.assignment());
        let now = mirror.time_for_pages(&free).await?;
        let has_java = mirror.assignment().has_java_members();
        let ignores_floor = mirror.context().flaws.has(Flaw::IgnoreFloor);
        for shard in free {
            if let Some(seen) = mirror.pages().get(shard) {
                let since = self.missed.since(shard).filter(|_| !ignores_floor);
                let known = seen.last_due(now).filter(|_| !has_java);
                last.insert(shard, known.map(|due_at| since.map_or(due_at, |at| at.max(due_at))));
            }
        }
        Ok(last)
    }

    /// Shards that are ours to run and that we do not hold.
    fn free(&self, assignment: &Assignment<'_>) -> Vec<u32> {
        assignment.runnable().into_iter().filter(|shard| !self.held.contains(*shard)).collect()
    }

    fn has_misfire_mark(&self, assignment: &Assignment<'_>, shard: u32) -> bool {
        let view = assignment.view.shards.get(&shard);
        assignment.job.misfire == Misfire::RunOnce
            && view.is_some_and(|view| view.misfire && view.running.is_none())
            && !self.missed.is_leftover(shard)
    }
}

/// The flag and mark that claiming this shard cleared and that are still missing; neither if the shard no longer exists.
fn still_cleared(mirror: &Mirror, candidate: &ClaimCandidate) -> ClearedMarks {
    if mirror.view().is_current() && mirror.shard(candidate.shard).is_none() {
        return ClearedMarks::default();
    }
    let is_flagged = mirror.view().failover_items.contains(&candidate.shard);
    let is_marked = mirror.shard(candidate.shard).is_some_and(|view| view.misfire);
    candidate.cleared_marks().unless_existing(is_flagged, is_marked)
}
