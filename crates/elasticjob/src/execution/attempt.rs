//! Tries one shard until it succeeds or another attempt makes no sense.
//!
//! ```text
//!            ┌─────────────── delay, if it failed or timed out and attempts are left ───────────────┐
//!            ▼                                                                                      │
//!   may it run? ── handler ──┬── returns ──────────────────────────────▶ Succeeded │ Failed ────────┤
//!     │      │               ├── panics ───────────────────────────────▶ Failed ────────────────────┤
//!     │      │               ├── timeout ──▶ cancel, grace, drop ──────▶ TimedOut ──────────────────┘
//!     │      │               ├── cancel ───▶ cancel, grace, drop ──────▶ Cancelled
//!     │      └ lease lost    └── a poll after the lease ───────────────▶ Fenced
//!     └ cancelled
//! ```
//!
//! * The timeout applies to each attempt; the delays in between do not count.
//! * A handler is cancelled through [`Shard::cancel`]. A handler that returns after that counts as cancelled whatever it returned: one that
//!   stops early often returns `Ok`.
//! * An attempt that ends after the lease was lost is [`Outcome::Fenced`](crate::job::Outcome::Fenced), unless the job's policy allows running twice.
//! * A panic fails its attempt and nothing else, even if it happens while the handler is dropped.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;

use super::{
    attempt_result::AttemptResult,
    failure::Failure,
    guard::{Guard, LeaseLost, guarded},
    handler::Handler,
    observer::Observer,
};
use crate::{
    job::{Backoff, Job, Retry, RunReason, Shard},
    runtime::{CancelReason, CancelToken, Clock, Monotonic},
};

/// How long a cancelled handler may take to return before it is dropped.
const GRACE: Duration = Duration::from_secs(10);

/// How often to check the lease of a handler that was cancelled because of it.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Timeout, retries and grace of a shard's attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptPolicy {
    /// Limit for one attempt.
    pub timeout: Option<Duration>,
    /// Number of attempts, and the delay in between.
    pub retry: Retry,
    /// How long a cancelled handler may take to return before it is dropped.
    pub grace: Duration,
}

impl AttemptPolicy {
    /// The rules that the job's policies set.
    pub fn of(job: &Job) -> Self {
        let policies = job.props.policies();
        Self { timeout: policies.timeout, retry: policies.retry, grace: GRACE }
    }
}

/// What attempts need from their environment.
#[derive(Clone)]
pub struct AttemptContext {
    pub clock: Arc<dyn Clock>,
    /// Returns a random number from zero up to one.
    pub dice: Arc<dyn Fn() -> f64 + Send + Sync>,
    pub observer: Arc<dyn Observer>,
}

/// Runs attempts of a shard until one succeeds or another makes no sense.
pub async fn attempt(
    handler: &dyn Handler,
    mut shard: Shard,
    guard: &Guard,
    rules: &AttemptPolicy,
    context: &AttemptContext,
) -> AttemptResult {
    let (mut attempts, mut last) = (0_u32, None::<AttemptResult>);
    loop {
        // A policy may let a running attempt finish without a lease; a new attempt always needs one.
        if !guard.holds() {
            return last
                .filter(|_| guard.outcome_counts())
                .unwrap_or_else(|| AttemptResult::fenced().after(attempts));
        }
        if let Some(reason) = shard.cancel().reason() {
            return last.unwrap_or_else(|| AttemptResult::cancelled(reason).after(attempts));
        }
        attempts = attempts.saturating_add(1);
        context.observer.attempt_started(&shard);
        let end = run_attempt(handler, shard.clone(), guard, rules, &*context.clock).await;
        let (result, again) = end.into_result(guard, rules, attempts);
        context.observer.attempt_ended(&shard, &result);
        if !again {
            return result;
        }
        last = Some(result);
        let pause = retry_delay(rules.retry.backoff, attempts, (context.dice)());
        tokio::select! {
            biased;
            () = context.clock.sleep_until(context.clock.monotonic() + pause) => {}
            _ = shard.cancel().cancelled() => {}
        }
        let next = shard.attempt.next(RunReason::Retry);
        shard = shard.attempt(next);
    }
}

/// Delay before the next attempt: between half of the policy's backoff and all of it, so that shards that failed together do not retry
/// together.
pub fn retry_delay(backoff: Backoff, failed: u32, random: f64) -> Duration {
    backoff.after(failed).mul_f64(0.5 + 0.5 * random.clamp(0.0, 1.0))
}

/// How one attempt ended, before the guard and the retry policy are considered.
enum AttemptEnd {
    Returned(Result<(), Failure>),
    Cancelled(CancelReason),
    LeaseLost,
}

