//! One run on this instance: claim shards, run them, release them.

use std::{
    collections::BTreeSet,
    num::NonZeroU32,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{history_tap::HistoryTap, once_barrier::OnceBarrier};
use crate::problem::Problem;
use crate::{
    coordination::{
        clock_skew,
        flaw::{Flaw, Flaws},
        member::{ClaimError, ClaimHandle, ClaimReason, ClaimRequest, ReleaseOutcome, ShardClaim},
        tree::JobTree,
    },
    execution::{
        Alerts, AttemptPolicy, Execution, Failure, Guard, Lease, Listeners, Notice, Outcome,
        Output, Routing, RunSettings, Runner, Work,
    },
    job::{Attempt, CatchUp, Fire, InstanceId, Job, LeaseLoss, RunReason, Shard, TaskId},
    registry::{Error, Registry, Session},
    runtime::{CancelReason, CancelToken, Clock},
    schedule::{Missed, Schedule},
};

/// Everything a run uses.
#[derive(Clone)]
pub(super) struct RunContext {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) claims: ClaimHandle,
    pub(super) instance: InstanceId,
    pub(super) job: Arc<Job>,
    pub(super) work: Arc<dyn Work>,
    pub(super) runner: Arc<Runner>,
    pub(super) listeners: Arc<Listeners>,
    pub(super) once: OnceBarrier,
    pub(super) alerts: Alerts,
    pub(super) output: Arc<dyn Output>,
    pub(super) history: HistoryTap,
    pub(super) cancel: CancelToken,
    pub(super) flaws: Flaws,
}

/// What came of a work item.
#[derive(Debug)]
pub(super) enum RunResult {
    /// Shards ran. A trigger requested the unclaimed ones, too, but they were busy.
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
    /// Runs every shard of this fire that this instance owns. Waits at most `max_wait` for a sharding in progress.
    pub(super) async fn run_fire(
        &self,
        fire: Fire,
        why: ClaimReason,
        max_wait: Duration,
    ) -> RunResult {
        if let Some(failure) = self.check_clock_skew().await
            && let Routing::Throw(_) = self
                .alerts
                .send(&self.job, Notice::of_job(fire.job.clone(), &failure, self.clock.now()))
        {
            return RunResult::NothingToRun;
        }
        let reason = match why {
            ClaimReason::Due | ClaimReason::Trigger(_) => RunReason::Due,
            ClaimReason::Misfire { .. } => RunReason::Misfire,
            ClaimReason::CatchUp => RunReason::CatchUp,
        };
        let is_retried = matches!(why, ClaimReason::Trigger(_) | ClaimReason::CatchUp);
        let is_whole = !matches!(&why, ClaimReason::Trigger(shards) if !shards.is_empty());
        let cancel = self.cancel.child();
        let request = ClaimRequest { fire: fire.clone(), why, max_wait, cancel };
        let no_listeners = self.once.without_listeners();
        let once = if is_whole { &self.once } else { &no_listeners };
        match self.claims.claim(request).await {
            Ok(claimed) => {
                let adjusted = self.with_parameter(&fire);
                let run = adjusted.as_deref().unwrap_or(self);
                run.execute(claimed, reason, once).await
            }
            Err(ClaimError::NothingToRun) => {
                if reason == RunReason::Due {
                    self.history.record_no_shards(&fire.run, &self.task_id(&fire, Vec::new()));
                }
                RunResult::NothingToRun
            }
            Err(ClaimError::Registry(error)) if error.is_outage() => {
                tracing::warn!(job = %fire.job, due_at = %fire.due_at, %error, "fire postponed");
                RunResult::Postponed
            }
            // No misfire compensates a trigger or a catch-up fire, so these are retried.
            Err(
                ClaimError::Resharding
                | ClaimError::Busy
                | ClaimError::Left
                | ClaimError::Registry(Error::SessionExpired),
            ) if is_retried => RunResult::Postponed,
            Err(error) => {
                tracing::warn!(job = %fire.job, due_at = %fire.due_at, %error, "fire not started");
                RunResult::NothingToRun
            }
        }
    }

    /// Runs shards that were taken over.
    pub(super) async fn run_taken_over(&self, claimed: ShardClaim) -> RunResult {
        let adjusted = self.with_parameter(&claimed.fire);
        let run = adjusted.as_deref().unwrap_or(self);
        run.execute(claimed, RunReason::Failover, &self.once).await
    }

