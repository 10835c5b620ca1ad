//! One shard, tried until it is done, or until it makes no sense to try again.
//!
//! ```text
//!            ┌─────────────── pause, if it failed or timed out and may be tried again ──────────────┐
//!            ▼                                                                                      │
//!   may it run? ── handler ──┬── returns ──────────────────────────────▶ Done │ Failed ─────────────┤
//!     │      │               ├── panics ───────────────────────────────▶ Failed ────────────────────┤
//!     │      │               ├── timeout ──▶ told, grace, dropped ─────▶ TimedOut ──────────────────┘
//!     │      │               ├── cancel ───▶ told, grace, dropped ─────▶ Cancelled
//!     │      └ lease lost    └── a poll after the lease ───────────────▶ Fenced
//!     └ cancelled
//! ```
//!
//! * The timeout counts for each attempt; the waits in between do not count.
//! * Being told is [`Shard::cancel`]. A handler that returns after it was told counts as cancelled whatever it returned: one that ends
//!   early because it was told often returns `Ok`.
//! * Whatever ends when the lease is gone is [`Outcome::Fenced`], unless the job says that it may happen twice.
//! * A panic fails its attempt and nothing else, also one while the handler is dropped.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;

use super::{
    failure::Failure,
    guard::{Guard, Lost, guarded},
    handler::Handler,
    observer::Observer,
    outcome::Outcome,
};
use crate::{
    job::{Backoff, Job, Reason, Retry, Shard},
    runtime::{Cancel, CancelReason, Clock, Monotonic},
};

/// How long a handler that was told to end may take before it is dropped.
const GRACE: Duration = Duration::from_secs(10);

/// How often to look whether the lease of a handler that is to end is still there.
const LOOK: Duration = Duration::from_millis(100);

/// How a shard is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// How often to try, and how long to wait in between.
    pub retry: Retry,
    /// How long a handler that was told to end may take before it is dropped.
    pub grace: Duration,
}

impl Rules {
    /// What this job says.
    pub fn of(job: &Job) -> Self {
        let policies = job.props.policies();
        Self { timeout: policies.timeout, retry: policies.retry, grace: GRACE }
    }
}

/// What an attempt needs from its surroundings.
#[derive(Clone)]
pub struct Surroundings {
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// A number from zero up to one, another each time.
    pub dice: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// Who wants to know about every attempt.
    pub observer: Arc<dyn Observer>,
}

/// Tries a shard until it is done, or until it makes no sense to try again.
pub async fn attempt(
    handler: &dyn Handler,
    mut shard: Shard,
    guard: &Guard,
    rules: &Rules,
    around: &Surroundings,
) -> Outcome {
    let (mut attempts, mut last) = (0_u32, None);
    loop {
        // What may go on without a lease may do that; to begin anew is something else.
        if !guard.holds() {
            return last.filter(|_| guard.counts()).unwrap_or(Outcome::Fenced);
        }
        if let Some(reason) = shard.cancel().reason() {
            return last.unwrap_or(Outcome::Cancelled { reason });
        }
        attempts = attempts.saturating_add(1);
        around.observer.begins(&shard);
        let end = once(handler, shard.clone(), guard, rules, &*around.clock).await;
        let (outcome, again) = end.judge(guard, rules, attempts);
        around.observer.ended(&shard, &outcome);
        if !again {
            return outcome;
        }
        last = Some(outcome);
        let pause = pause(rules.retry.backoff, attempts, (around.dice)());
        tokio::select! {
            biased;
            () = around.clock.sleep_until(around.clock.monotonic() + pause) => {}
            _ = shard.cancel().cancelled() => {}
        }
        let next = shard.attempt.next(Reason::Retry);
        shard = shard.attempt(next);
    }
}

/// How long to wait after so many failed attempts: between half of what the policy says and all of it, so that shards that failed
/// together do not come back together.
pub fn pause(backoff: Backoff, failed: u32, random: f64) -> Duration {
    backoff.after(failed).mul_f64(0.5 + 0.5 * random.clamp(0.0, 1.0))
}

/// How one attempt ended.
enum End {
    Returned(Result<(), Failure>),
    Told(CancelReason),
    Lost,
}

impl End {
    /// What that means, and whether to try again.
    fn judge(self, guard: &Guard, rules: &Rules, attempts: u32) -> (Outcome, bool) {
        let left = attempts < rules.retry.max_attempts.get();
        if matches!(self, Self::Lost) || !guard.counts() {
            return (Outcome::Fenced, false);
        }
        match self {
            Self::Returned(Ok(())) | Self::Lost => (Outcome::Done, false),
            Self::Returned(Err(failure)) => {
                let again = left && !failure.is_lasting();
                (Outcome::Failed { message: failure.to_string(), attempts }, again)
            }
            Self::Told(CancelReason::TimedOut) => {
                (Outcome::TimedOut { limit: rules.timeout.unwrap_or_default(), attempts }, left)
            }
            Self::Told(reason) => (Outcome::Cancelled { reason }, false),
        }
    }
}

