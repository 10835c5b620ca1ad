//! One fire on this instance: claim, run, release.

use std::{sync::Arc, time::Duration};

use super::once::Once;
use crate::{
    coordination::{
        ledger::State,
        member::{Claims, Refused},
    },
    execution::{
        Alerts, Execution, Guard, Listeners, Notice, Outcome, Rules, Runner, Setting, Work,
    },
    job::{Fire, InstanceId, Job, LeaseLoss, Shard, TaskId},
    registry::{Registry, Session},
    runtime::{Cancel, CancelReason, Clock},
};

/// What a run needs.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) claims: Claims,
    pub(super) instance: InstanceId,
    pub(super) job: Job,
    pub(super) work: Arc<dyn Work>,
    pub(super) runner: Arc<Runner>,
    pub(super) listeners: Arc<Listeners>,
    pub(super) once: Once,
    pub(super) alerts: Alerts,
    pub(super) cancel: Cancel,
}

impl Run {
    /// Runs every shard of this fire that is ours, waiting at most `patience` while shards are dealt.
    pub(super) async fn fire(self, fire: Fire, patience: Duration) {
        let claimed = match self.claims.claim(&fire, patience).await {
            Ok(claimed) => claimed,
            Err(Refused::Nothing) => return,
            Err(error) => {
                tracing::warn!(job = %fire.job, due_at = %fire.due_at, %error, "fire not run");
                return;
            }
        };
        let session = self.registry.session();
        let items: Vec<u32> = claimed.shards.iter().map(|(shard, _)| *shard).collect();
        tracing::info!(job = %fire.job, run = %fire.run, due_at = %fire.due_at, shards = items.len(), "run started");
        let task = TaskId { job: fire.job.clone(), items, instance: self.instance.clone() };
        let guard = self.guard(&session);
        let cancel = self.cancel.child();
        let shards: Vec<Shard> = claimed
            .shards
            .iter()
            .map(|(item, _)| {
                Shard::of(&self.job, &fire, task.clone(), *item, claimed.token)
                    .cancelled_by(cancel.child())
            })
            .collect();
        let execution = Execution::new(task, fire.run.clone(), shards.clone());
        if let Err(failure) = self.listeners.before(&execution).await {
            self.tell(Notice::of_job(fire.job.clone(), &failure, self.clock.now()));
        }
        if let Err(failure) = self.once.before(&self, &execution, &session, &cancel).await {
            self.tell(Notice::of_job(fire.job.clone(), &failure, self.clock.now()));
        }
        let handler = self.work.prepare(&Setting::of(&self.job));
        let guarded = shards.into_iter().map(|shard| (shard, guard.clone())).collect();
        let running = self.runner.run(handler, Rules::of(&self.job), guarded);
        let ran = tokio::select! {
            ran = running => ran,
            () = self.keep_lease(&session, &cancel) => unreachable!("it keeps the lease as long as something runs"),
        };
        if let Err(failure) = self.listeners.after(&execution, &ran).await {
            self.tell(Notice::of_job(fire.job.clone(), &failure, self.clock.now()));
        }
        if let Err(failure) = self.once.after(&self, &execution, &session, &cancel).await {
            self.tell(Notice::of_job(fire.job.clone(), &failure, self.clock.now()));
        }
        let mut ended = Vec::new();
        for (ran, (item, version)) in ran.iter().zip(&claimed.shards) {
            tracing::info!(job = %fire.job, run = %fire.run, shard = item, outcome = %ran.outcome, "shard ended");
            if let Some(notice) = Notice::of_shard(&ran.shard, &ran.outcome, self.clock.now()) {
                self.tell(notice);
            }
            let state = match &ran.outcome {
                Outcome::Done => State::Done,
                // Its nodes may be somebody else's by now: they are left alone.
                Outcome::Fenced => continue,
                _ => State::Failed,
            };
            ended.push((*item, *version, state));
        }
        if let Err(error) = self.claims.release(&fire, ended).await {
            tracing::error!(job = %fire.job, run = %fire.run, %error, "could not release the shards of a run");
        }
    }

    /// Tells whoever the job says. There is nobody above a run to throw at, so `THROW` is as good as told.
    fn tell(&self, notice: Notice) {
        let _ = self.alerts.tell(&self.job, notice);
    }

    /// While the session is certain to live. What runs was told a margin before; whoever did not listen is not polled again.
    fn guard(&self, session: &Session) -> Guard {
        let (session, clock) = (session.clone(), Arc::clone(&self.clock));
        let on_loss = self.job.props.policies().on_lease_loss;
        Guard::new(on_loss, move || clock.monotonic() < session.deadline())
    }

    /// Asks the leader often enough that the lease does not run out while something runs; when it is about to run out all the
    /// same, tells what runs to end. A guard alone would not do: it acts when a handler is polled, and a silent one is not.
    pub(super) async fn keep_lease(&self, session: &Session, cancel: &Cancel) {
        let margin = margin(session.timeout());
        loop {
            let (now, end) = (self.clock.monotonic(), session.deadline() - margin);
            if now >= end && self.job.props.policies().on_lease_loss == LeaseLoss::Cancel {
                cancel.cancel(CancelReason::LeaseLost);
            }
            let next = now + session.timeout() / 6;
            let look = if end > now { next.min(end) } else { next };
            self.clock.sleep_until(look).await;
            // While the registry is out of reach this waits for it; the end of the lease does not.
            tokio::select! {
                answer = self.registry.sync() => if let Err(error) = answer {
                    tracing::debug!(%error, "the lease was not renewed this time");
                },
                () = self.clock.sleep_until(end.max(look)) => {}
            }
        }
    }
}

/// How long before the registry may end a session what runs under it is told to end.
fn margin(timeout: Duration) -> Duration {
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
