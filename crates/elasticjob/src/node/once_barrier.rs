//! This instance's part in listeners that are called once per fire.
//!
//! [`barrier`](crate::coordination::barrier) lets the instances of a job meet, [`execution`](crate::execution) calls the listener; this module
//! combines the two. Misfire, catch-up and failover runs do not meet: the other instances are busy with their own runs and would never register.

use std::sync::Arc;

use super::run::RunContext;
use crate::{
    coordination::{
        barrier::{Arrival, Barrier, BarrierError, Gate},
        tree::JobTree,
    },
    execution::{Execution, Failure, OnceListener, OnceListeners},
    job::RunReason,
    runtime::{CancelReason, CancelToken, Randomness},
};

/// A job's once-listeners, called at the gates where its instances meet.
#[derive(Clone)]
pub(super) struct OnceBarrier {
    listeners: Arc<OnceListeners>,
    randomness: Arc<dyn Randomness>,
}

impl OnceBarrier {
    pub(super) fn new(
        listeners: Vec<Arc<dyn OnceListener>>,
        randomness: &Arc<dyn Randomness>,
    ) -> Self {
        Self {
            listeners: Arc::new(OnceListeners::new(listeners)),
            randomness: Arc::clone(randomness),
        }
    }

    pub(super) fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// The same without listeners, for a run of only some shards: it does not meet other instances.
    pub(super) fn without_listeners(&self) -> Self {
        Self { listeners: Arc::default(), randomness: Arc::clone(&self.randomness) }
    }

    /// Returns when every shard of this fire is about to run and the listeners were called, on this instance or another one. The caller has to keep
    /// the lease meanwhile.
    pub(super) async fn before(
        &self,
        run: &RunContext,
        execution: &Execution,
        cancel: &CancelToken,
    ) -> Result<(), Failure> {
        // Boxed: the future is large and rarely needed, and would enlarge every run.
        Box::pin(self.pass_gate(run, execution, cancel, Gate::Started)).await
    }

    /// Returns when every shard of this fire has ended and the listeners were called, on this instance or another one.
    pub(super) async fn after(
        &self,
        run: &RunContext,
        execution: &Execution,
        cancel: &CancelToken,
    ) -> Result<(), Failure> {
        Box::pin(self.pass_gate(run, execution, cancel, Gate::Completed)).await
    }

    async fn pass_gate(
        &self,
        run: &RunContext,
        execution: &Execution,
        cancel: &CancelToken,
        gate: Gate,
    ) -> Result<(), Failure> {
        if self.listeners.is_empty() || !takes_part(execution) {
            return Ok(());
        }
        let (Some(shard), false) = (execution.shards.first(), is_lease_lost(cancel)) else {
            // An instance without a lease must not report its shards.
            return Ok(());
        };
        let arrival = Arrival {
            run: execution.run.clone(),
            due_at: shard.due_at,
            shards: execution.shards.iter().map(|shard| shard.item).collect(),
            total: shard.total.get(),
        };
        let barrier = Barrier {
            tree: JobTree::new(run.session.registry.namespace(), &run.job.name)?,
            registry: Arc::clone(&run.session.registry),
            clock: Arc::clone(&run.clock),
        };
        let timeout = match gate {
            Gate::Started => self.listeners.started_timeout(),
            Gate::Completed => self.listeners.completed_timeout(),
        };
        let ticket = self.randomness.bits();
        let mut waiter = barrier.register(gate, arrival, ticket, timeout).await?;
        match waiter.wait(cancel).await {
            Ok(None) => Ok(()),
            Ok(Some(last)) => {
                let called = tokio::select! {
                    biased;
                    called = self.call(run, execution, gate) => called,
                    reason = cancel.cancelled() => Err(BarrierError::Cancelled(reason).into()),
                };
                let finished = last.finish().await;
                called.and(finished.map_err(Failure::from))
            }
            // A cancellation is no failure. Shards that have ended stay registered, so that the other instances can complete.
            Err(BarrierError::Cancelled(_)) => {
                if gate == Gate::Started || is_lease_lost(cancel) {
                    waiter.withdraw().await;
                }
                Ok(())
            }
            Err(error) => {
                waiter.withdraw().await;
                Err(error.into())
            }
        }
    }

    async fn call(
        &self,
        run: &RunContext,
        execution: &Execution,
        gate: Gate,
    ) -> Result<(), Failure> {
        match gate {
            Gate::Started => self.listeners.before(execution, &*run.clock).await,
            Gate::Completed => self.listeners.after(execution, &*run.clock).await,
        }
    }
}

/// Whether the other shards of the fire take part, too. They do not in a misfire, catch-up or failover run.
fn takes_part(execution: &Execution) -> bool {
    execution
        .shards
        .iter()
        .all(|shard| matches!(shard.attempt.reason, RunReason::Schedule | RunReason::Trigger))
}

fn is_lease_lost(cancel: &CancelToken) -> bool {
    cancel.reason() == Some(CancelReason::LeaseLost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Attempt, FencingToken, Fire, Job, Shard, TaskId};

    #[test]
    fn misfire_failover_and_catch_up_runs_do_not_meet() {
        let job = Job::named("settle").unwrap().shards(2);
        let fire = Fire::scheduled(job.name.clone(), jiff::Timestamp::UNIX_EPOCH);
        let task: TaskId = "settle@-@1@-@READY@-@1.2.3.4@-@5".parse().unwrap();
        let execution = |reason| {
            let shard = Shard::of(&job, &fire, task.clone(), 1, FencingToken::new(7))
                .attempt(Attempt { reason, ..Attempt::FIRST });
            Execution::new(task.clone(), fire.run.clone(), vec![shard])
        };

        for reason in [RunReason::Schedule, RunReason::Trigger] {
            assert!(takes_part(&execution(reason)));
        }
        for reason in [RunReason::Misfire, RunReason::Failover, RunReason::CatchUp] {
            assert!(!takes_part(&execution(reason)));
        }
    }
}