impl AttemptEnd {
    /// The result, and whether to try again.
    fn into_result(
        self,
        guard: &Guard,
        rules: &AttemptPolicy,
        attempts: u32,
    ) -> (AttemptResult, bool) {
        let left = attempts < rules.retry.max_attempts.get();
        if matches!(self, Self::LeaseLost) || !guard.outcome_counts() {
            return (AttemptResult::fenced().after(attempts), false);
        }
        let (result, again) = match self {
            Self::Returned(Ok(())) | Self::LeaseLost => (AttemptResult::succeeded(), false),
            Self::Returned(Err(failure)) => {
                let again = left && !failure.is_permanent();
                (AttemptResult::failed(&failure), again)
            }
            Self::Cancelled(CancelReason::TimedOut) => {
                (AttemptResult::timed_out(rules.timeout.unwrap_or_default()), left)
            }
            Self::Cancelled(reason) => (AttemptResult::cancelled(reason), false),
        };
        (result.after(attempts), again)
    }
}

async fn run_attempt(
    handler: &dyn Handler,
    shard: Shard,
    guard: &Guard,
    rules: &AttemptPolicy,
    clock: &dyn Clock,
) -> AttemptEnd {
    let from_outside = shard.cancel().clone();
    // Not a child of the shard's own: a handler that returns before this function cancels it counts as returned.
    let cancel = CancelToken::new();
    let run = guarded(handler.run(shard.cancelled_by(cancel.clone())), || guard.may_poll());
    let mut run = Box::pin(AssertUnwindSafe(run).catch_unwind());

    let deadline = rules.timeout.map(|timeout| clock.monotonic() + timeout);
    let reason = tokio::select! {
        biased;
        end = &mut run => return returned(end),
        () = deadline_reached(clock, deadline) => CancelReason::TimedOut,
        reason = from_outside.cancelled() => reason,
    };
    cancel.cancel(reason);

    let drop_at = handler.ends_when_dropped().then(|| clock.monotonic() + rules.grace);
    let end = tokio::select! {
        biased;
        end = &mut run => Some(returned(end)),
        () = deadline_reached(clock, drop_at) => None,
        () = lease_lost(guard, clock), if reason == CancelReason::LeaseLost => Some(AttemptEnd::LeaseLost),
    };
    // A panic in a destructor must not fail more than this attempt.
    let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(run)));
    match end {
        Some(AttemptEnd::LeaseLost) => AttemptEnd::LeaseLost,
        _ => AttemptEnd::Cancelled(reason),
    }
}

fn returned(
    end: Result<Result<Result<(), Failure>, LeaseLost>, Box<dyn std::any::Any + Send>>,
) -> AttemptEnd {
    match end {
        Ok(Ok(result)) => AttemptEnd::Returned(result),
        Ok(Err(LeaseLost)) => AttemptEnd::LeaseLost,
        Err(payload) => AttemptEnd::Returned(Err(Failure::panicked(&*payload))),
    }
}

