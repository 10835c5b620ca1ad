//! One fire on this instance: claim, run, release.

use std::{
    collections::BTreeSet,
    num::NonZeroU32,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{chronicle::Chronicle, once::Once};
use crate::{
    coordination::{
        flaw::{Flaw, Flaws},
        member::{Claimed, Claims, Ended, Refused, Request, Why},
        skew,
        tree::JobTree,
    },
    execution::{
        Alerts, Execution, Failure, Guard, Lease, Listeners, Notice, Outcome, Output, Routing,
        Rules, Runner, Setting, Work,
    },
    job::{Attempt, CatchUp, Fire, InstanceId, Job, LeaseLoss, Reason, Shard, TaskId},
    registry::{Error, Registry, Session},
    runtime::{Cancel, CancelReason, Clock},
    schedule::{Missed, Schedule},
};

/// What a run needs.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) claims: Claims,
    pub(super) instance: InstanceId,
    pub(super) job: Arc<Job>,
    pub(super) work: Arc<dyn Work>,
    pub(super) runner: Arc<Runner>,
    pub(super) listeners: Arc<Listeners>,
    pub(super) once: Once,
    pub(super) alerts: Alerts,
    pub(super) output: Arc<dyn Output>,
    pub(super) chronicle: Chronicle,
    pub(super) cancel: Cancel,
    pub(super) flaws: Flaws,
}

/// What became of it.
#[derive(Debug)]
pub(super) enum End {
    /// Shards ran; these were asked for, too, and could not.
    Ran { left: BTreeSet<u32> },
    /// There was nothing to run.
    Nothing,
    /// No shard is ours yet: what there is to catch up with is not known.
    StillBehind,
    /// The registry was out of reach: it is still to be done.
    OutOfReach,
}

impl Run {
    /// Runs every shard of this fire that is ours, waiting at most `patience` while shards are dealt.
    pub(super) async fn fire(&self, fire: Fire, why: Why, patience: Duration) -> End {
        if let Some(failure) = self.clock_is_wrong().await
            && let Routing::Throw(_) = self
                .alerts
                .tell(&self.job, Notice::of_job(fire.job.clone(), &failure, self.clock.now()))
        {
            return End::Nothing;
        }
        let reason = match why {
            Why::Due | Why::Asked(_) => Reason::Due,
            Why::Late { .. } => Reason::Misfire,
            Why::CatchUp => Reason::CatchUp,
        };
        let is_tried_again = matches!(why, Why::Asked(_) | Why::CatchUp);
        let is_whole = !matches!(&why, Why::Asked(shards) if !shards.is_empty());
        let cancel = self.cancel.child();
        let request = Request { fire: fire.clone(), why, patience, cancel };
        let nobody = self.once.nobody();
        let once = if is_whole { &self.once } else { &nobody };
        match self.claims.claim(request).await {
            Ok(claimed) => {
                let given = self.given(&fire);
                let run = given.as_deref().unwrap_or(self);
                run.execute(claimed, reason, once).await
            }
            Err(Refused::Nothing) => {
                if reason == Reason::Due {
                    self.chronicle.nothing(&fire.run, &self.task(&fire, Vec::new()));
                }
                End::Nothing
            }
            Err(Refused::Registry(error)) if error.is_outage() => {
                tracing::warn!(job = %fire.job, due_at = %fire.due_at, %error, "fire not run yet");
                End::OutOfReach
            }
            // Nothing makes up for a trigger, or for what was due while nobody was there: it is tried again.
            Err(
                Refused::Resharding
                | Refused::Busy
                | Refused::Left
                | Refused::Registry(Error::SessionExpired),
            ) if is_tried_again => End::OutOfReach,
            Err(error) => {
                tracing::warn!(job = %fire.job, due_at = %fire.due_at, %error, "fire not run");
                End::Nothing
            }
        }
    }

    /// Runs shards that were taken over.
    pub(super) async fn fail_over(&self, claimed: Claimed) -> End {
        let given = self.given(&claimed.fire);
        let run = given.as_deref().unwrap_or(self);
        run.execute(claimed, Reason::Failover, &self.once).await
    }

