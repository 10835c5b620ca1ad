//! Runs the shards of one job on this instance with limited concurrency.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::{sync::Semaphore, task::JoinSet};
use tracing::Instrument;

use super::{
    attempt::{AttemptContext, AttemptPolicy, attempt},
    attempt_result::{AttemptResult, ShardResult},
    executor::{Executor, spawn_on},
    failure::Failure,
    guard::Guard,
    handler::Handler,
};
use crate::{
    job::{Outcome, Shard},
    runtime::CancelReason,
};

/// Runs the shards of one job on this instance concurrently, up to a limit that all runs of the job share.
///
/// The limit is what Java ElasticJob's thread-pool types stand for: [`ThreadPool::limit`](crate::job::ThreadPool::limit).
pub struct Runner {
    context: AttemptContext,
    slots: Arc<Semaphore>,
    /// Where shards run; without one, on the runtime of the caller.
    executor: Option<Arc<dyn Executor>>,
}

impl Runner {
    /// Runs at most `limit` shards at once, and at least one.
    pub fn new(context: AttemptContext, limit: usize) -> Self {
        let slots = Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS));
        Self { context, slots: Arc::new(slots), executor: None }
    }

    /// Runs shards on this executor, with its limit.
    pub fn on(context: AttemptContext, executor: Arc<dyn Executor>) -> Self {
        let runner = Self::new(context, executor.limit());
        Self { executor: Some(executor), ..runner }
    }

    /// Runs these shards and returns their outcomes in the order of `shards`. Without a handler, all of them fail with the failure that
    /// prevented it. Dropping the future stops the shards that still run.
    pub async fn run(
        &self,
        handler: Result<Arc<dyn Handler>, Failure>,
        rules: AttemptPolicy,
        shards: Vec<(Shard, Guard)>,
    ) -> Vec<ShardResult> {
        self.run_reporting(handler, rules, shards, |_, _| {}).await
    }

    /// Like [`run`](Self::run), and calls `report` with the index and the outcome of each shard as soon as it has ended.
    pub async fn run_reporting(
        &self,
        handler: Result<Arc<dyn Handler>, Failure>,
        rules: AttemptPolicy,
        shards: Vec<(Shard, Guard)>,
        mut report: impl FnMut(usize, Outcome) + Send,
    ) -> Vec<ShardResult> {
        let handler = handler.unwrap_or_else(|failure| Arc::new(FailingHandler(failure)));
        let mut running = JoinSet::new();
        let mut ran = Vec::with_capacity(shards.len());
        for (index, (shard, guard)) in shards.into_iter().enumerate() {
            // Stays if the task is aborted from outside.
            let aborted = AttemptResult::cancelled(CancelReason::ShuttingDown);
            ran.push(ShardResult::new(shard.clone(), aborted));
            let (handler, slots, context) =
                (Arc::clone(&handler), Arc::clone(&self.slots), self.context.clone());
            let span = tracing::info_span!("shard", job = %shard.job, run_id = %shard.run, shard = shard.item);
            let task = async move {
                // A shard that waits for a slot has not started; if it is cancelled while waiting, it never does.
                let _slot = tokio::select! {
                    biased;
                    slot = slots.acquire_owned() => slot.ok(),
                    _ = shard.cancel().cancelled() => None,
                };
                let attempts = attempt(&*handler, shard, &guard, &rules, &context);
                // `attempt` catches panics of the handler; this one comes from elsewhere, such as an observer, and fails the shard, too.
                let result = AssertUnwindSafe(attempts).catch_unwind().await;
                let failed = |payload: Box<dyn Any + Send>| {
                    AttemptResult::failed(&Failure::panicked(&*payload))
                };
                (index, result.unwrap_or_else(failed))
            };
            let task = task.instrument(span);
            match &self.executor {
                None => running.spawn(task),
                Some(executor) => {
                    let result = spawn_on(&**executor, task);
                    running.spawn(async move {
                        let dropped = || Failure::new("the executor dropped the shard");
                        result.await.unwrap_or_else(|| (index, AttemptResult::failed(&dropped())))
                    })
                }
            };
        }
        while let Some(ended) = running.join_next().await {
            if let Ok((index, AttemptResult { outcome, message, attempts })) = ended {
                report(index, outcome);
                let ran = &mut ran[index];
                (ran.outcome, ran.message, ran.attempts) = (outcome, message, attempts);
            }
        }
        ran
    }
}

/// Stands in for a handler that could not be prepared.
struct FailingHandler(Failure);

