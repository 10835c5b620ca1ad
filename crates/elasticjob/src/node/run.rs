//! One run on this instance: claim shards, run them, release them.

use std::{
    collections::BTreeSet,
    num::NonZeroU32,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tokio::sync::mpsc;

use super::{
    history_tap::HistoryTap, job_loop::LocalJob, once_barrier::OnceBarrier,
    reported_fires::ReportedFires, schedule_clock::ScheduleClock, session::NodeSession,
};
use crate::{
    coordination::{
        flaw::{Flaw, Flaws},
        member::{ClaimError, ClaimHandle, ClaimRequest, ClaimScope, Release, ShardClaim},
        trigger::TriggeredRun,
    },
    execution::{
        Alerts, AttemptPolicy, Execution, Failure, Guard, Listeners, Notice, Output, Routing,
        RunSettings, Runner, Secrets, ShardResult, Work,
    },
    history::MissedReason,
    job::{Attempt, Fire, InstanceId, Job, Misfire, RunReason, Shard, TaskId},
    problem::Problem,
    registry::{Error, Session},
    runtime::{CancelToken, Clock},
    schedule::{Missed, Schedule},
};

/// How long a shard that has ended waits for the others of its run before it is released without them.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// Everything a run uses.
#[derive(Clone)]
pub(super) struct RunContext {
    pub(super) session: Arc<NodeSession>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) schedule_clock: Arc<ScheduleClock>,
    pub(super) claims: ClaimHandle,
    pub(super) instance: InstanceId,
    pub(super) job: Arc<Job>,
    pub(super) local: Arc<LocalJob>,
    pub(super) work: Arc<dyn Work>,
    pub(super) runner: Arc<Runner>,
    pub(super) listeners: Arc<Listeners>,
    pub(super) once: OnceBarrier,
    pub(super) alerts: Alerts,
    pub(super) output: Arc<dyn Output>,
    pub(super) secrets: Secrets,
    pub(super) history: HistoryTap,
    /// The schedule of the job, if it has one.
    pub(super) schedule: Option<Schedule>,
    pub(super) reported: ReportedFires,
    pub(super) cancel: CancelToken,
    pub(super) flaws: Flaws,
}

/// What came of a work item.
#[derive(Debug)]
pub(super) enum RunResult {
    /// Shards ran. The item is for the unclaimed ones, too: those of a trigger were busy, or only a part of the claim was answered.
    Ran {
        unclaimed: BTreeSet<u32>,
    },
    NothingToRun,
    /// This instance owns no shard yet, so it is not known which fires need a catch-up.
    NoShardsYet,
    /// The item could not start now, for example because the registry is unreachable. It has to be retried.
    Postponed,
}

impl RunContext {
    /// Runs every shard of this trigger that this instance owns.
    pub(super) async fn run_trigger(&self, trigger: TriggeredRun, max_wait: Duration) -> RunResult {
        let fire = Fire::triggered(self.job.name.clone(), trigger.at, trigger.run)
            .by(trigger.by)
            .given(trigger.parameter);
        let scope = ClaimScope::Triggered(trigger.shards);
        if trigger.is_whole {
            return self.run_claimed(fire, scope, max_wait, &self.once).await;
        }
        self.run_claimed(fire, scope, max_wait, &self.once.without_listeners()).await
    }

    /// Runs every shard of this fire that this instance owns. Waits at most `max_wait` for a sharding in progress.
    pub(super) async fn run_fire(
        &self,
        fire: Fire,
        scope: ClaimScope,
        max_wait: Duration,
    ) -> RunResult {
        self.run_claimed(fire, scope, max_wait, &self.once).await
    }