    /// Runs the fires that came due while no instance was up, as far as the job's catch-up policy allows, and reports the others as missed.
    pub(super) async fn catch_up(&self, schedule: Schedule, max_wait: Duration) -> RunResult {
        let now = self.clock.now();
        let last_due = self.claims.last_due().await;
        if last_due.is_empty() {
            return RunResult::NoShardsYet;
        }
        let Some(last) = last_due.values().flatten().min().copied() else {
            return RunResult::NothingToRun;
        };
        let catch_up: Vec<Timestamp> = match self.job.props.policies().catch_up {
            CatchUp::None => Vec::new(),
            CatchUp::Last => {
                schedule.prev_before(now).filter(|due| *due > last).into_iter().collect()
            }
            CatchUp::All { window } => {
                let from = now.saturating_sub(window).unwrap_or(Timestamp::MIN).max(last);
                schedule.fires_between(from, now).collect()
            }
        };
        let until = catch_up.first().map_or(now, |first| *first - SignedDuration::from_nanos(1));
        if let Some(missed) = schedule.missed(last, until, SignedDuration::MAX) {
            let Missed { first, last, count } = missed;
            self.listeners.missed(&self.job.name, count);
            self.history.record_missed_while_down(&self.job.name, (first, last, count as u64));
            tracing::warn!(
                job = %self.job.name, count, %first, %last,
                hint = "elasticjob.catch.up sets which of them run",
                "fires missed while no instance was up"
            );
        }
        let mut result = RunResult::NothingToRun;
        for due_at in catch_up {
            let fire = Fire::scheduled(self.job.name.clone(), due_at);
            match self.run_fire(fire, ClaimReason::CatchUp, max_wait).await {
                RunResult::NothingToRun => {}
                // If the next fire ran, the ledger would show this one as done.
                postponed @ RunResult::Postponed => return postponed,
                other => result = other,
            }
            if self.cancel.is_cancelled() {
                break;
            }
        }
        result
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
        let ShardClaim { fire, session, cancel, .. } = &claimed;
        let items: Vec<u32> = claimed.shards.iter().map(|shard| shard.item).collect();
        if !self.has_lease_to_start(session).await {
            tracing::warn!(job = %fire.job, run_id = %fire.run, "run postponed, lease too short");
            self.release(
                fire,
                items.iter().map(|item| (*item, ReleaseOutcome::Withdrawn)).collect(),
            )
            .await;
            return RunResult::Postponed;
        }
        tracing::info!(job = %fire.job, run_id = %fire.run, due_at = %fire.due_at, shards = items.len(), ?reason, "run started");
        let task = self.task_id(fire, items);
        // As in Java: a misfire run belongs to the status trace of the run before it.
        if reason != RunReason::Misfire {
            self.history.record_staging(&fire.run, &task);
        }
        let shards: Vec<(Shard, Guard)> = claimed
            .shards
            .iter()
            .map(|claim| {
                let number = NonZeroU32::new(claim.attempt).unwrap_or(NonZeroU32::MIN);
                let shard = Shard::of(&self.job, fire, task.clone(), claim.item, claimed.token)
                    .attempt(Attempt { number, reason })
                    .cancelled_by(claim.status.cancel().clone());
                (shard, self.guard(session, Arc::clone(&claim.status)))
            })
            .collect();
        let unguarded: Vec<Shard> = shards.iter().map(|(shard, _)| shard.clone()).collect();
        let execution = Execution::new(task, fire.run.clone(), unguarded);
        self.history.record_running(&fire.run, &execution.task);
        let running = async {
            let prepared = AssertUnwindSafe(|| self.work.prepare(&self.setting(session)));
            let mut handler = catch_unwind(prepared)
                .unwrap_or_else(|payload| Err(Failure::panicked(&*payload)))
                .map(|handler| self.history.wrap_handler(handler));
            if let Err(failure) = self.listeners.before(&execution).await
                && let Routing::Throw(thrown) = self.alert(fire, &failure)
            {
                handler = Err(thrown);
            }
            if let Err(failure) = once.before(self, &execution, cancel).await
                && let Routing::Throw(thrown) = self.alert(fire, &failure)
            {
                handler = Err(thrown);
            }
            let ran = self.runner.run(handler, AttemptPolicy::of(&self.job), shards).await;
            if let Err(failure) = self.listeners.after(&execution, &ran).await {
                let _ = self.alert(fire, &failure);
            }
            if let Err(failure) = once.after(self, &execution, cancel).await {
                let _ = self.alert(fire, &failure);
            }
            ran
        };
        let ran = tokio::select! {
            biased;
            ran = running => ran,
            () = self.keep_lease(session, cancel) => unreachable!("the lease is kept as long as shards run"),
        };
        self.history.record_finished(&fire.run, &execution.task, &ran);
        let mut ended = Vec::new();
        for (ran, claim) in ran.iter().zip(&claimed.shards) {
            tracing::info!(job = %fire.job, run_id = %fire.run, shard = claim.item, outcome = %ran.outcome, "shard ended");
            if let Some(notice) = Notice::of_shard(&ran.shard, &ran.outcome, self.clock.now()) {
                // A run has no caller to throw to, so `THROW` counts as delivered.
                let _ = self.alerts.send(&self.job, notice);
            }
            ended.push((claim.item, ended_from_outcome(&ran.outcome)));
        }
        self.release(fire, ended).await;
        RunResult::Ran { unclaimed: claimed.remaining.clone() }
    }