    /// Runs what was due while nobody was there, as far as the job wants it, and reports the rest.
    pub(super) async fn catch_up(&self, schedule: Schedule, patience: Duration) -> End {
        let now = self.clock.now();
        let ours = self.claims.last_due().await;
        if ours.is_empty() {
            return End::StillBehind;
        }
        let Some(last) = ours.values().flatten().min().copied() else { return End::Nothing };
        let missed: Vec<Timestamp> = match self.job.props.policies().catch_up {
            CatchUp::None => Vec::new(),
            CatchUp::Last => {
                schedule.prev_before(now).filter(|due| *due > last).into_iter().collect()
            }
            CatchUp::All { window } => {
                let from = now.saturating_sub(window).unwrap_or(Timestamp::MIN).max(last);
                schedule.fires_between(from, now).collect()
            }
        };
        let until = missed.first().map_or(now, |first| *first - SignedDuration::from_nanos(1));
        if let Some(left_out) = schedule.missed(last, until, SignedDuration::MAX) {
            let Missed { first, last, count } = left_out;
            self.listeners.missed(&self.job.name, count);
            self.chronicle.left_out(&self.job.name, (first, last, count as u64));
            tracing::warn!(job = %self.job.name, count, %first, %last, "due while nobody was there, and left out; hint: elasticjob.catch.up says what is to run");
        }
        let mut end = End::Nothing;
        for due_at in missed {
            let fire = Fire::scheduled(self.job.name.clone(), due_at);
            match self.fire(fire, Why::CatchUp, patience).await {
                End::Nothing => {}
                // The next one would make this one look as if it had run.
                out_of_reach @ End::OutOfReach => return out_of_reach,
                other => end = other,
            }
            if self.cancel.is_cancelled() {
                break;
            }
        }
        end
    }

    /// The same with the parameter this fire brings, if it does.
    fn given(&self, fire: &Fire) -> Option<Box<Self>> {
        let parameter = fire.parameter.clone()?;
        let job = Arc::new(Job::clone(&self.job).parameter(parameter));
        Some(Box::new(Self { job, ..self.clone() }))
    }

    async fn execute(&self, claimed: Claimed, reason: Reason, once: &Once) -> End {
        let Claimed { fire, session, cancel, .. } = &claimed;
        let items: Vec<u32> = claimed.shards.iter().map(|shard| shard.item).collect();
        if !self.has_time(session).await {
            tracing::warn!(job = %fire.job, run = %fire.run, "the lease is too short to start anything");
            self.release(fire, items.iter().map(|item| (*item, Ended::Withdrawn)).collect()).await;
            return End::OutOfReach;
        }
        tracing::info!(job = %fire.job, run = %fire.run, due_at = %fire.due_at, shards = items.len(), ?reason, "run started");
        let task = self.task(fire, items);
        // As the ancestor has it: what makes up for a missed fire is part of the run before.
        if reason != Reason::Misfire {
            self.chronicle.staged(&fire.run, &task);
        }
        let shards: Vec<(Shard, Guard)> = claimed
            .shards
            .iter()
            .map(|claim| {
                let number = NonZeroU32::new(claim.attempt).unwrap_or(NonZeroU32::MIN);
                let shard = Shard::of(&self.job, fire, task.clone(), claim.item, claimed.token)
                    .attempt(Attempt { number, reason })
                    .cancelled_by(claim.hold.cancel().clone());
                (shard, self.guard(session, Arc::clone(&claim.hold)))
            })
            .collect();
        let plain: Vec<Shard> = shards.iter().map(|(shard, _)| shard.clone()).collect();
        let execution = Execution::new(task, fire.run.clone(), plain);
        self.chronicle.runs(&fire.run, &execution.task);
        let running = async {
            let prepared = AssertUnwindSafe(|| self.work.prepare(&self.setting(session)));
            let mut handler = catch_unwind(prepared)
                .unwrap_or_else(|payload| Err(Failure::panicked(&*payload)))
                .map(|handler| self.chronicle.over(handler));
            if let Err(failure) = self.listeners.before(&execution).await
                && let Routing::Throw(thrown) = self.tell(fire, &failure)
            {
                handler = Err(thrown);
            }
            if let Err(failure) = once.before(self, &execution, cancel).await
                && let Routing::Throw(thrown) = self.tell(fire, &failure)
            {
                handler = Err(thrown);
            }
            let ran = self.runner.run(handler, Rules::of(&self.job), shards).await;
            if let Err(failure) = self.listeners.after(&execution, &ran).await {
                let _ = self.tell(fire, &failure);
            }
            if let Err(failure) = once.after(self, &execution, cancel).await {
                let _ = self.tell(fire, &failure);
            }
            ran
        };
        let ran = tokio::select! {
            biased;
            ran = running => ran,
            () = self.keep_lease(session, cancel) => unreachable!("it keeps the lease as long as something runs"),
        };
        self.chronicle.ran(&fire.run, &execution.task, &ran);
        let mut ended = Vec::new();
        for (ran, claim) in ran.iter().zip(&claimed.shards) {
            tracing::info!(job = %fire.job, run = %fire.run, shard = claim.item, outcome = %ran.outcome, "shard ended");
            if let Some(notice) = Notice::of_shard(&ran.shard, &ran.outcome, self.clock.now()) {
                // There is nobody above a run to throw at, so `THROW` is as good as told.
                let _ = self.alerts.tell(&self.job, notice);
            }
            ended.push((claim.item, how_it_ended(&ran.outcome)));
        }
        self.release(fire, ended).await;
        End::Ran { left: claimed.left.clone() }
    }

    fn task(&self, fire: &Fire, items: Vec<u32>) -> TaskId {
        TaskId { job: fire.job.clone(), items, instance: self.instance.clone() }
    }

