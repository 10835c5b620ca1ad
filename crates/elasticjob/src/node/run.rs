//! One fire on this instance: claim, run, release.

use std::{sync::Arc, time::Duration};

use crate::{
    coordination::{
        ledger::State,
        member::{Claims, Refused},
    },
    execution::{Execution, Guard, Listeners, Outcome, Rules, Runner, Setting, Work},
    job::{Fire, InstanceId, Job, Shard, TaskId},
    registry::{Registry, Session},
    runtime::{Cancel, Clock},
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
        let shards: Vec<Shard> = claimed
            .shards
            .iter()
            .map(|(item, _)| {
                Shard::of(&self.job, &fire, task.clone(), *item, claimed.token)
                    .cancelled_by(self.cancel.child())
            })
            .collect();
        let execution = Execution::new(task, fire.run.clone(), shards.clone());
        if let Err(failure) = self.listeners.before(&execution).await {
            tracing::error!(job = %fire.job, %failure, "a listener failed before the run");
        }
        let handler = self.work.prepare(&Setting::of(&self.job));
        let guarded = shards.into_iter().map(|shard| (shard, guard.clone())).collect();
        let running = self.runner.run(handler, Rules::of(&self.job), guarded);
        let ran = tokio::select! {
            ran = running => ran,
            () = self.keep_lease(&session) => unreachable!("it keeps the lease as long as something runs"),
        };
        if let Err(failure) = self.listeners.after(&execution, &ran).await {
            tracing::error!(job = %fire.job, %failure, "a listener failed after the run");
        }
        let mut ended = Vec::new();
        for (ran, (item, version)) in ran.iter().zip(&claimed.shards) {
            tracing::info!(job = %fire.job, run = %fire.run, shard = item, outcome = %ran.outcome, "shard ended");
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

    /// While the session is certain to live, less a margin for clocks that drift.
    fn guard(&self, session: &Session) -> Guard {
        let margin = margin(session.timeout());
        let (session, clock) = (session.clone(), Arc::clone(&self.clock));
        let on_loss = self.job.props.policies().on_lease_loss;
        Guard::new(on_loss, move || clock.monotonic() + margin < session.deadline())
    }

    /// Asks the leader often enough that the lease does not run out while something runs.
    async fn keep_lease(&self, session: &Session) {
        loop {
            let next = self.clock.monotonic() + session.timeout() / 6;
            self.clock.sleep_until(next).await;
            if let Err(error) = self.registry.sync().await {
                tracing::debug!(%error, "the lease was not renewed this time");
            }
        }
    }
}

/// How long before the registry may end a session we stop believing in it.
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