    fn task_id(&self, fire: &Fire, items: Vec<u32>) -> TaskId {
        TaskId { job: fire.job.clone(), items, instance: self.instance.clone() }
    }

    async fn release(&self, fire: &Fire, ended: Vec<(u32, ReleaseOutcome)>) {
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
        }
    }

    fn alert(&self, fire: &Fire, failure: &Failure) -> Routing {
        self.alerts.send(&self.job, Notice::of_job(fire.job.clone(), failure, self.clock.now()))
    }

    /// Returns a failure if the clocks of this machine and the registry differ by more than the job allows.
    async fn check_clock_skew(&self) -> Option<Failure> {
        let limit = self.job.max_time_diff.limit()?;
        let tree = JobTree::new(self.registry.namespace(), &self.job.name).ok()?;
        let skew = match clock_skew::measure(&*self.registry, &*self.clock, &tree).await {
            Ok(skew) => skew,
            Err(error) => {
                tracing::warn!(job = %self.job.name, %error, "comparing clocks with the registry failed");
                return None;
            }
        };
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

    /// Whether the lease is long enough to start a run: twice the margin, if necessary after one more sync.
    async fn has_lease_to_start(&self, session: &Session) -> bool {
        let is_enough = |now| session.deadline() > now + margin(session.timeout()) * 2;
        if is_enough(self.clock.monotonic()) || self.flaws.has(Flaw::IgnoreLease) {
            return true;
        }
        let timeout = self.clock.monotonic() + session.timeout() / 6;
        tokio::select! {
            biased;
            _ = self.registry.sync() => {}
            () = self.clock.sleep_until(timeout) => {}
        }
        is_enough(self.clock.monotonic())
    }

    /// A guard that lets a handler be polled while the session certainly lives and the claim still holds. The handler is cancelled one margin
    /// earlier; a handler that does not end by then is not polled again.
    fn guard(
        &self,
        session: &Session,
        status: Arc<crate::coordination::member::ClaimStatus>,
    ) -> Guard {
        let (session, clock) = (session.clone(), Arc::clone(&self.clock));
        let on_loss = self.job.props.policies().on_lease_loss;
        let flaws = self.flaws;
        Guard::new(on_loss, move || {
            (!status.is_lost() && clock.monotonic() < session.deadline())
                || flaws.has(Flaw::IgnoreLease)
        })
    }

    /// How long work outside this process may continue, if the job's policy ends it with the lease.
    fn lease(&self, session: &Session) -> Lease {
        if self.job.props.policies().on_lease_loss != LeaseLoss::Cancel {
            return Lease::none();
        }
        let (session, clock) = (session.clone(), Arc::clone(&self.clock));
        Lease::new(move || session.deadline().saturating_since(clock.monotonic()))
    }

    /// Syncs with the leader often enough that the lease does not expire while shards run. If the lease is about to expire anyway, cancels the
    /// shards. A guard alone is not enough: it acts when a handler is polled, and an idle handler is not polled.
    async fn keep_lease(&self, session: &Session, running: &CancelToken) {
        let margin = margin(session.timeout());
        let cancels = self.job.props.policies().on_lease_loss == LeaseLoss::Cancel
            && !self.flaws.has(Flaw::IgnoreLease);
        loop {
            let (now, end) = (self.clock.monotonic(), session.deadline() - margin);
            if now >= end && cancels {
                running.cancel(CancelReason::LeaseLost);
            }
            let next = now + session.timeout() / 6;
            let check_at = if end > now { next.min(end) } else { next };
            self.clock.sleep_until(check_at).await;
            // While the registry is unreachable, the sync waits; the end of the lease must not.
            tokio::select! {
                biased;
                answer = self.registry.sync() => if let Err(error) = answer {
                    tracing::debug!(%error, "lease renewal failed");
                },
                () = self.clock.sleep_until(end.max(check_at)) => {}
            }
        }
    }
}

fn ended_from_outcome(outcome: &Outcome) -> ReleaseOutcome {
    match outcome {
        Outcome::Done => ReleaseOutcome::Done,
        // Another instance may hold the shard by now; its nodes are then not touched.
        Outcome::Fenced => ReleaseOutcome::Fenced,
        _ => ReleaseOutcome::Failed,
    }
}

/// How long before the registry may end a session its running shards are cancelled.
pub(super) fn margin(timeout: Duration) -> Duration {
    (timeout / 4).clamp(Duration::from_millis(500), Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_is_a_quarter_of_the_timeout_within_bounds() {
        assert_eq!(margin(Duration::from_secs(1)), Duration::from_millis(500));
        assert_eq!(margin(Duration::from_secs(8)), Duration::from_secs(2));
        assert_eq!(margin(Duration::from_mins(1)), Duration::from_secs(5));
    }
}