    async fn run_claimed(
        &self,
        fire: Fire,
        scope: ClaimScope,
        max_wait: Duration,
        once: &OnceBarrier,
    ) -> RunResult {
        if let Some(failure) = self.check_clock_skew()
            && let Routing::Throw(_) = self.alert(&fire, &failure)
        {
            self.report_not_started(&fire, scope.reason());
            return RunResult::NothingToRun;
        }
        let reason = scope.reason();
        // Nothing else compensates a trigger or a catch-up fire. A misfire is compensated by its owner, and that is us, also if another instance still
        // holds the shard without showing that in the tree: the end of that run is written to the ledger, which is not watched.
        let is_forgotten = reason == RunReason::Schedule && self.flaws.has(Flaw::ForgetMissedFires);
        let is_retried = !is_forgotten
            && (matches!(reason, RunReason::Trigger | RunReason::CatchUp)
                || self.job.misfire == Misfire::RunOnce);
        let cancel = self.cancel.child();
        let request = ClaimRequest { fire: fire.clone(), scope, max_wait, cancel };
        match self.claims.claim(request).await {
            Ok(claimed) => {
                let adjusted = self.with_parameter(&fire);
                let run = adjusted.as_deref().unwrap_or(self);
                run.execute(claimed, reason, once).await
            }
            Err(ClaimError::NothingToRun) => {
                // A trigger is announced only if there are shards to run: another instance has them by now.
                if reason == RunReason::Schedule {
                    self.history.record_no_shards(&fire.run, &self.task_id(&fire, Vec::new()));
                }
                RunResult::NothingToRun
            }
            Err(ClaimError::Registry(error)) if error.is_temporary() && !is_forgotten => {
                tracing::warn!(job = %fire.job, due_at = %fire.due_at, %error, "fire postponed");
                RunResult::Postponed
            }
            Err(
                error @ (ClaimError::Resharding
                | ClaimError::HeldElsewhere { .. }
                | ClaimError::Busy
                | ClaimError::SessionFull
                | ClaimError::Left
                | ClaimError::Registry(Error::SessionExpired)),
            ) if is_retried => {
                tracing::warn!(job = %fire.job, due_at = %fire.due_at, %error, "fire postponed");
                RunResult::Postponed
            }
            Err(error) => {
                tracing::warn!(job = %fire.job, due_at = %fire.due_at, %error, "fire not started");
                self.report_not_started(&fire, reason);
                RunResult::NothingToRun
            }
        }
    }

    /// Reports a fire that could not start as missed if nothing compensates it. Otherwise the run that compensates it reports what it answers.
    fn report_not_started(&self, fire: &Fire, reason: RunReason) {
        if reason != RunReason::Schedule || self.job.misfire == Misfire::RunOnce {
            return;
        }
        let missed = Missed { first: fire.due_at, last: fire.due_at, count: 1 };
        self.listeners.missed(&fire.job, missed.count);
        self.history.record_missed(&fire.job, missed, MissedReason::NotStarted);
        self.reported.note(missed);
    }

    /// Reports the fires that this run answers together with its own: they came due while this process did not run, the registry did not answer,
    /// shards were being assigned, or an earlier run was going. Fires that no instance saw belong to catch-up.
    fn report_coalesced(&self, claimed: &ShardClaim) {
        let since = claimed.shards.iter().filter_map(|shard| shard.answers_since).min();
        let (Some(schedule), Some(since)) = (&self.schedule, since) else { return };
        let fire = &claimed.fire;
        let gap = (since, fire.due_at);
        let Some(coalesced) = self.reported.unreported(schedule, gap, self.clock.now()) else {
            return;
        };
        if self.flaws.has(Flaw::HideCoalescedFires) {
            return;
        }
        let Missed { first, last, count } = coalesced;
        tracing::warn!(job = %fire.job, run_id = %fire.run, count, %first, %last, "fires coalesced into one run");
        self.listeners.coalesced(&fire.job, count);
        self.history.record_missed(&fire.job, coalesced, MissedReason::Coalesced);
    }

    /// Runs shards that were taken over.
    pub(super) async fn run_taken_over(&self, claimed: ShardClaim) -> RunResult {
        let adjusted = self.with_parameter(&claimed.fire);
        let run = adjusted.as_deref().unwrap_or(self);
        run.execute(claimed, RunReason::Failover, &self.once).await
    }

    /// The same context with the fire's own parameter, if it has one.
    fn with_parameter(&self, fire: &Fire) -> Option<Box<Self>> {
        let parameter = fire.parameter.clone()?;
        let job = Arc::new(Job::clone(&self.job).parameter(parameter));
        Some(Box::new(Self { job, ..self.clone() }))
    }

