//! Claiming shards for a fire, watching the claims, giving them back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::{
    actor::Actor,
    duties::{has_ghosts, is_enabled},
    handle::{Claimed, ClaimedShard, Ended, Refused, Request, Why},
    hold::Hold,
};
use crate::{
    coordination::{
        claim::{Claimant, Cleared, Refusal, Return, Stake, Steps},
        flaw::Flaw,
        ledger::{Page, Seen, State},
        tree::Part,
        view::{Document, Known},
    },
    job::{FencingToken, Fire, InstanceId, Misfire, Monitor},
    registry::{Committed, Create, Error, Expected, Op, Path, Version, Zxid},
    runtime::{Cancel, Monotonic},
};

/// A claim that waits until shards are dealt.
pub(super) struct Parked {
    pub(super) request: Request,
    pub(super) until: Monotonic,
    pub(super) reply: oneshot::Sender<Result<Claimed, Refused>>,
}

/// Shards that are to be given back.
pub(super) struct Releasing {
    pub(super) ended: Vec<(u32, Ended)>,
    pub(super) reply: Option<oneshot::Sender<Result<(), Error>>>,
}

/// A shard we hold.
pub(super) struct Held {
    /// The transaction of the claim.
    claimed_in: Zxid,
    /// When it was claimed, by our clock.
    since: Timestamp,
    /// The page the claim wrote, and in which version.
    page: Page,
    version: Version,
    /// What it was claimed from.
    stake: Stake,
    /// Whether the claim wrote `running`.
    is_monitored: bool,
    /// It is being given back: that its nodes go is what is meant to happen.
    is_ending: bool,
    pub(super) hold: Arc<Hold>,
}

/// What came of one try to claim.
enum Attempt {
    Settled(Result<Claimed, Refused>),
    /// Shards are being dealt, or somebody is in the way: try again.
    Wait,
}