async fn deadline_reached(clock: &dyn Clock, deadline: Option<Monotonic>) {
    match deadline {
        Some(deadline) => clock.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits until the lease is lost. The guard notices that only when polled, and a handler that waits for something is not polled.
async fn lease_lost(guard: &Guard, clock: &dyn Clock) {
    while guard.may_poll() {
        clock.sleep_until(clock.monotonic() + LEASE_CHECK_INTERVAL).await;
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

    fn failed(message: &str, attempts: u32) -> AttemptResult {
        AttemptResult::failed(&Failure::new(message)).after(attempts)
    }

    #[derive(Default)]
    struct RecordingObserver(Mutex<Vec<String>>);

    impl Observer for RecordingObserver {
        fn attempt_started(&self, shard: &Shard) {
            self.0.lock().unwrap().push(format!("{} started", shard.attempt.number));
        }

        fn attempt_ended(&self, shard: &Shard, result: &AttemptResult) {
            self.0.lock().unwrap().push(format!("{} {result}", shard.attempt.number));
        }
    }

    /// Runs attempts of one shard under a manual clock.
    struct Fixture {
        clock: ManualClock,
        rules: AttemptPolicy,
        guard: Guard,
        shard: Shard,
        seen: Arc<RecordingObserver>,
    }

    impl Fixture {
        fn new() -> Self {
            Self {
                clock: ManualClock::at(Timestamp::UNIX_EPOCH),
                rules: AttemptPolicy { timeout: None, retry: Retry::NEVER, grace: 5 * SECOND },
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

        fn attempt<F, Fut>(&self, function: F) -> impl Future<Output = AttemptResult> + use<F, Fut>
        where
            F: Fn(Shard) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<(), Failure>> + Send + 'static,
        {
            self.attempt_by(Function(function))
        }

        fn attempt_by<H: Handler>(
            &self,
            handler: H,
        ) -> impl Future<Output = AttemptResult> + use<H> {
            let context = AttemptContext {
                clock: Arc::new(self.clock.clone()),
                dice: Arc::new(|| 1.0),
                observer: Arc::clone(&self.seen) as Arc<dyn Observer>,
            };
            let (shard, guard, rules) = (self.shard.clone(), self.guard.clone(), self.rules);
            async move { attempt(&handler, shard, &guard, &rules, &context).await }
        }

        fn seen(&self) -> Vec<String> {
            self.seen.0.lock().unwrap().clone()
        }
    }

    /// Polls once and asserts that the future is pending.
    fn wait(future: &mut (impl Future<Output = AttemptResult> + Unpin)) {
        assert_eq!(future.now_or_never(), None);
    }

    #[tokio::test]
    async fn failed_shard_is_retried_with_doubling_delay() {
        let fixture = Fixture::new().attempts(3);
        let mut run = Box::pin(fixture.attempt(async |_| Err(Failure::new("no"))));

        wait(&mut run);
        fixture.clock.advance(3 * SECOND);
        wait(&mut run);
        assert_eq!(fixture.seen(), ["1 started", "1 no"]);
        fixture.clock.advance(SECOND);
        wait(&mut run);
        assert_eq!(fixture.seen()[2..], ["2 started", "2 no"]);
        fixture.clock.advance(8 * SECOND);

        assert_eq!(run.await, failed("no", 3));
    }

    #[tokio::test]
    async fn permanent_failure_is_not_retried() {
        let fixture = Fixture::new().attempts(3);

        let outcome =
            fixture.attempt(async |_| Err(Failure::new("no such file").permanent())).await;

        assert_eq!(outcome, failed("no such file", 1));
    }

    #[tokio::test]
    async fn panic_fails_shard_with_its_message() {
        let fixture = Fixture::new();

        let outcome = fixture.attempt(async |shard| panic!("shard {} is odd", shard.item)).await;

        assert_eq!(outcome, failed("panicked: shard 1 is odd", 1));
    }

    #[tokio::test]
    async fn timed_out_attempt_is_cancelled_dropped_and_retried() {
        let fixture = Fixture::new().attempts(2).timeout(30 * SECOND);
        let calls = AtomicU32::new(0);
        let cancelled = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&cancelled);
        let mut run = Box::pin(fixture.attempt(move |shard: Shard| {
            let first = calls.fetch_add(1, Ordering::SeqCst) == 0;
            let cancelled = Arc::clone(&seen);
            async move {
                if first {
                    *cancelled.lock().unwrap() = Some(shard.cancel().cancelled().await);
                    pending::<()>().await;
                }
                Ok(())
            }
        }));

        wait(&mut run);
        fixture.clock.advance(30 * SECOND);
        wait(&mut run);
        assert_eq!(*cancelled.lock().unwrap(), Some(CancelReason::TimedOut));
        fixture.clock.advance(5 * SECOND);
        wait(&mut run);
        assert_eq!(fixture.seen(), ["1 started", "1 took longer than 30s"]);
        fixture.clock.advance(4 * SECOND);

        assert_eq!(
            run.await,
            AttemptResult::succeeded().after(2),
            "the second attempt has its own timeout and is not cancelled"
        );
    }

    #[tokio::test]
    async fn cancelled_handler_counts_as_cancelled_even_if_it_returns_ok() {
        let fixture = Fixture::new().attempts(3);
        let mut run = Box::pin(fixture.attempt(async |shard| {
            shard.cancel().cancelled().await;
            Ok(())
        }));
        wait(&mut run);

        fixture.shard.cancel().cancel(CancelReason::Requested);

        assert_eq!(run.await, AttemptResult::cancelled(CancelReason::Requested));
    }

    #[tokio::test]
    async fn handler_ignoring_cancellation_is_dropped_after_grace() {
        let fixture = Fixture::new();
        let alive = Arc::new(());
        let inside = Arc::clone(&alive);
        let mut run = Box::pin(fixture.attempt(move |_| {
            let inside = Arc::clone(&inside);
            async move {
                pending::<()>().await;
                drop(inside);
                Ok(())
            }
        }));
        wait(&mut run);
        assert_eq!(Arc::strong_count(&alive), 3);

        fixture.shard.cancel().cancel(CancelReason::ShuttingDown);
        wait(&mut run);
        fixture.clock.advance(5 * SECOND);

        assert_eq!(run.await, AttemptResult::cancelled(CancelReason::ShuttingDown));
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[tokio::test]
    async fn panic_while_dropping_handler_is_caught() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let fixture = Fixture::new();
        let mut run = Box::pin(fixture.attempt(async |_| {
            let _bomb = Bomb;
            pending().await
        }));
        wait(&mut run);

        fixture.shard.cancel().cancel(CancelReason::Requested);
        wait(&mut run);
        fixture.clock.advance(5 * SECOND);

        assert_eq!(run.await, AttemptResult::cancelled(CancelReason::Requested));
    }

    #[tokio::test]
    async fn unstoppable_handler_counts_as_running_until_it_returns() {
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
        let fixture = Fixture::new().timeout(SECOND);
        let end = Arc::new(tokio::sync::Notify::new());
        let mut run = Box::pin(fixture.attempt_by(Stubborn(Arc::clone(&end))));
        wait(&mut run);

        fixture.clock.advance(3600 * SECOND);
        wait(&mut run);
        fixture.clock.advance(3600 * SECOND);
        wait(&mut run);
        end.notify_one();

        assert_eq!(run.await, AttemptResult::timed_out(SECOND));
    }

    #[tokio::test]
    async fn shard_cancelled_between_attempts_keeps_last_failure() {
        let fixture = Fixture::new().attempts(3);
        let mut run = Box::pin(fixture.attempt(async |_| Err(Failure::new("no"))));
        wait(&mut run);

        fixture.shard.cancel().cancel(CancelReason::ShuttingDown);

        assert_eq!(run.await, failed("no", 1));
    }

    #[tokio::test]
    async fn shard_cancelled_before_start_does_not_start() {
        let fixture = Fixture::new();
        fixture.shard.cancel().cancel(CancelReason::Requested);

        let outcome = fixture.attempt(async |_| Ok(())).await;

        assert_eq!(outcome, AttemptResult::cancelled(CancelReason::Requested).after(0));
        assert!(fixture.seen().is_empty());
    }

    /// A lease that the test can end.
    fn lease(policy: LeaseLoss) -> (Arc<AtomicBool>, Guard) {
        let holds = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&holds);
        (holds, Guard::new(policy, move || seen.load(Ordering::SeqCst)))
    }

    #[tokio::test]
    async fn attempt_ending_after_its_lease_is_fenced_unless_policy_continues() {
        for (policy, expected) in [
            (LeaseLoss::Cancel, AttemptResult::fenced()),
            (LeaseLoss::FinishFenced, AttemptResult::fenced()),
            (LeaseLoss::Continue, AttemptResult::succeeded()),
        ] {
            let mut fixture = Fixture::new();
            let (holds, guard) = lease(policy);
            fixture.guard = guard;
            let (go, gone) = tokio::sync::oneshot::channel::<()>();
            let gone = Arc::new(Mutex::new(Some(gone)));
            let finished = Arc::new(AtomicBool::new(false));
            let inside = Arc::clone(&finished);
            let mut run = Box::pin(fixture.attempt(move |_| {
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

            assert_eq!(run.await, expected, "{policy}");
            assert_eq!(finished.load(Ordering::SeqCst), policy != LeaseLoss::Cancel, "{policy}");
        }
    }

    #[tokio::test]
    async fn lost_lease_stops_a_handler_that_is_never_woken() {
        let mut fixture = Fixture::new();
        let (holds, guard) = lease(LeaseLoss::Cancel);
        fixture.guard = guard;
        let mut run = Box::pin(fixture.attempt(async |_| pending().await));
        wait(&mut run);

        fixture.shard.cancel().cancel(CancelReason::LeaseLost);
        wait(&mut run);
        holds.store(false, Ordering::SeqCst);
        fixture.clock.advance(LEASE_CHECK_INTERVAL);

        assert_eq!(run.await, AttemptResult::fenced());
    }

    #[tokio::test]
    async fn shard_is_not_retried_without_lease() {
        let mut fixture = Fixture::new().attempts(3);
        let (holds, guard) = lease(LeaseLoss::FinishFenced);
        fixture.guard = guard;
        let mut run = Box::pin(fixture.attempt(async |_| Err(Failure::new("no"))));
        wait(&mut run);

        holds.store(false, Ordering::SeqCst);
        fixture.clock.advance(4 * SECOND);

        assert_eq!(run.await, AttemptResult::fenced());
        assert_eq!(fixture.seen(), ["1 started", "1 no"]);
    }

    #[test]
    fn retry_delay_is_between_half_and_full_backoff() {
        let millis = |failed, random| retry_delay(Backoff::DEFAULT, failed, random).as_millis();

        assert_eq!(
            [millis(1, 0.0), millis(1, 1.0), millis(3, 0.5), millis(99, 1.0)],
            [500, 1000, 3000, 60_000]
        );
    }
}