    /// Runs the claimed shards and releases them.
    async fn execute(
        &self,
        claimed: ShardClaim,
        reason: RunReason,
        once: &OnceBarrier,
    ) -> RunResult {
        let ShardClaim { fire, session, .. } = &claimed;
        if !self.has_lease_to_start(session).await {
            tracing::warn!(job = %fire.job, run_id = %fire.run, "run postponed, lease too short");
            let unstarted = claimed.shards.iter().map(|claim| (claim.item, Release::Withdrawn));
            self.release(fire, unstarted.collect()).await;
            return RunResult::Postponed;
        }
        self.report_coalesced(&claimed);
        let task = self.task_id(fire, claimed.shards.iter().map(|claim| claim.item).collect());
        let shards = self.shards(&claimed, &task, reason);
        let unguarded = shards.iter().map(|(shard, _)| shard.clone()).collect();
        let execution = Execution::new(task, fire.run.clone(), unguarded);
        tracing::info!(job = %fire.job, run_id = %fire.run, due_at = %fire.due_at, shards = shards.len(), reason = reason.as_str(), "run started");
        self.history.record_start(&fire.run, &execution.task, reason);
        let (sender, ended) = mpsc::unbounded_channel();
        let _lease_use = self.session.lease_users.begin();
        let ran = tokio::select! {
            biased;
            ran = self.run_shards(&claimed, shards, &execution, once, &sender) => ran,
            () = self.watch_lease(session, &claimed.cancel) => unreachable!("the lease is watched as long as shards run"),
            () = self.release_early(&claimed, once, ended) => unreachable!("shards are released as long as others run"),
        };
        self.history.record_finished(&fire.run, &execution.task, &ran);
        self.report(fire, &ran);
        let ended = ran.iter().map(|ran| (ran.shard.item, Release::Ended(ran.outcome)));
        self.release(fire, ended.collect()).await;
        RunResult::Ran { unclaimed: claimed.remaining.clone() }
    }

    /// The claimed shards as their handler gets them, each with the guard that stops it when its claim is lost.
    fn shards(
        &self,
        claimed: &ShardClaim,
        task: &TaskId,
        reason: RunReason,
    ) -> Vec<(Shard, Guard)> {
        let ShardClaim { fire, session, .. } = claimed;
        let shards = claimed.shards.iter().map(|claim| {
            let number = NonZeroU32::new(claim.attempt).unwrap_or(NonZeroU32::MIN);
            let shard = Shard::of(&self.job, fire, task.clone(), claim.item, claim.token)
                .attempt(Attempt { number, reason })
                .expecting(claimed.expected)
                .cancelled_by(claim.status.cancel().clone());
            (shard, self.guard(session, Arc::clone(&claim.status)))
        });
        shards.collect()
    }

    /// Calls the listeners, runs the shards, and calls the listeners again. A listener that fails before the run may fail the whole run.
    async fn run_shards(
        &self,
        claimed: &ShardClaim,
        shards: Vec<(Shard, Guard)>,
        execution: &Execution,
        once: &OnceBarrier,
        ended: &mpsc::UnboundedSender<(u32, Release)>,
    ) -> Vec<ShardResult> {
        let ShardClaim { fire, session, cancel, .. } = claimed;
        let prepared = AssertUnwindSafe(|| self.work.prepare(&self.setting(session)));
        let mut handler = catch_unwind(prepared)
            .unwrap_or_else(|payload| Err(Failure::panicked(&*payload)))
            .map(|handler| self.history.wrap_handler(handler));
        if let Err(failure) = self.listeners.before(execution).await
            && let Routing::Throw(thrown) = self.alert(fire, &failure)
        {
            handler = Err(thrown);
        }
        if let Err(failure) = once.before(self, execution, cancel).await
            && let Routing::Throw(thrown) = self.alert(fire, &failure)
        {
            handler = Err(thrown);
        }
        let items: Vec<u32> = shards.iter().map(|(shard, _)| shard.item).collect();
        let report = |index: usize, outcome| {
            let _ = ended.send((items[index], Release::Ended(outcome)));
        };
        let policy = AttemptPolicy::of(&self.job);
        let ran = self.runner.run_reporting(handler, policy, shards, report).await;
        if let Err(failure) = self.listeners.after(execution, &ran).await {
            let _ = self.alert(fire, &failure);
        }
        if let Err(failure) = once.after(self, execution, cancel).await {
            let _ = self.alert(fire, &failure);
        }
        ran
    }