impl Actor {
    /// Tries every claim that waits; what was in the way is told to whoever waits.
    pub(super) async fn settle_parked(&mut self) {
        for parked in std::mem::take(&mut self.parked) {
            let is_late = self.clock.monotonic() >= parked.until;
            match self.try_claim(&parked.request).await {
                Ok(Attempt::Settled(answer)) => Self::answer(parked.reply, answer),
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
            return Ok(Attempt::Settled(Err(Refused::Nothing)));
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
                    (true, _) => Attempt::Settled(Err(Refused::Busy)),
                    (false, true) => Attempt::Wait,
                    (false, false) => Attempt::Settled(Err(Refused::Nothing)),
                });
            }
            let Some(claimant) = self.claimant() else { return Ok(Attempt::Wait) };
            let steps = claimant.claim(fire, &stakes);
            if self.flaws.has(Flaw::SkipClaim) {
                self.registry.sync().await?;
                return Ok(Attempt::Settled(Ok(self.unclaimed(request, &stakes))));
            }
            let error = match self.registry.multi(steps.ops()).await {
                Ok(committed) => break (steps, committed),
                Err(error) => error,
            };
            match steps.refusal(&error) {
                Some(Refusal::Ground) => {
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
                    if self.mark_missed(shard, Part::Running).await? {
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

    /// Whoever takes a shard of ours over keeps us from running it when it is due: we make up for that when they are done.
    async fn mark_what_others_took(
        &mut self,
        fire: &Fire,
        shards: &BTreeSet<u32>,
    ) -> Result<(), Error> {
        for shard in shards {
            let is_taken = self.view.shards.get(shard).is_some_and(|view| {
                view.failover.is_some() && !view.misfire && !self.held.contains_key(shard)
            });
            if is_taken && !self.page(*shard).await?.page.has_started(fire) {
                self.mark_missed(*shard, Part::Failover).await?;
            }
        }
        Ok(())
    }

    /// Whether this request is for this shard, by its page and its marks.
    fn is_wanted(&self, request: &Request, stake: &Stake) -> bool {
        let has_started =
            stake.seen.page.has_started(&request.fire) && !self.flaws.has(Flaw::ForgetLedger);
        match &request.why {
            Why::Due => !has_started,
            Why::Asked(shards) => {
                !has_started && (shards.is_empty() || shards.contains(&stake.shard))
            }
            // What never ran has nothing to catch up with.
            Why::CatchUp => !has_started && stake.seen.page.due_at.is_some(),
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
    async fn is_in_other_hands(&mut self, stake: &Stake) -> Result<bool, Error> {
        let running = self.view.shards.get(&stake.shard).and_then(|shard| shard.running.as_ref());
        match stake.seen.page.is_held_by_other(&self.me) {
            // A `running` that is there refuses the claim by itself, and the run is marked as missed.
            Some(owner) if running.is_none() => {
                let owner = owner.clone();
                self.lives(&owner).await
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Whether this instance lives: it takes part, or its process does at least.
    pub(super) async fn lives(&mut self, id: &InstanceId) -> Result<bool, Error> {
        if self.view.instances.contains_key(id.as_str()) {
            return Ok(true);
        }
        Ok(!id.is_java() && self.registry.exists(&self.tree.process(id)).await?.is_some())
    }

    pub(super) fn has_java(&self) -> bool {
        let mut ids = self.view.instances.keys().filter_map(|id| id.parse::<InstanceId>().ok());
        ids.any(|id| id.is_java())
    }

    pub(super) async fn stake(&mut self, shard: u32) -> Result<Stake, Error> {
        let seen = self.page(shard).await?;
        let view = self.view.shards.get(&shard);
        let left_behind = view.and_then(|view| view.failovering.as_ref()).and_then(Known::read);
        Ok(Stake {
            shard,
            seen,
            is_flagged: self.view.failover_items.contains(&shard),
            is_marked: view.is_some_and(|view| view.misfire),
            left_behind: left_behind.map(|document| document.version),
        })
    }

    /// What a claim that was committed makes ours.
    pub(super) fn hold(
        &mut self,
        fire: &Fire,
        stakes: &[Stake],
        steps: &Steps,
        committed: &Committed,
        cancel: &Cancel,
    ) -> Vec<ClaimedShard> {
        let versions = steps.pages(committed);
        let now = self.clock.now();
        let created: BTreeSet<Path> = steps.created().cloned().collect();
        let mut shards = Vec::new();
        for stake in stakes {
            let shard = stake.shard;
            let version =
                versions.iter().find(|(written, _)| *written == shard).map(|(_, version)| *version);
            let version = version.expect("a claim writes the page of every shard");
            let page = stake.seen.page.started(fire, &self.me);
            let seen = Seen { page: page.clone(), version: Some(version) };
            self.pages.insert(shard, Box::new(seen));
            self.memory.leftover_marks.remove(&shard);
            // What we created we need not read.
            for part in [Part::Running, Part::Failover, Part::Failovering] {
                let document = Document {
                    data: self.me.to_string().into(),
                    version: Version(0),
                    created: committed.zxid,
                    written_at_ms: now.as_millisecond(),
                };
                let path = self.tree.shard(shard, part);
                if created.contains(&path) {
                    self.view.expect(path, document);
                }
            }
            let hold = Arc::new(Hold::new(cancel.child()));
            shards.push(ClaimedShard {
                item: shard,
                attempt: page.attempt,
                hold: Arc::clone(&hold),
            });
            let claim = Held {
                claimed_in: committed.zxid,
                since: now,
                page,
                version,
                stake: stake.clone(),
                is_monitored: self.job.monitor == Monitor::Executions,
                is_ending: false,
                hold,
            };
            self.held.insert(shard, Box::new(claim));
        }
        shards
    }

    /// What the simulation calls a claim when none was made.
    fn unclaimed(&self, request: &Request, stakes: &[Stake]) -> Claimed {
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
            mine.contains(&shard.item) || self.flaws.has(Flaw::KeepWhatMoved)
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
        Ok(Attempt::Settled(Ok(Claimed { shards: keep, ..claimed })))
    }

    /// Its own claims are watched: one that is gone, or somebody else's, is not ours any more.
    pub(super) async fn watch_claims(&mut self) -> Result<(), Error> {
        if !self.view.is_current()
            || self.view.config.is_none()
            || self.job.monitor == Monitor::Nothing
            || self.flaws.has(Flaw::TrustClaim)
        {
            return Ok(());
        }
        let unread: Vec<Path> = self
            .held
            .keys()
            .filter(|shard| {
                self.view.shards.get(shard).is_some_and(|view| view.running == Some(Known::Dirty))
            })
            .map(|shard| self.tree.shard(*shard, Part::Running))
            .collect();
        if !unread.is_empty() {
            self.read(&unread).await?;
        }
        let policy = self.job.props.policies().on_lease_loss;
        for (shard, held) in &self.held {
            // A job that shrinks takes the nodes of what runs above; it may finish.
            let is_above = *shard >= self.job.shards.get() && !self.view.shards.contains_key(shard);
            if held.is_ending || !held.is_monitored || is_above || self.is_my_claim(*shard, held) {
                continue;
            }
            if held.hold.lose(policy) {
                tracing::error!(job = %self.job.name, %shard, run = ?held.page.run, "the claim was taken away while it ran: it counts no more");
            }
        }
        Ok(())
    }

    /// Executions are not monitored any more: what says that ours run goes, and the runs go on.
    pub(super) async fn unmonitor(&mut self) -> Result<(), Error> {
        if self.job.monitor == Monitor::Executions || !self.view.is_current() {
            return Ok(());
        }
        let shown: Vec<u32> = self
            .held
            .iter()
            .filter(|(shard, held)| held.is_monitored && self.is_my_claim(**shard, held))
            .map(|(shard, _)| *shard)
            .collect();
        for shard in shown {
            let (Some(claimant), Some(held)) = (self.claimant(), self.held.get(&shard)) else {
                continue;
            };
            let view = self.view.shards.get(&shard);
            let put_back = Cleared::default();
            let Held { page, version, claimed_in, .. } = &**held;
            let (version, claimed_in) = (*version, *claimed_in);
            let still = Return { shard, page, version, view, claimed_in, put_back };
            let steps = claimant.release([still], false);
            match self.registry.multi(steps.ops()).await {
                Ok(committed) => {
                    let version = steps.pages(&committed).first().map(|(_, version)| *version);
                    if let (Some(held), Some(version)) = (self.held.get_mut(&shard), version) {
                        held.is_monitored = false;
                        held.version = version;
                    }
                    self.pages.remove(&shard);
                }
                Err(Error::Member { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.catch_up().await
    }

    /// Whether `running` is still what our claim created.
    fn is_my_claim(&self, shard: u32, held: &Held) -> bool {
        let running = self.view.shards.get(&shard).and_then(|shard| shard.running.as_ref());
        running.and_then(Known::read).is_some_and(|running| {
            running.created == held.claimed_in && running.data == self.me.as_str()
        })
    }

    /// From now on it is no loss when the nodes of these go.
    pub(super) fn begin_release(&mut self, ended: &[(u32, Ended)]) {
        for (shard, _) in ended {
            if let Some(held) = self.held.get_mut(shard) {
                held.is_ending = true;
            }
        }
    }

    /// Gives back what is to be given back. What cannot be now is tried again: only the end of the session ends it otherwise.
    pub(super) async fn settle_releases(&mut self) -> Result<(), Error> {
        for mut releasing in std::mem::take(&mut self.releasing) {
            match self.release(&mut releasing.ended).await {
                Ok(()) => {
                    if let Some(reply) = releasing.reply {
                        Self::answer(reply, Ok(()));
                    }
                }
                Err(error) => {
                    tracing::warn!(job = %self.job.name, %error, "could not give shards back yet");
                    self.releasing.push(releasing);
                }
            }
        }
        Ok(())
    }

    /// Those that are dealt with are taken out of `ended`, so that a second try is for the rest. Of a claim that was taken away, or whose
    /// lease had ended, only what is certainly ours goes: nodes that this very claim created, and the page if nobody wrote it since. If
    /// they are there the session lives on after all, and nobody else would ever take them away.
    async fn release(&mut self, ended: &mut Vec<(u32, Ended)>) -> Result<(), Error> {
        self.catch_up().await?;
        // A job that was removed took its shards along: there is nothing to give back, and nobody to give it to.
        let is_removed = self.view.is_current() && self.view.config.is_none();
        if is_removed {
            for (shard, _) in ended.drain(..) {
                self.held.remove(&shard);
                self.pages.remove(&shard);
            }
        }
        // After a gap it is not known whose the nodes are: what is not read would be left behind.
        let unread = ended.iter().flat_map(|(shard, _)| self.view.unread_holders_of(*shard));
        let unread: Vec<Path> = unread.collect();
        self.read(&unread).await?;
        // What was taken away is given back, too: the page refuses it if somebody has it, and names us for ever if nobody has.
        ended.retain(|(shard, _)| self.held.contains_key(shard));
        if !ended.is_empty() {
            match self.release_together(ended).await {
                Ok(()) => {}
                // One of them changed under us: each for itself, so that the others are not held up.
                Err(Error::Member { .. }) => {
                    while let Some(one) = ended.pop() {
                        if let Err(error) = self.release_alone(one).await {
                            ended.push(one);
                            return Err(error);
                        }
                    }
                }
                Err(error) => return Err(error),
            }
            self.pass_on().await?;
        }
        ended.clear();
        self.catch_up().await
    }

    async fn release_together(&mut self, ended: &[(u32, Ended)]) -> Result<(), Error> {
        // What was claimed is given back on any ground: a job that was removed meanwhile has no configuration.
        let claimant = self.claimant_on(Version::default());
        let pages: Vec<(u32, Ended, Page)> = ended
            .iter()
            .filter_map(|(shard, how)| {
                Some((*shard, *how, page_after(self.held.get(shard)?, *how)))
            })
            .collect();
        let parts = pages.iter().filter_map(|(shard, how, page)| {
            let Held { version, claimed_in, stake, .. } = &**self.held.get(shard)?;
            let put_back = match how {
                Ended::Withdrawn => self.to_put_back(stake),
                Ended::Done | Ended::Failed | Ended::Fenced => Cleared::default(),
            };
            let (version, claimed_in) = (*version, *claimed_in);
            let view = self.view.shards.get(shard);
            Some(Return { shard: *shard, page, version, view, claimed_in, put_back })
        });
        let is_fenced = ended.iter().any(|(_, how)| *how == Ended::Fenced);
        let steps = claimant.release(parts, is_fenced);
        let committed = self.registry.multi(steps.ops()).await?;
        for (shard, version) in steps.pages(&committed) {
            let page = pages.iter().find(|(written, ..)| *written == shard);
            let page = page.map(|(.., page)| page.clone()).unwrap_or_default();
            if let Some(held) = self.held.remove(&shard)
                && held.is_monitored
                && !held.hold.is_lost()
            {
                self.memory.ran.insert(shard, held.since..=self.clock.now());
            }
            self.pages.insert(shard, Box::new(Seen { page, version: Some(version) }));
        }
        Ok(())
    }

    /// What a claim of this took away and nobody has put there since.
    fn to_put_back(&self, stake: &Stake) -> Cleared {
        let is_flagged = self.view.failover_items.contains(&stake.shard);
        let is_marked = self.view.shards.get(&stake.shard).is_some_and(|view| view.misfire);
        stake.cleared().unless_there(is_flagged, is_marked)
    }

    async fn release_alone(&mut self, (shard, how): (u32, Ended)) -> Result<(), Error> {
        self.catch_up().await?;
        let error = match self.release_together(&[(shard, how)]).await {
            Ok(()) => return Ok(()),
            Err(error @ Error::Member { .. }) => error,
            Err(error) => return Err(error),
        };
        let Some(held) = self.held.get(&shard) else { return Ok(()) };
        let expected = page_after(held, how);
        self.pages.remove(&shard);
        let seen = self.page(shard).await?;
        if seen.page != expected {
            tracing::warn!(job = %self.job.name, shard, %error, "a claim was taken away while it ran");
        } else if let Some(Known::Read(running)) =
            self.view.shards.get(&shard).and_then(|view| view.running.clone())
            && self.held.get(&shard).is_some_and(|held| held.claimed_in == running.created)
        {
            // The page was written by an earlier try whose answer was lost, so its nodes are gone, too: wait until we see it.
            self.registry.sync().await?;
        }
        self.held.remove(&shard);
        Ok(())
    }

    /// A claim got no answer: whether it came about has to be found out before anything else is claimed.
    pub(super) fn doubt(&mut self, error: &Error, stakes: &[Stake]) {
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
            let is_ours = seen.page.state == State::Running
                && seen.page.owner.as_ref() == Some(&self.me)
                && !self.held.contains_key(&shard);
            if let (true, Some(version)) = (is_ours, seen.version) {
                let parts = [Part::Running, Part::Failover, Part::Failovering];
                let paths = parts.map(|part| self.tree.shard(shard, part));
                self.read(&paths).await?;
                let view = self.view.shards.get(&shard).cloned().unwrap_or_default();
                let claimant = self.claimant_on(Version::default());
                let put_back = self.to_put_back(&stake);
                let steps = claimant.undo(&stake, version, &view, put_back);
                match self.registry.multi(steps.ops()).await {
                    Ok(_) => {}
                    Err(Error::Member { .. }) => continue,
                    Err(error) => return Err(error),
                }
                self.pages.remove(&shard);
                self.catch_up().await?;
            }
            self.uncertain.remove(&shard);
        }
        Ok(())
    }

    /// Somebody has it in hand who should be done by now: whoever owns it makes up for this fire when that is over. Says whether they still
    /// have.
    async fn mark_missed(&mut self, shard: u32, while_there: Part) -> Result<bool, Error> {
        if self.job.misfire == Misfire::Skip {
            return Ok(true);
        }
        let ops = vec![
            Op::Check { path: self.tree.shard(shard, while_there), expected: Expected::Any },
            Op::Create(Create::persistent(&self.tree.shard(shard, Part::Misfire), "")),
        ];
        match self.registry.multi(ops).await {
            Ok(_) => Ok(true),
            Err(Error::Member { index, .. }) => {
                let is_marked = index > 0;
                Ok(is_marked)
            }
            Err(error) => Err(error),
        }
    }

    /// Owners that came after this fire do not know that it was missed; we, who were there, tell them.
    async fn mark_for_newcomers(&mut self, fire: &Fire) -> Result<(), Error> {
        if self.job.misfire == Misfire::Skip || !fire.run.is_scheduled() || self.has_java() {
            return Ok(());
        }
        let due_ms = fire.due_at.as_millisecond();
        let me = self.view.instances.get(self.me.as_str()).and_then(Known::read);
        let was_there = me.is_some_and(|document| document.written_at_ms < due_ms);
        let owned_by_newcomer = |shard: &u32| {
            let view = &self.view.shards[shard];
            let owner =
                view.owner.as_ref().and_then(Known::text).filter(|id| *id != self.me.as_str());
            let instance = owner.and_then(|id| self.view.instances.get(id)).and_then(Known::read);
            instance.is_some_and(|document| document.written_at_ms > due_ms)
                && view.running.is_none()
                && !view.misfire
                && !view.disabled
        };
        let shards: Vec<u32> = self
            .view
            .shards
            .range(..self.job.shards.get())
            .map(|(shard, _)| *shard)
            .filter(|shard| self.presence.was_to_run(*shard, fire.due_at))
            .filter(owned_by_newcomer)
            .collect();
        for shard in shards {
            self.pages.remove(&shard);
            let seen = self.page(shard).await?;
            // What never ran may be older than all of us.
            if seen.page.has_started(fire) || (seen.version.is_none() && !was_there) {
                continue;
            }
            let (page, expected) = (self.tree.page(shard), seen.version.map(Expected::Version));
            let mut ops = match expected {
                Some(expected) => vec![Op::Check { path: page, expected }],
                // It never ran: that nobody wrote the page meanwhile can only be tried.
                None => vec![
                    Op::Create(Create::persistent(&page, "")),
                    Op::Delete { path: page, expected: Expected::Any },
                ],
            };
            ops.push(Op::Create(Create::persistent(&self.tree.shard(shard, Part::Misfire), "")));
            match self.registry.multi(ops).await {
                Ok(_) | Err(Error::Member { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.catch_up().await
    }

    pub(super) async fn page(&mut self, shard: u32) -> Result<Seen, Error> {
        self.fetch_pages(&[shard]).await?;
        Ok(self.pages.get(&shard).map(|seen| Seen::clone(seen)).unwrap_or_default())
    }

    /// Reads the pages that are not known, all at once.
    async fn fetch_pages(&mut self, shards: &[u32]) -> Result<(), Error> {
        let unknown: Vec<u32> =
            shards.iter().copied().filter(|shard| !self.pages.contains_key(shard)).collect();
        let paths: Vec<Path> = unknown.iter().map(|shard| self.tree.page(*shard)).collect();
        let nodes = join_all(paths.iter().map(|path| self.registry.get(path))).await;
        for ((shard, path), node) in unknown.into_iter().zip(paths).zip(nodes) {
            let seen = match node? {
                None => Seen::default(),
                Some(node) => {
                    let page = Page::read(&node.data)
                        .map_err(|error| Error::Invalid { path, reason: error.to_string() })?;
                    self.look_for_the_dead(shard, &page, node.stat.changed);
                    Seen { page, version: Some(node.stat.version) }
                }
            };
            self.pages.insert(shard, Box::new(seen));
        }
        Ok(())
    }

    pub(super) async fn last_due(&mut self) -> Result<BTreeMap<u32, Option<Timestamp>>, Error> {
        self.catch_up().await?;
        let mut last = BTreeMap::new();
        for shard in self.mine() {
            last.insert(shard, self.page(shard).await?.page.due_at);
        }
        Ok(last)
    }

    pub(super) fn claimant(&self) -> Option<Claimant<'_>> {
        Some(self.claimant_on(self.view.config.as_ref()?.read()?.version))
    }

    fn claimant_on(&self, config: Version) -> Claimant<'_> {
        Claimant {
            tree: &self.tree,
            me: &self.me,
            session: self.session,
            config,
            monitor: self.job.monitor,
            failover: self.job.failover,
        }
    }
}

/// What the page says once a shard we hold has ended.
fn page_after(held: &Held, how: Ended) -> Page {
    match how {
        Ended::Done => Page { state: State::Done, ..held.page.clone() },
        Ended::Failed | Ended::Fenced => Page { state: State::Failed, ..held.page.clone() },
        Ended::Withdrawn => held.stake.seen.page.clone(),
    }
}
