//! The task of a member: waits for something to happen, and lets each component do its part.
//!
//! It owns the components and passes values between them; none of them sees another.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    announcements::{Announcements, OwnShards},
    busy_shards::BusyChanges,
    claims::ShardClaims,
    handle::{ClaimError, Command, MemberEvent, Release},
    instance_trigger::InstanceTrigger,
    janitor::Janitor,
    leadership::{LeaderDuty, Leadership},
    mirror::Mirror,
    recovery::{Recovery, TakeoverResult},
    reshard_signal::ReshardSignal,
    server_repair::ServerRepair,
    triggers::Triggers,
};
use crate::{
    coordination::{flaw::Flaw, latch::HeldLatch},
    registry::{Error, ExpectedVersion, Op, SessionState, SessionStates},
    runtime::Monotonic,
};

/// How long to wait before trying again what failed, or what another instance was in the way of.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How many rounds a pass may take before the loop looks what else has happened.
const ROUNDS: usize = 8;

pub(super) struct Actor {
    mirror: Mirror,
    claims: ShardClaims,
    leadership: Leadership,
    recovery: Recovery,
    janitor: Janitor,
    instance_trigger: InstanceTrigger,
    triggers: Triggers,
    server_repair: ServerRepair,
    announcements: Announcements,
    reshard_signal: ReshardSignal,
    /// What waits for other instances and so must not hold up the loop.
    background: JoinSet<Background>,
    is_shut_down: bool,
    /// Nothing new starts, and everything that does not run is given up.
    is_leaving: bool,
    departure: Option<Departure>,
    is_connected: bool,
    states: SessionStates,
    busy_changes: BusyChanges,
    inbox: mpsc::Receiver<Box<Command>>,
}

/// The owner waits until this member has left; nothing runs any more.
struct Departure {
    until_done: bool,
    reply: oneshot::Sender<()>,
}

enum Background {
    ElectionEnded,
    TakeoverTurn(Result<Option<HeldLatch>, Error>),
    TurnPassed,
}

impl Actor {
    pub(super) fn new(
        mirror: Mirror,
        claims: ShardClaims,
        leadership: Leadership,
        inbox: mpsc::Receiver<Box<Command>>,
        resharding: Arc<AtomicBool>,
    ) -> Self {
        let context = mirror.context();
        let mut janitor = Janitor::default();
        janitor.schedule(context, false);
        Self {
            states: context.session.states(),
            busy_changes: context.busy.changes(),
            claims,
            mirror,
            leadership,
            recovery: Recovery::default(),
            janitor,
            instance_trigger: InstanceTrigger::default(),
            triggers: Triggers::default(),
            server_repair: ServerRepair::default(),
            announcements: Announcements::default(),
            reshard_signal: ReshardSignal::new(resharding),
            background: JoinSet::new(),
            is_shut_down: false,
            is_leaving: false,
            departure: None,
            is_connected: true,
            inbox,
        }
    }

    /// Runs until the member leaves or its session ends.
    ///
    /// Whatever is more than waiting is boxed: its memory is needed only while it happens, and a process may have ten thousand members that wait.
    pub(super) async fn run(mut self: Box<Self>) {
        loop {
            let passed = Box::pin(self.pass()).await;
            if let Err(error) = &passed {
                let context = self.mirror.context();
                tracing::warn!(job = %self.mirror.job().name, instance = %context.own_id, %error, "coordination step failed, retrying");
                // A failure elsewhere must not make a claim wait longer than it may.
                Box::pin(self.claims.retry_waiting(&mut self.mirror)).await;
            }
            if self.may_end(passed.as_ref().err()) {
                return Box::pin(self.end()).await;
            }
            self.announce();
            let awaits_busy = self.begin_takeover();
            let clock = Arc::clone(&self.mirror.context().clock);
            let (now, next) = (clock.monotonic(), self.next_duty_at());
            let wake = match passed {
                Ok(false) => Some(now),
                // What should have been done by now could not be done: there is no hurry.
                Ok(true) => next.map(|at| if at > now { at } else { now + RETRY_DELAY }),
                Err(_) => Some(now + RETRY_DELAY),
            };
            tokio::select! {
                biased;
                state = self.states.next() => match state {
                    Some(SessionState::Lost(_) | SessionState::Renewed { .. }) | None => {
                        self.mirror.context().send(MemberEvent::SessionLost);
                        return;
                    }
                    Some(SessionState::Suspended(_)) => {
                        self.is_connected = false;
                        self.announcements.disconnected();
                        self.mirror.context().send(MemberEvent::Disconnected);
                    }
                    Some(SessionState::Connected(_)) => self.is_connected = true,
                },
                is_open = self.mirror.next_change() => if !is_open {
                    return;
                },
                command = self.inbox.recv() => match command.map(|command| *command) {
                    Some(command) => Box::pin(self.obey(command)).await,
                    None => return,
                },
                Some(done) = self.background.join_next() => match done {
                    Ok(Background::TakeoverTurn(turn)) => Box::pin(self.take_over(turn)).await,
                    Ok(Background::TurnPassed) => {}
                    Ok(Background::ElectionEnded) => self.leadership.election_ended(),
                    // It is not known which task panicked. Queueing twice is harmless, never again is not.
                    Err(_) => {
                        self.leadership.election_ended();
                        Box::pin(self.take_over(Ok(None))).await;
                    }
                },
                () = self.busy_changes.changed(), if awaits_busy => {}
                () = async { clock.sleep_until(wake.expect("guarded")).await }, if wake.is_some() => {}
            }
        }
    }