    /// Releases shards that ended at least [`RELEASE_DELAY`] before the rest of their run: if this instance dies, they must not run again. Only the
    /// registry learns of it; the process counts them as busy until the run is over, so that its own runs stay sequential. Never returns.
    async fn release_early(
        &self,
        claimed: &ShardClaim,
        once: &OnceBarrier,
        mut ended: mpsc::UnboundedReceiver<(u32, Release)>,
    ) {
        let mut count = 0;
        loop {
            let mut batch = Vec::new();
            let received = ended.recv_many(&mut batch, claimed.shards.len().max(1)).await;
            // A gate for once-listeners counts whole runs.
            let is_together = once.has_listeners() || self.flaws.has(Flaw::ReleaseTogether);
            if received == 0 || is_together {
                return std::future::pending().await;
            }
            self.clock.sleep_until(self.clock.monotonic() + RELEASE_DELAY).await;
            while let Ok(more) = ended.try_recv() {
                batch.push(more);
            }
            count += batch.len();
            // The last ones are released with the run, after the listeners.
            if count >= claimed.shards.len() {
                return std::future::pending().await;
            }
            if let Err(error) = self.claims.release_early(batch).await {
                let fire = &claimed.fire;
                tracing::debug!(job = %fire.job, run_id = %fire.run, %error, "early release failed, shards are released with their run");
            }
        }
    }

    /// Logs how each shard ended, and sends an alert for those that failed.
    fn report(&self, fire: &Fire, ran: &[ShardResult]) {
        for result in ran {
            tracing::info!(job = %fire.job, run_id = %fire.run, shard = result.shard.item, outcome = result.outcome.as_str(), problem = result.message.as_deref(), "shard ended");
            if let Some(notice) = Notice::of_shard(result, self.clock.now()) {
                // A run has no caller to throw to, so `THROW` counts as delivered.
                let _ = self.alerts.send(&self.job, notice, &self.listeners);
            }
        }
    }

    fn task_id(&self, fire: &Fire, items: Vec<u32>) -> TaskId {
        TaskId { job: fire.job.clone(), items, instance: self.instance.clone() }
    }

    async fn release(&self, fire: &Fire, ended: Vec<(u32, Release)>) {
        if let Err(error) = self.claims.release(ended).await {
            tracing::error!(job = %fire.job, run_id = %fire.run, %error, "releasing shards failed");
        }
    }

    fn setting(&self, session: &Session) -> RunSettings<'_> {
        let claims = self.claims.clone();
        RunSettings {
            job: &self.job,
            resharding: Arc::new(move || claims.is_resharding()),
            output: Arc::clone(&self.output),
            lease: self.lease(session),
            secrets: self.secrets.clone(),
            inherits_environment: self.local.lets_script_inherit_environment(&self.job),
        }
    }

    fn alert(&self, fire: &Fire, failure: &Failure) -> Routing {
        let notice = Notice::of_job(fire.job.clone(), failure, self.clock.now());
        self.alerts.send(&self.job, notice, &self.listeners)
    }

    /// Returns a failure if the clocks of this machine and the registry differ by more than the job allows.
    fn check_clock_skew(&self) -> Option<Failure> {
        let limit = self.job.max_time_diff.limit()?;
        let skew = self.schedule_clock.skew()?;
        (skew.unsigned_abs() > limit).then(|| {
            let problem = format!(
                "this machine's clock differs by {} ms from the registry's, job {} allows {} s",
                skew.as_millis(),
                self.job.name,
                limit.as_secs(),
            );
            Failure::new(Problem::new(problem).with_hint("is a time service running?"))
        })
    }
}