async fn once(
    handler: &dyn Handler,
    shard: Shard,
    guard: &Guard,
    rules: &Rules,
    clock: &dyn Clock,
) -> End {
    let from_outside = shard.cancel().clone();
    // Not a child: what returns before it was told by us returned on its own.
    let told = Cancel::new();
    let run = guarded(handler.run(shard.cancelled_by(told.clone())), || guard.lets_run());
    let mut run = Box::pin(AssertUnwindSafe(run).catch_unwind());

    let too_late = rules.timeout.map(|timeout| clock.monotonic() + timeout);
    let reason = tokio::select! {
        biased;
        end = &mut run => return returned(end),
        () = reached(clock, too_late) => CancelReason::TimedOut,
        reason = from_outside.cancelled() => reason,
    };
    told.cancel(reason);

    let patience = handler.ends_when_dropped().then(|| clock.monotonic() + rules.grace);
    let end = tokio::select! {
        biased;
        end = &mut run => Some(returned(end)),
        () = reached(clock, patience) => None,
        () = lost(guard, clock), if reason == CancelReason::LeaseLost => Some(End::Lost),
    };
    // A panic while it is dropped is not worth more than one while it runs.
    let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(run)));
    match end {
        Some(End::Lost) => End::Lost,
        _ => End::Told(reason),
    }
}

fn returned(end: Result<Result<Result<(), Failure>, Lost>, Box<dyn std::any::Any + Send>>) -> End {
    match end {
        Ok(Ok(result)) => End::Returned(result),
        Ok(Err(Lost)) => End::Lost,
        Err(payload) => End::Returned(Err(Failure::panicked(&*payload))),
    }
}