    async fn release(&self, fire: &Fire, ended: Vec<(u32, Ended)>) {
        if let Err(error) = self.claims.release(ended).await {
            tracing::error!(job = %fire.job, run = %fire.run, %error, "could not release the shards of a run");
        }
    }

    fn setting(&self, session: &Session) -> Setting<'_> {
        let claims = self.claims.clone();
        Setting {
            job: &self.job,
            resharding: Arc::new(move || claims.is_resharding()),
            output: Arc::clone(&self.output),
            lease: self.lease(session),
        }
    }

    fn tell(&self, fire: &Fire, failure: &Failure) -> Routing {
        self.alerts.tell(&self.job, Notice::of_job(fire.job.clone(), failure, self.clock.now()))
    }

    /// Whether the clocks of this machine and the registry are further apart than the job allows.
    async fn clock_is_wrong(&self) -> Option<Failure> {
        let limit = self.job.max_time_diff.limit()?;
        let tree = JobTree::new(self.registry.namespace(), &self.job.name).ok()?;
        let skew = match skew::measure(&*self.registry, &*self.clock, &tree).await {
            Ok(skew) => skew,
            Err(error) => {
                tracing::warn!(job = %self.job.name, %error, "could not compare clocks with the registry");
                return None;
            }
        };
        (skew.unsigned_abs() > limit).then(|| {
            Failure::new(format_args!(
                "this machine's clock is {} ms off the registry's, and job {} allows {} s; hint: is a time service running?",
                skew.as_millis(),
                self.job.name,
                limit.as_secs(),
            ))
        })
    }

    /// Whether the lease lasts long enough to start something: twice the margin, if need be after asking once more.
    async fn has_time(&self, session: &Session) -> bool {
        let enough = |now| session.deadline() > now + margin(session.timeout()) * 2;
        if enough(self.clock.monotonic()) || self.flaws.has(Flaw::IgnoreLease) {
            return true;
        }
        let asked = self.clock.monotonic() + session.timeout() / 6;
        tokio::select! {
            biased;
            _ = self.registry.sync() => {}
            () = self.clock.sleep_until(asked) => {}
        }
        enough(self.clock.monotonic())
    }

    /// While the session is certain to live and the claim is ours. What runs was told a margin before; whoever did not listen is not
    /// polled again.
    fn guard(&self, session: &Session, hold: Arc<crate::coordination::member::Hold>) -> Guard {
        let (session, clock) = (session.clone(), Arc::clone(&self.clock));
        let on_loss = self.job.props.policies().on_lease_loss;
        let flaws = self.flaws;
        Guard::new(on_loss, move || {
            (!hold.is_lost() && clock.monotonic() < session.deadline())
                || flaws.has(Flaw::IgnoreLease)
        })
    }

    /// Until when what runs outside this process may go on, if its job says that it may not without a lease.
    fn lease(&self, session: &Session) -> Lease {
        if self.job.props.policies().on_lease_loss != LeaseLoss::Cancel {
            return Lease::none();
        }
        let (session, clock) = (session.clone(), Arc::clone(&self.clock));
        Lease::new(move || session.deadline().saturating_since(clock.monotonic()))
    }

    /// Asks the leader often enough that the lease does not run out while something runs; when it is about to run out all the
    /// same, tells what runs to end. A guard alone would not do: it acts when a handler is polled, and a silent one is not.
    async fn keep_lease(&self, session: &Session, running: &Cancel) {
        let margin = margin(session.timeout());
        let gives_up = self.job.props.policies().on_lease_loss == LeaseLoss::Cancel
            && !self.flaws.has(Flaw::IgnoreLease);
        loop {
            let (now, end) = (self.clock.monotonic(), session.deadline() - margin);
            if now >= end && gives_up {
                running.cancel(CancelReason::LeaseLost);
            }
            let next = now + session.timeout() / 6;
            let look = if end > now { next.min(end) } else { next };
            self.clock.sleep_until(look).await;
            // While the registry is out of reach this waits for it; the end of the lease does not.
            tokio::select! {
                biased;
                answer = self.registry.sync() => if let Err(error) = answer {
                    tracing::debug!(%error, "the lease was not renewed this time");
                },
                () = self.clock.sleep_until(end.max(look)) => {}
            }
        }
    }
}

fn how_it_ended(outcome: &Outcome) -> Ended {
    match outcome {
        Outcome::Done => Ended::Done,
        // Its nodes may be somebody else's by now: then they are left alone.
        Outcome::Fenced => Ended::Fenced,
        _ => Ended::Failed,
    }
}

/// How long before the registry may end a session what runs under it is told to end.
pub(super) fn margin(timeout: Duration) -> Duration {
    (timeout / 4).clamp(Duration::from_millis(500), Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_a_quarter_of_the_timeout_within_bounds() {
        assert_eq!(margin(Duration::from_secs(1)), Duration::from_millis(500));
        assert_eq!(margin(Duration::from_secs(8)), Duration::from_secs(2));
        assert_eq!(margin(Duration::from_mins(1)), Duration::from_secs(5));
    }
}