    /// When there is something to do even if nothing happens. An instance without a current view, or one that was shut down, looks after
    /// its own claims only, as one that leaves does: anything else that is overdue would be overdue for ever.
    fn next_duty_at(&self) -> Option<Monotonic> {
        let now = self.mirror.now();
        let others = [
            self.janitor.next_duty_at(),
            self.recovery.next_duty_at(now),
            self.leadership.next_duty_at(),
            self.triggers.next_duty_at(),
        ];
        let is_active = self.mirror.view().is_current() && !self.is_shut_down && !self.is_leaving;
        let others = others.into_iter().flatten().filter(|_| is_active);
        self.claims.next_retry(now).into_iter().chain(others).min()
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Claim { reply, .. } if self.is_leaving => {
                let _ = reply.send(Err(ClaimError::Left));
            }
            Command::Claim { request, reply } => {
                if self.has_leader_duties().await {
                    self.claims.wait(&self.mirror, request, reply);
                } else {
                    self.claims.claim(&mut self.mirror, request, reply).await;
                }
            }
            Command::TakeOver { cancel } => self.recovery.start_taking_over(cancel),
            Command::StopTakingOver { reply } => {
                self.recovery.stop_taking_over();
                let _ = reply.send(());
            }
            Command::Release { ended, reply } => {
                if ended.iter().any(|(_, ended)| *ended == Release::Withdrawn) {
                    self.recovery.postpone_takeovers(self.mirror.now());
                }
                self.claims.release(ended, Some(reply));
            }
            Command::ReleaseEarly { ended, reply } => {
                if self.mirror.assignment().has_java_members() {
                    let _ = reply.send(Ok(()));
                } else {
                    self.claims.release(ended, Some(reply));
                }
            }
            Command::LastDue { reply } => {
                let _ =
                    reply.send(self.claims.last_due(&mut self.mirror).await.unwrap_or_default());
            }
            Command::BeginLeaving { reply } => {
                if !self.mirror.context().flaws.has(Flaw::LeaveLate) {
                    self.is_leaving = true;
                    self.claims.refuse_waiting(|| ClaimError::Left);
                }
                let _ = reply.send(());
            }
            Command::Leave { until_done, reply } => {
                self.is_leaving = true;
                self.claims.refuse_waiting(|| ClaimError::Left);
                self.departure = Some(Departure { until_done, reply });
            }
        }
    }

    /// Whether this instance has to assign shards, or to stand for election, before a claim makes sense: the next pass does that first.
    async fn has_leader_duties(&mut self) -> bool {
        let is_current = self.mirror.refresh().await.is_ok() && self.mirror.view().is_current();
        is_current
            && !self.leadership.duties(&self.mirror.assignment(), self.mirror.now()).is_empty()
    }

    /// Runs the components until none has work left or one has to wait; `false` if there may be more work.
    async fn pass(&mut self) -> Result<bool, Error> {
        for _ in 0..ROUNDS {
            self.mirror.refresh().await?;
            let seen = self.mirror.changes();
            self.reshard_signal.update(&self.mirror, &self.claims);
            if self.is_leaving {
                self.give_up().await?;
            }
            self.claims.settle(&mut self.mirror).await?;
            let must_wait = self.fulfil_duties().await?;
            self.claims.retry_waiting(&mut self.mirror).await;
            self.recovery.report_lost(&mut self.mirror).await?;
            self.reshard_signal.update(&self.mirror, &self.claims);
            if must_wait && self.mirror.changes() == seen {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks every component what it has to do, and lets it do that, most urgent first. `true` if there is nothing more to do before
    /// something changes.
    async fn fulfil_duties(&mut self) -> Result<bool, Error> {
        let now = self.mirror.now();
        let assignment = self.mirror.assignment();
        self.leadership.observe(&assignment, now);
        self.recovery.observe(&mut self.mirror);
        let assignment = self.mirror.assignment();
        if !assignment.view.is_current() || self.is_leaving {
            return Ok(true);
        }
        if !assignment.is_member() {
            self.shut_down().await?;
            return Ok(true);
        }
        let broken_servers = self.server_repair.broken_servers(&assignment);
        let is_repaired = !self.mirror.context().flaws.has(Flaw::NoServerRepair);
        if !broken_servers.is_empty() && is_repaired {
            self.server_repair.repair(&mut self.mirror, broken_servers).await?;
            return Ok(false);
        }
        if let Some(version) = self.instance_trigger.pending(&assignment) {
            self.instance_trigger.ring(&mut self.mirror, version).await?;
            return Ok(false);
        }
        self.triggers.observe(&self.mirror);
        let has_triggers = self.triggers.is_due(&self.mirror);
        let must_check_holders = self.recovery.is_due(now);
        let must_clean_up = self.janitor.is_due(now);
        let duties = self.leadership.duties(&assignment, now);
        let mut must_wait =
            !has_triggers && !must_check_holders && !must_clean_up && duties.is_empty();
        if duties.contains(&LeaderDuty::Unblock) {
            self.leadership.unblock(&mut self.mirror).await?;
        }
        if must_check_holders {
            self.check_holders().await?;
        }
        if must_clean_up {
            self.clean_up().await?;
        }
        for duty in duties {
            match duty {
                LeaderDuty::Unblock => {}
                LeaderDuty::Depose => self.leadership.depose(&mut self.mirror).await?,
                LeaderDuty::Elect => {
                    let election = self.leadership.elect(self.mirror.context());
                    self.background.spawn(async move {
                        election.await;
                        Background::ElectionEnded
                    });
                }
                LeaderDuty::StepDown => self.leadership.step_down(&mut self.mirror).await?,
                LeaderDuty::Assign => {
                    must_wait = !self.leadership.assign(&mut self.mirror).await?;
                }
            }
        }
        if has_triggers {
            let acted = self.triggers.act(&mut self.mirror, &self.claims.in_hand()).await;
            if let Some(cancellations) = self.triggers.take_cancellations() {
                self.claims.cancel(cancellations);
            }
            acted?;
        }
        Ok(must_wait)
    }

    async fn check_holders(&mut self) -> Result<(), Error> {
        let in_hand = self.claims.in_hand();
        let checked = self.recovery.check_holders(&mut self.mirror, &in_hand).await;
        if self.recovery.has_undecided() {
            self.janitor.schedule(self.mirror.context(), true);
        }
        checked
    }

    async fn clean_up(&mut self) -> Result<(), Error> {
        let has_undecided = self.recovery.has_undecided();
        if self.janitor.begin_pass(&mut self.mirror, has_undecided).await? {
            self.recovery.suspect();
            self.janitor.clean_up(&mut self.mirror).await?;
        }
        Ok(())
    }

    /// It is our turn to take over, or our turn did not come.
    async fn take_over(&mut self, turn: Result<Option<HeldLatch>, Error>) {
        let turn = turn.unwrap_or_default();
        let cancel = self.recovery.takeover_cancel().unwrap_or_default();
        let in_hand = &self.claims.in_hand() | &self.busy_changes.shards();
        let result = self.recovery.take_over(&mut self.mirror, turn.as_ref(), &in_hand).await;
        match result {
            TakeoverResult::Committed(claim) => {
                let claimed = self.claims.adopt(&mut self.mirror, claim, cancel);
                self.triggers.shard_taken_over();
                // The shards are ours whatever else is seen: an outage now is no reason not to run them.
                if let Err(error) = self.mirror.refresh().await {
                    tracing::debug!(job = %self.mirror.job().name, %error, "refresh after a takeover failed");
                }
                self.mirror.context().send(MemberEvent::TakenOver(Box::new(claimed)));
            }
            TakeoverResult::Failed(error, candidates) => {
                if error.is_refusal() {
                    tracing::warn!(job = %self.mirror.job().name, %error, shards = candidates.len(), "takeover refused, retrying later");
                } else {
                    tracing::debug!(job = %self.mirror.job().name, %error, "takeover failed");
                }
                self.claims.note_unresolved(&mut self.mirror, &error, &candidates);
            }
            TakeoverResult::Nothing => {}
        }
        if let Some(turn) = turn {
            let registry = Arc::clone(&self.mirror.context().registry);
            self.background.spawn(async move {
                turn.release(&*registry).await;
                Background::TurnPassed
            });
        }
    }

    /// Begins a takeover if there are orphans. `true` if there are some that a task of this process still runs: they can be taken over when
    /// that has ended.
    fn begin_takeover(&mut self) -> bool {
        self.recovery.observe(&mut self.mirror);
        let (now, in_hand) = (self.mirror.now(), self.claims.in_hand());
        let orphans = self.recovery.orphans(&self.mirror.assignment(), &in_hand, now);
        if orphans.is_empty() {
            return false;
        }
        let busy = self.busy_changes.shards();
        let free: BTreeSet<u32> = orphans.difference(&busy).copied().collect();
        if let Some(turn) = self.recovery.begin_takeover(self.mirror.context(), &free, now) {
            self.background.spawn(async move { Background::TakeoverTurn(turn.await) });
        }
        free.len() < orphans.len()
    }

    fn announce(&mut self) {
        let assignment = self.mirror.assignment();
        let is_ready = !self.is_shut_down
            && !self.is_leaving
            && self.is_connected
            && assignment.is_settled()
            && !assignment.has_absent_owners();
        let mut own_shards = OwnShards { is_ready, ..OwnShards::default() };
        if is_ready {
            own_shards.assigned = assignment.assigned();
            own_shards.misfired = self.claims.misfired(&assignment);
        }
        for event in self.announcements.update(own_shards) {
            self.mirror.context().send(event);
        }
    }

    /// Our instance node is gone: an operator shut us down. Nothing new is started; what runs is still released, until the owner leaves.
    async fn shut_down(&mut self) -> Result<(), Error> {
        // The end of a session deletes all its nodes, and a server may report that before it reports the end. An operator deletes only one.
        let context = self.mirror.context();
        let process = context.tree.process(&context.own_id);
        if !self.is_shut_down && context.registry.exists(&process).await?.is_none() {
            self.claims.refuse_waiting(|| ClaimError::Registry(Error::SessionExpired));
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_shut_down, true) {
            self.mirror.context().send(MemberEvent::ShutDown);
        }
        self.claims.refuse_waiting(|| ClaimError::Left);
        self.leadership.step_down(&mut self.mirror).await
    }

    /// Gives up leadership and the instance, so that other instances get every shard that does not run here. What still runs stays claimed: our
    /// process node shows that it is not lost.
    ///
    /// Beside Java the instance stays until nothing runs: Java takes an instance that vanishes for a crash and runs its shards again, and a Java
    /// leader assigns nothing before every run has ended.
    async fn give_up(&mut self) -> Result<(), Error> {
        if !self.mirror.view().is_current() {
            return Ok(());
        }
        self.leadership.end_assignment(&mut self.mirror).await?;
        let assignment = self.mirror.assignment();
        // A run that has panicked never releases its shards.
        let runs = self.claims.is_releasing()
            || (self.departure.is_none() && self.claims.is_holding_any());
        if !assignment.is_member() || (runs && assignment.has_java_members()) {
            return self.leadership.step_down(&mut self.mirror).await;
        }
        // In one transaction, so that the next leader does not assign twice: first with us, then without us.
        let tree = self.mirror.tree();
        let mut gone = vec![tree.instance(self.mirror.own_id())];
        if assignment.is_leader() == Some(true) {
            gone.push(tree.leader());
        }
        let delete = |path| Op::Delete { path, expected: ExpectedVersion::Any };
        match self.mirror.commit(gone.into_iter().map(delete).collect()).await {
            Ok(_) => self.mirror.refresh().await,
            // One of them is gone: what is left is seen after this.
            Err(Error::Operation { cause, .. }) if matches!(*cause, Error::NotFound { .. }) => {
                self.mirror.sync().await?;
                self.mirror.refresh().await
            }
            Err(error) => Err(error),
        }
    }

    /// Whether this member is to leave and has left, or need not try again.
    fn may_end(&self, failure: Option<&Error>) -> bool {
        let Some(departure) = &self.departure else { return false };
        let context = self.mirror.context();
        let assignment = self.mirror.assignment();
        let has_left = failure.is_none()
            && assignment.view.is_current()
            && !assignment.is_member()
            && assignment.is_leader() == Some(false)
            && !self.claims.is_releasing()
            && !self.claims.has_unresolved()
            // A queue entry that stayed would block every entry behind it.
            && self.background.is_empty();
        if !departure.until_done && (failure.is_some() || assignment.is_member()) {
            let job = &self.mirror.job().name;
            let error = failure.map(tracing::field::display);
            tracing::warn!(%job, instance = %context.own_id, error, "leaving failed, the instance ends with its session");
        }
        has_left || !departure.until_done || context.flaws.has(Flaw::LeaveLate)
    }

    async fn end(mut self: Box<Self>) {
        // Elections and turns end here, before the process may go on under the same name.
        self.background.shutdown().await;
        if let Some(departure) = self.departure {
            let _ = departure.reply.send(());
        }
    }
}
