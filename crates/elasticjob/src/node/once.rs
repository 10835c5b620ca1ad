//! Listeners that are called once for every fire: this instance's part in it.
//!
//! Meeting the others is [`barrier`](crate::coordination::barrier)'s affair, calling the listener is
//! [`execution`](crate::execution)'s; here the one is put around the other. What makes up for something — a missed fire, a dead instance — meets nobody:
//! the others are at their own runs, and would never come.

use std::sync::Arc;

use super::run::Run;
use crate::{
    coordination::{
        barrier::{Arrival, Barrier, BarrierError, Gate},
        tree::JobTree,
    },
    execution::{Execution, Failure, OnceListener, OnceListeners},
    job::Reason,
    runtime::{Cancel, CancelReason, Randomness},
};

/// A job's once-listeners, and what meeting takes.
#[derive(Clone)]
pub(super) struct Once {
    listeners: Arc<OnceListeners>,
    randomness: Arc<dyn Randomness>,
}

impl Once {
    pub(super) fn new(
        listeners: Vec<Arc<dyn OnceListener>>,
        randomness: &Arc<dyn Randomness>,
    ) -> Self {
        Self {
            listeners: Arc::new(OnceListeners::new(listeners)),
            randomness: Arc::clone(randomness),
        }
    }

    /// For a run that is not of the whole job: it meets nobody.
    pub(super) fn nobody(&self) -> Self {
        Self { listeners: Arc::default(), randomness: Arc::clone(&self.randomness) }
    }

    /// Returns when every shard of this fire is about to run and the listeners have been called, here or elsewhere. Waiting takes time:
    /// the lease has to be kept meanwhile.
    pub(super) async fn before(
        &self,
        run: &Run,
        execution: &Execution,
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        // Boxed: it is large and rare, and every run would carry the room for it.
        Box::pin(self.meet(run, execution, cancel, Gate::Started)).await
    }

    /// The same when every shard has ended.
    pub(super) async fn after(
        &self,
        run: &Run,
        execution: &Execution,
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        Box::pin(self.meet(run, execution, cancel, Gate::Completed)).await
    }

    async fn meet(
        &self,
        run: &Run,
        execution: &Execution,
        cancel: &Cancel,
        gate: Gate,
    ) -> Result<(), Failure> {
        if self.listeners.is_empty() || !takes_part(execution) {
            return Ok(());
        }
        let (Some(shard), false) = (execution.shards.first(), is_lost(cancel)) else {
            // What ran without a lease is not ours to report.
            return Ok(());
        };
        let arrival = Arrival {
            run: execution.run.clone(),
            due_at: shard.due_at,
            shards: execution.shards.iter().map(|shard| shard.item).collect(),
            total: shard.total.get(),
        };
        let barrier = Barrier {
            tree: JobTree::new(run.registry.namespace(), &run.job.name)?,
            registry: Arc::clone(&run.registry),
            clock: Arc::clone(&run.clock),
        };
        let patience = match gate {
            Gate::Started => self.listeners.started_timeout(),
            Gate::Completed => self.listeners.completed_timeout(),
        };
        let ticket = self.randomness.bits();
        let mut round = barrier.register(gate, arrival, ticket, patience).await?;
        match round.all(cancel).await {
            Ok(None) => Ok(()),
            Ok(Some(last)) => {
                let called = tokio::select! {
                    called = self.call(run, execution, gate) => called,
                    reason = cancel.cancelled() => Err(BarrierError::Cancelled(reason).into()),
                };
                let finished = last.finish().await;
                called.and(finished.map_err(Failure::from))
            }
            // That somebody cancelled it is nothing to tell. What has ended has ended: the others may know it.
            Err(BarrierError::Cancelled(_)) => {
                if gate == Gate::Started || is_lost(cancel) {
                    round.withdraw().await;
                }
                Ok(())
            }
            Err(error) => {
                round.withdraw().await;
                Err(error.into())
            }
        }
    }

    async fn call(&self, run: &Run, execution: &Execution, gate: Gate) -> Result<(), Failure> {
        match gate {
            Gate::Started => self.listeners.before(execution, &*run.clock).await,
            Gate::Completed => self.listeners.after(execution, &*run.clock).await,
        }
    }
}

/// Whether the other shards of the fire will be there, too: not when this makes up for what was missed, or for an instance that died.
fn takes_part(execution: &Execution) -> bool {
    execution.shards.iter().all(|shard| shard.attempt.reason == Reason::Due)
}

fn is_lost(cancel: &Cancel) -> bool {
    cancel.reason() == Some(CancelReason::LeaseLost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Attempt, FencingToken, Fire, Job, Shard, TaskId};

    #[test]
    fn what_makes_up_for_something_meets_nobody() {
        let job = Job::named("settle").unwrap().shards(2);
        let fire = Fire::scheduled(job.name.clone(), jiff::Timestamp::UNIX_EPOCH);
        let task: TaskId = "settle@-@1@-@READY@-@1.2.3.4@-@5".parse().unwrap();
        let execution = |reason| {
            let shard = Shard::of(&job, &fire, task.clone(), 1, FencingToken::new(7))
                .attempt(Attempt { reason, ..Attempt::FIRST });
            Execution::new(task.clone(), fire.run.clone(), vec![shard])
        };

        assert!(takes_part(&execution(Reason::Due)));
        for reason in [Reason::Misfire, Reason::Failover, Reason::CatchUp] {
            assert!(!takes_part(&execution(reason)));
        }
    }
}