#[async_trait::async_trait]
impl Handler for FailingHandler {
    async fn run(&self, _: Shard) -> Result<(), Failure> {
        Err(self.0.clone().permanent())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use jiff::Timestamp;
    use tokio::sync::Barrier;

    use super::*;
    use crate::{
        execution::{fixture, handler::Function, observer::Observer},
        job::Retry,
        testing::ManualClock,
    };

    const RULES: AttemptPolicy =
        AttemptPolicy { timeout: None, retry: Retry::NEVER, grace: Duration::from_secs(1) };

    fn runner(limit: usize) -> Runner {
        let clock = Arc::new(ManualClock::at(Timestamp::UNIX_EPOCH));
        Runner::new(AttemptContext { clock, dice: Arc::new(|| 0.5), observer: Arc::new(()) }, limit)
    }

    fn shards(count: u32) -> Vec<(Shard, Guard)> {
        (0..count).map(|item| (fixture::shard("j", item), Guard::none())).collect()
    }

    fn results(ran: Vec<ShardResult>) -> Vec<AttemptResult> {
        let result = |ran: ShardResult| AttemptResult {
            outcome: ran.outcome,
            message: ran.message,
            attempts: ran.attempts,
        };
        ran.into_iter().map(result).collect()
    }

    fn outcomes(ran: Vec<ShardResult>) -> Vec<Outcome> {
        ran.into_iter().map(|ran| ran.outcome).collect()
    }

    #[tokio::test]
    async fn shards_run_concurrently_with_separate_outcomes() {
        let all_there = Arc::new(Barrier::new(4));
        let handler = Function(move |shard: Shard| {
            let all_there = Arc::clone(&all_there);
            async move {
                all_there.wait().await;
                match shard.item {
                    1 => Err("failed".to_owned()),
                    2 => panic!("boom"),
                    _ => Ok(()),
                }
            }
        });

        let ran = runner(4).run(Ok(Arc::new(handler)), RULES, shards(4)).await;

        let failed = |message: &str| AttemptResult::failed(&Failure::new(message));
        assert_eq!(
            results(ran),
            [
                AttemptResult::succeeded(),
                failed("failed"),
                failed("panicked: boom"),
                AttemptResult::succeeded()
            ]
        );
    }

    #[tokio::test]
    async fn concurrency_stays_within_limit() {
        for limit in [1, 2] {
            let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let seen = Arc::clone(&most);
            let handler = Function(move |_| {
                let (now, most) = (Arc::clone(&now), Arc::clone(&seen));
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    for _ in 0..10 {
                        tokio::task::yield_now().await;
                    }
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, String>(())
                }
            });

            let ran = runner(limit).run(Ok(Arc::new(handler)), RULES, shards(6)).await;

            assert_eq!(outcomes(ran), vec![Outcome::Succeeded; 6]);
            assert_eq!(most.load(Ordering::SeqCst), limit);
        }
    }

    #[tokio::test]
    async fn shard_waiting_for_a_slot_can_be_cancelled() {
        let handler = Function(|shard: Shard| async move {
            shard.cancel().cancelled().await;
            Ok::<_, String>(())
        });
        let shards = shards(2);
        let cancels: Vec<_> = shards.iter().map(|(shard, _)| shard.cancel().clone()).collect();

        cancels[1].cancel(CancelReason::Requested);
        let runner = runner(1);
        let mut run = Box::pin(runner.run(Ok(Arc::new(handler)), RULES, shards));
        tokio::select! {
            biased;
            _ = &mut run => unreachable!("the first shard is not cancelled yet"),
            () = tokio::task::yield_now() => {}
        }
        cancels[0].cancel(CancelReason::ShuttingDown);

        let reasons = [CancelReason::ShuttingDown, CancelReason::Requested];
        let [shutting_down, requested] = reasons.map(AttemptResult::cancelled);
        assert_eq!(results(run.await), [shutting_down, requested.after(0)]);
    }

    #[tokio::test]
    async fn panicking_observer_fails_only_its_shard() {
        struct PanickingObserver;
        impl Observer for PanickingObserver {
            fn attempt_started(&self, shard: &Shard) {
                assert_ne!(shard.item, 1, "panics for shard 1");
            }
            fn attempt_ended(&self, _: &Shard, _: &AttemptResult) {}
        }
        let mut runner = runner(2);
        runner.context.observer = Arc::new(PanickingObserver);
        let handler = Function(|_: Shard| async { Ok::<_, String>(()) });

        let outcomes = outcomes(runner.run(Ok(Arc::new(handler)), RULES, shards(3)).await);

        assert!(outcomes[0].is_success() && outcomes[1].is_failure() && outcomes[2].is_success());
    }

    #[tokio::test]
    async fn shards_fail_with_preparation_failure() {
        let ran = runner(2).run(Err(Failure::new("no command line")), RULES, shards(2)).await;

        let failed = AttemptResult::failed(&Failure::new("no command line"));
        assert_eq!(results(ran), [failed.clone(), failed]);
    }
}
