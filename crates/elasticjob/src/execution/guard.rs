//! Keeps handlers from running after their lease has ended.
//!
//! A process can be frozen at any point and resume after its lease has ended and its shard runs elsewhere. A cancellation sent in time does
//! not help then. So every poll of a handler checks the lease first, and a handler whose lease is lost is not polled again. What it has
//! outside this process, such as a child process or a pending request, ends when the handler is dropped, which is correct at that point.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::job::LeaseLoss;

/// The lease of a guarded future was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseLost;

/// Polls `future` only while `holds` returns true; after that it completes with [`LeaseLost`] and is never polled again.
///
/// Nothing wakes it when the lease ends, because a future that is not polled does nothing. A task that waits for the end needs a
/// [`CancelToken`](crate::runtime::CancelToken) to be woken.
pub fn guarded<F: Future, C: Fn() -> bool>(future: F, holds: C) -> Guarded<F, C> {
    Guarded { future: Some(Box::pin(future)), holds }
}

/// A future that is polled only while its lease holds; see [`guarded`].
pub struct Guarded<F, C> {
    future: Option<Pin<Box<F>>>,
    holds: C,
}

impl<F: Future, C: Fn() -> bool + Unpin> Future for Guarded<F, C> {
    type Output = Result<F::Output, LeaseLost>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let holds = (self.holds)();
        match &mut self.future {
            Some(future) if holds => future.as_mut().poll(context).map(Ok),
            _ => {
                self.future = None;
                Poll::Ready(Err(LeaseLost))
            }
        }
    }
}

/// Whether this instance may still run a shard, and what happens to the shard if not.
#[derive(Clone)]
pub struct Guard {
    holds: Arc<dyn Fn() -> bool + Send + Sync>,
    on_loss: LeaseLoss,
}

impl Guard {
    /// `holds` returns whether the lease still holds. It is called at every poll, so it has to be fast.
    pub fn new(on_loss: LeaseLoss, holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { holds: Arc::new(holds), on_loss }
    }

    pub fn none() -> Self {
        Self::new(LeaseLoss::Continue, || true)
    }

    pub(super) fn holds(&self) -> bool {
        (self.holds)()
    }

    pub(super) fn may_poll(&self) -> bool {
        self.on_loss != LeaseLoss::Cancel || (self.holds)()
    }

    /// Whether the outcome of an attempt that ends now counts.
    pub(super) fn outcome_counts(&self) -> bool {
        self.on_loss == LeaseLoss::Continue || (self.holds)()
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard({}, holds: {})", self.on_loss, (self.holds)())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, poll_fn},
        sync::atomic::{AtomicU32, Ordering},
        task::Waker,
        time::Duration,
    };

    use jiff::Timestamp;

    use super::*;
    use crate::{runtime::Clock, testing::ManualClock};

    #[test]
    fn handler_is_not_polled_after_its_lease() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let deadline = clock.monotonic() + Duration::from_secs(10);
        let polls = AtomicU32::new(0);
        let work = poll_fn(|_| {
            polls.fetch_add(1, Ordering::SeqCst);
            Poll::<()>::Pending
        });
        let mut run = std::pin::pin!(guarded(work, || clock.monotonic() < deadline));
        let mut context = Context::from_waker(Waker::noop());

        clock.advance(Duration::from_secs(9));
        assert_eq!(run.as_mut().poll(&mut context), Poll::Pending);
        clock.advance(Duration::from_secs(1));
        assert_eq!(run.as_mut().poll(&mut context), Poll::Ready(Err(LeaseLost)));

        assert_eq!(polls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn handler_is_dropped_when_lease_is_lost() {
        let alive = Arc::new(());
        let inside = Arc::clone(&alive);
        let work = async move {
            pending::<()>().await;
            drop(inside);
        };
        let mut run = std::pin::pin!(guarded(work, || false));

        let _ = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));

        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn lease_loss_policy_decides_polling_and_outcome() {
        let lost = |policy| Guard::new(policy, || false);
        let meaning = |guard: Guard| (guard.may_poll(), guard.outcome_counts());

        assert_eq!(meaning(lost(LeaseLoss::Cancel)), (false, false));
        assert_eq!(meaning(lost(LeaseLoss::FinishFenced)), (true, false));
        assert_eq!(meaning(lost(LeaseLoss::Continue)), (true, true));
        assert_eq!(meaning(Guard::none()), (true, true));
    }
}
