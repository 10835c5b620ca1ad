//! Not one step after the lease has ended.
//!
//! A process can be frozen at any point and thaw after its lease has ended and its shard runs elsewhere. Nothing it was told in
//! time helps then; so every poll of a handler looks at the lease first, and a handler whose lease is gone is not polled again.
//! What it has outside this process — a child process, a request on its way — ends when it is dropped, which is right then.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::job::LeaseLoss;

/// The lease is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// Polls `future` only while `holds` says so; after that it is over with [`Lost`], and never polled again.
///
/// Nothing wakes it when the lease ends: what is not polled does nothing. Whoever waits for the end has to be told by a
/// [`Cancel`](crate::runtime::Cancel).
pub fn guarded<F: Future, C: Fn() -> bool>(future: F, holds: C) -> Guarded<F, C> {
    Guarded { future: Some(Box::pin(future)), holds }
}

/// A future that is polled only while it may be; see [`guarded`].
pub struct Guarded<F, C> {
    future: Option<Pin<Box<F>>>,
    holds: C,
}

impl<F: Future, C: Fn() -> bool + Unpin> Future for Guarded<F, C> {
    type Output = Result<F::Output, Lost>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let holds = (self.holds)();
        match &mut self.future {
            Some(future) if holds => future.as_mut().poll(context).map(Ok),
            _ => {
                self.future = None;
                Poll::Ready(Err(Lost))
            }
        }
    }
}

/// Whether this instance may still run a shard, and what becomes of the shard if not.
#[derive(Clone)]
pub struct Guard {
    holds: Arc<dyn Fn() -> bool + Send + Sync>,
    on_loss: LeaseLoss,
}

impl Guard {
    /// Asks `holds` whether the lease is still believed in. It is asked at every poll, so it has to be quick.
    pub fn new(on_loss: LeaseLoss, holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { holds: Arc::new(holds), on_loss }
    }

    /// For work that needs no lease.
    pub fn none() -> Self {
        Self::new(LeaseLoss::Continue, || true)
    }

    /// Whether the lease is still believed in.
    pub(super) fn holds(&self) -> bool {
        (self.holds)()
    }

    /// Whether the handler may be polled.
    pub(super) fn lets_run(&self) -> bool {
        self.on_loss != LeaseLoss::Cancel || (self.holds)()
    }

    /// Whether what ends now counts.
    pub(super) fn counts(&self) -> bool {
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
    fn a_handler_is_not_polled_after_its_deadline() {
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
        assert_eq!(run.as_mut().poll(&mut context), Poll::Ready(Err(Lost)));

        assert_eq!(polls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_has_lost_its_lease_is_dropped_at_once() {
        let kept = Arc::new(());
        let inside = Arc::clone(&kept);
        let work = async move {
            pending::<()>().await;
            drop(inside);
        };
        let mut run = std::pin::pin!(guarded(work, || false));

        let _ = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));

        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn a_policy_says_what_a_lost_lease_means() {
        let lost = |policy| Guard::new(policy, || false);
        let meaning = |guard: Guard| (guard.lets_run(), guard.counts());

        assert_eq!(meaning(lost(LeaseLoss::Cancel)), (false, false));
        assert_eq!(meaning(lost(LeaseLoss::FinishFenced)), (true, false));
        assert_eq!(meaning(lost(LeaseLoss::Continue)), (true, true));
        assert_eq!(meaning(Guard::none()), (true, true));
    }
}
