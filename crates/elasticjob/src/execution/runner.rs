//! The shards of one job on this instance, so many at once.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::{sync::Semaphore, task::JoinSet};
use tracing::Instrument;

use super::{
    attempt::{Rules, Surroundings, attempt},
    failure::Failure,
    guard::Guard,
    handler::Handler,
    outcome::Outcome,
};
use crate::{job::Shard, runtime::CancelReason};

/// Runs the shards of one job on this instance: all at once, up to a limit that its runs share.
///
/// The limit is what the ancestor's thread-pool types are: [`ThreadPool::limit`](crate::job::ThreadPool::limit).
pub struct Runner {
    around: Surroundings,
    slots: Arc<Semaphore>,
}

/// A shard and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The shard as it was handed in.
    pub shard: Shard,
    /// How it ended.
    pub outcome: Outcome,
}

impl Runner {
    /// At most `limit` shards at once, and at least one.
    pub fn new(around: Surroundings, limit: usize) -> Self {
        let slots = Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS));
        Self { around, slots: Arc::new(slots) }
    }

    /// Runs these shards to their end and says how each ended, in the order they were given. Without a handler all of them fail
    /// with the reason why there is none. Dropping it ends those that still run.
    pub async fn run(
        &self,
        handler: Result<Arc<dyn Handler>, Failure>,
        rules: Rules,
        shards: Vec<(Shard, Guard)>,
    ) -> Vec<Ran> {
        let handler = handler.unwrap_or_else(|failure| Arc::new(Unprepared(failure)));
        let mut running = JoinSet::new();
        let mut ran = Vec::with_capacity(shards.len());
        for (place, (shard, guard)) in shards.into_iter().enumerate() {
            // What is still here when a task is gone was ended from outside.
            let outcome = Outcome::Cancelled { reason: CancelReason::ShuttingDown };
            ran.push(Ran { shard: shard.clone(), outcome });
            let (handler, slots, around) =
                (Arc::clone(&handler), Arc::clone(&self.slots), self.around.clone());
            let span = tracing::info_span!("shard", job = %shard.job, run = %shard.run, shard = shard.item);
            let task = async move {
                // Without a slot it has not begun; told to end, it never does.
                let _slot = tokio::select! {
                    biased;
                    slot = slots.acquire_owned() => slot.ok(),
                    _ = shard.cancel().cancelled() => None,
                };
                let tried = attempt(&*handler, shard, &guard, &rules, &around);
                // What panics here is not the handler, but it must not pass for something else either.
                let outcome = AssertUnwindSafe(tried).catch_unwind().await;
                (place, outcome.unwrap_or_else(|payload| failed(&Failure::panicked(&*payload))))
            };
            running.spawn(task.instrument(span));
        }
        while let Some(ended) = running.join_next().await {
            if let Ok((place, outcome)) = ended {
                ran[place].outcome = outcome;
            }
        }
        ran
    }
}

fn failed(failure: &Failure) -> Outcome {
    Outcome::Failed { message: failure.to_string(), attempts: 1 }
}

/// What stands in for a handler that could not be made.
struct Unprepared(Failure);

#[async_trait::async_trait]
impl Handler for Unprepared {
    async fn run(&self, _: Shard) -> Result<(), Failure> {
        Err(self.0.clone().lasting())
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

    const RULES: Rules =
        Rules { timeout: None, retry: Retry::NEVER, grace: Duration::from_secs(1) };

    fn runner(limit: usize) -> Runner {
        let clock = Arc::new(ManualClock::at(Timestamp::UNIX_EPOCH));
        Runner::new(Surroundings { clock, dice: Arc::new(|| 0.5), observer: Arc::new(()) }, limit)
    }

    fn shards(count: u32) -> Vec<(Shard, Guard)> {
        (0..count).map(|item| (fixture::shard("j", item), Guard::none())).collect()
    }

    fn outcomes(ran: Vec<Ran>) -> Vec<Outcome> {
        ran.into_iter().map(|ran| ran.outcome).collect()
    }

    #[tokio::test]
    async fn all_shards_run_at_once_and_each_ends_in_its_own_way() {
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

        let failed = |message: &str| Outcome::Failed { message: message.to_owned(), attempts: 1 };
        assert_eq!(
            outcomes(ran),
            [Outcome::Done, failed("failed"), failed("panicked: boom"), Outcome::Done]
        );
    }

    #[tokio::test]
    async fn no_more_than_the_limit_run_at_once() {
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

            assert_eq!(outcomes(ran), vec![Outcome::Done; 6]);
            assert_eq!(most.load(Ordering::SeqCst), limit);
        }
    }

    #[tokio::test]
    async fn a_shard_that_waits_for_its_turn_can_be_cancelled() {
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
            _ = &mut run => unreachable!("the first has not been told"),
            () = tokio::task::yield_now() => {}
        }
        cancels[0].cancel(CancelReason::ShuttingDown);

        let reasons = [CancelReason::ShuttingDown, CancelReason::Requested];
        assert_eq!(outcomes(run.await), reasons.map(|reason| Outcome::Cancelled { reason }));
    }

    #[tokio::test]
    async fn an_observer_that_panics_fails_its_shard_and_no_other() {
        struct Picky;
        impl Observer for Picky {
            fn begins(&self, shard: &Shard) {
                assert_ne!(shard.item, 1, "not this one");
            }
            fn ended(&self, _: &Shard, _: &Outcome) {}
        }
        let mut runner = runner(2);
        runner.around.observer = Arc::new(Picky);
        let handler = Function(|_: Shard| async { Ok::<_, String>(()) });

        let outcomes = outcomes(runner.run(Ok(Arc::new(handler)), RULES, shards(3)).await);

        assert!(outcomes[0].is_done() && outcomes[1].is_failure() && outcomes[2].is_done());
    }

    #[tokio::test]
    async fn without_a_handler_every_shard_fails_and_says_why() {
        let ran = runner(2).run(Err(Failure::new("no command line")), RULES, shards(2)).await;

        let failed = Outcome::Failed { message: "no command line".into(), attempts: 1 };
        assert_eq!(outcomes(ran), [failed.clone(), failed]);
    }
}