async fn reached(clock: &dyn Clock, deadline: Option<Monotonic>) {
    match deadline {
        Some(deadline) => clock.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits until the lease is gone. Only a poll would notice, and a handler that waits for something is not polled.
async fn lost(guard: &Guard, clock: &dyn Clock) {
    while guard.lets_run() {
        clock.sleep_until(clock.monotonic() + LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Mutex,
            atomic::{AtomicBool, AtomicU32, Ordering},
        },
    };

    use jiff::Timestamp;

    use super::*;
    use crate::{
        execution::{fixture, handler::Function},
        job::LeaseLoss,
        testing::ManualClock,
    };

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Default)]
    struct Seen(Mutex<Vec<String>>);

    impl Observer for Seen {
        fn begins(&self, shard: &Shard) {
            self.0.lock().unwrap().push(format!("{} begins", shard.attempt.number));
        }

        fn ended(&self, shard: &Shard, outcome: &Outcome) {
            self.0.lock().unwrap().push(format!("{} {outcome}", shard.attempt.number));
        }
    }

    /// A clock turned by hand, and one shard tried under it.
    struct Bench {
        clock: ManualClock,
        rules: Rules,
        guard: Guard,
        shard: Shard,
        seen: Arc<Seen>,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                clock: ManualClock::at(Timestamp::UNIX_EPOCH),
                rules: Rules { timeout: None, retry: Retry::NEVER, grace: 5 * SECOND },
                guard: Guard::none(),
                shard: fixture::shard("j", 1),
                seen: Arc::default(),
            }
        }

        fn attempts(mut self, attempts: u32) -> Self {
            self.rules.retry = Retry::attempts(attempts).backoff(4 * SECOND, 60 * SECOND);
            self
        }

        fn timeout(mut self, timeout: Duration) -> Self {
            self.rules.timeout = Some(timeout);
            self
        }

        fn attempt<F, Fut>(&self, function: F) -> impl Future<Output = Outcome> + use<F, Fut>
        where
            F: Fn(Shard) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<(), Failure>> + Send + 'static,
        {
            self.attempt_by(Function(function))
        }

        fn attempt_by<H: Handler>(&self, handler: H) -> impl Future<Output = Outcome> + use<H> {
            let around = Surroundings {
                clock: Arc::new(self.clock.clone()),
                dice: Arc::new(|| 1.0),
                observer: Arc::clone(&self.seen) as Arc<dyn Observer>,
            };
            let (shard, guard, rules) = (self.shard.clone(), self.guard.clone(), self.rules);
            async move { attempt(&handler, shard, &guard, &rules, &around).await }
        }

        fn seen(&self) -> Vec<String> {
            self.seen.0.lock().unwrap().clone()
        }
    }

    /// Polls once; the future must not be over.
    fn wait(future: &mut (impl Future<Output = Outcome> + Unpin)) {
        assert_eq!(future.now_or_never(), None);
    }

    #[tokio::test]
    async fn a_shard_that_fails_is_tried_again_after_a_pause_that_doubles() {
        let bench = Bench::new().attempts(3);
        let mut run = Box::pin(bench.attempt(async |_| Err(Failure::new("no"))));

        wait(&mut run);
        bench.clock.advance(3 * SECOND);
        wait(&mut run);
        assert_eq!(bench.seen(), ["1 begins", "1 no"]);
        bench.clock.advance(SECOND);
        wait(&mut run);
        assert_eq!(bench.seen()[2..], ["2 begins", "2 no"]);
        bench.clock.advance(8 * SECOND);

        assert_eq!(run.await, Outcome::Failed { message: "no".into(), attempts: 3 });
    }

    #[tokio::test]
    async fn a_failure_that_lasts_is_not_tried_again() {
        let bench = Bench::new().attempts(3);

        let outcome = bench.attempt(async |_| Err(Failure::new("no such file").lasting())).await;

        assert_eq!(outcome, Outcome::Failed { message: "no such file".into(), attempts: 1 });
    }

    #[tokio::test]
    async fn a_panic_fails_the_shard_and_is_told() {
        let bench = Bench::new();

        let outcome = bench.attempt(async |shard| panic!("shard {} is odd", shard.item)).await;

        assert_eq!(
            outcome,
            Outcome::Failed { message: "panicked: shard 1 is odd".into(), attempts: 1 }
        );
    }

    #[tokio::test]
    async fn an_attempt_that_takes_too_long_is_told_then_dropped_then_tried_again() {
        let bench = Bench::new().attempts(2).timeout(30 * SECOND);
        let tries = AtomicU32::new(0);
        let told = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&told);
        let mut run = Box::pin(bench.attempt(move |shard: Shard| {
            let first = tries.fetch_add(1, Ordering::SeqCst) == 0;
            let told = Arc::clone(&seen);
            async move {
                if first {
                    *told.lock().unwrap() = Some(shard.cancel().cancelled().await);
                    pending::<()>().await;
                }
                Ok(())
            }
        }));

        wait(&mut run);
        bench.clock.advance(30 * SECOND);
        wait(&mut run);
        assert_eq!(*told.lock().unwrap(), Some(CancelReason::TimedOut));
        bench.clock.advance(5 * SECOND);
        wait(&mut run);
        assert_eq!(bench.seen(), ["1 begins", "1 took longer than 30s"]);
        bench.clock.advance(4 * SECOND);

        assert_eq!(
            run.await,
            Outcome::Done,
            "the second attempt has a timeout of its own, and was not cancelled"
        );
    }

    #[tokio::test]
    async fn what_ends_because_it_was_told_is_cancelled_even_if_it_says_it_is_well() {
        let bench = Bench::new().attempts(3);
        let mut run = Box::pin(bench.attempt(async |shard| {
            shard.cancel().cancelled().await;
            Ok(())
        }));
        wait(&mut run);

        bench.shard.cancel().cancel(CancelReason::Requested);

        assert_eq!(run.await, Outcome::Cancelled { reason: CancelReason::Requested });
    }

    #[tokio::test]
    async fn whoever_does_not_listen_is_dropped_after_the_grace() {
        let bench = Bench::new();
        let kept = Arc::new(());
        let inside = Arc::clone(&kept);
        let mut run = Box::pin(bench.attempt(move |_| {
            let inside = Arc::clone(&inside);
            async move {
                pending::<()>().await;
                drop(inside);
                Ok(())
            }
        }));
        wait(&mut run);
        assert_eq!(Arc::strong_count(&kept), 3);

        bench.shard.cancel().cancel(CancelReason::ShuttingDown);
        wait(&mut run);
        bench.clock.advance(5 * SECOND);

        assert_eq!(run.await, Outcome::Cancelled { reason: CancelReason::ShuttingDown });
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[tokio::test]
    async fn a_panic_while_it_is_dropped_is_caught() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let bench = Bench::new();
        let mut run = Box::pin(bench.attempt(async |_| {
            let _bomb = Bomb;
            pending().await
        }));
        wait(&mut run);

        bench.shard.cancel().cancel(CancelReason::Requested);
        wait(&mut run);
        bench.clock.advance(5 * SECOND);

        assert_eq!(run.await, Outcome::Cancelled { reason: CancelReason::Requested });
    }

    #[tokio::test]
    async fn what_cannot_be_stopped_counts_as_running_until_it_returns() {
        struct Stubborn(Arc<tokio::sync::Notify>);
        #[async_trait::async_trait]
        impl Handler for Stubborn {
            async fn run(&self, _: Shard) -> Result<(), Failure> {
                self.0.notified().await;
                Ok(())
            }
            fn ends_when_dropped(&self) -> bool {
                false
            }
        }
        let bench = Bench::new().timeout(SECOND);
        let end = Arc::new(tokio::sync::Notify::new());
        let mut run = Box::pin(bench.attempt_by(Stubborn(Arc::clone(&end))));
        wait(&mut run);

        bench.clock.advance(3600 * SECOND);
        wait(&mut run);
        bench.clock.advance(3600 * SECOND);
        wait(&mut run);
        end.notify_one();

        assert_eq!(run.await, Outcome::TimedOut { limit: SECOND, attempts: 1 });
    }

    #[tokio::test]
    async fn a_shard_cancelled_while_it_waits_for_its_next_attempt_has_failed() {
        let bench = Bench::new().attempts(3);
        let mut run = Box::pin(bench.attempt(async |_| Err(Failure::new("no"))));
        wait(&mut run);

        bench.shard.cancel().cancel(CancelReason::ShuttingDown);

        assert_eq!(run.await, Outcome::Failed { message: "no".into(), attempts: 1 });
    }

    #[tokio::test]
    async fn what_is_cancelled_before_it_begins_does_not_begin() {
        let bench = Bench::new();
        bench.shard.cancel().cancel(CancelReason::Requested);

        let outcome = bench.attempt(async |_| Ok(())).await;

        assert_eq!(outcome, Outcome::Cancelled { reason: CancelReason::Requested });
        assert!(bench.seen().is_empty());
    }

    /// A lease that ends when told to.
    fn lease(policy: LeaseLoss) -> (Arc<AtomicBool>, Guard) {
        let holds = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&holds);
        (holds, Guard::new(policy, move || seen.load(Ordering::SeqCst)))
    }

    #[tokio::test]
    async fn what_ends_after_its_lease_is_fenced_unless_it_may_happen_twice() {
        for (policy, told) in [
            (LeaseLoss::Cancel, Outcome::Fenced),
            (LeaseLoss::FinishFenced, Outcome::Fenced),
            (LeaseLoss::Continue, Outcome::Done),
        ] {
            let mut bench = Bench::new();
            let (holds, guard) = lease(policy);
            bench.guard = guard;
            let (go, gone) = tokio::sync::oneshot::channel::<()>();
            let gone = Arc::new(Mutex::new(Some(gone)));
            let finished = Arc::new(AtomicBool::new(false));
            let inside = Arc::clone(&finished);
            let mut run = Box::pin(bench.attempt(move |_| {
                let (gone, finished) = (gone.lock().unwrap().take().unwrap(), Arc::clone(&inside));
                async move {
                    gone.await?;
                    finished.store(true, Ordering::SeqCst);
                    Ok(())
                }
            }));
            wait(&mut run);

            holds.store(false, Ordering::SeqCst);
            go.send(()).unwrap();

            assert_eq!(run.await, told, "{policy}");
            assert_eq!(finished.load(Ordering::SeqCst), policy != LeaseLoss::Cancel, "{policy}");
        }
    }

    #[tokio::test]
    async fn a_lost_lease_ends_a_handler_that_nobody_wakes() {
        let mut bench = Bench::new();
        let (holds, guard) = lease(LeaseLoss::Cancel);
        bench.guard = guard;
        let mut run = Box::pin(bench.attempt(async |_| pending().await));
        wait(&mut run);

        bench.shard.cancel().cancel(CancelReason::LeaseLost);
        wait(&mut run);
        holds.store(false, Ordering::SeqCst);
        bench.clock.advance(LOOK);

        assert_eq!(run.await, Outcome::Fenced);
    }

    #[tokio::test]
    async fn nothing_is_tried_again_without_a_lease() {
        let mut bench = Bench::new().attempts(3);
        let (holds, guard) = lease(LeaseLoss::FinishFenced);
        bench.guard = guard;
        let mut run = Box::pin(bench.attempt(async |_| Err(Failure::new("no"))));
        wait(&mut run);

        holds.store(false, Ordering::SeqCst);
        bench.clock.advance(4 * SECOND);

        assert_eq!(run.await, Outcome::Fenced);
        assert_eq!(bench.seen(), ["1 begins", "1 no"]);
    }

    #[test]
    fn a_pause_is_between_half_and_all_of_what_the_policy_says() {
        let millis = |failed, random| pause(Backoff::DEFAULT, failed, random).as_millis();

        assert_eq!(
            [millis(1, 0.0), millis(1, 1.0), millis(3, 0.5), millis(99, 1.0)],
            [500, 1000, 3000, 60_000]
        );
    }
}
