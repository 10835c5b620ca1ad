//! Cancellation of work, with a reason.

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::{Arc, OnceLock},
};

use futures_util::{FutureExt, future};
use tokio::sync::Notify;

/// A cancellation request, passed to the work that should end. It only signals; the work decides how to end.
///
/// Clones share one request. A [child](Self::child) is cancelled together with its parent and can be cancelled alone. The first
/// reason wins.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use elasticjob::runtime::{CancelToken, CancelReason};
///
/// let run = CancelToken::new();
/// let shard = run.child();
/// run.cancel(CancelReason::Requested);
/// assert_eq!(shard.cancelled().await, CancelReason::Requested);
/// # }
/// ```
#[derive(Clone)]
pub struct CancelToken {
    own: Arc<Signal>,
    parent: Option<Arc<CancelToken>>,
}

/// Wakes waiters in the order in which they began to wait, so that a simulation is reproducible.
#[derive(Default)]
struct Signal {
    reason: OnceLock<CancelReason>,
    cancelled: Notify,
}

/// Why work is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// A person or program requested it.
    Requested,
    /// The lease is running out; another instance may take the work over.
    LeaseLost,
    /// The work exceeded its time limit.
    TimedOut,
    /// The process is shutting down.
    ShuttingDown,
}

impl CancelToken {
    /// Creates a request that is not cancelled.
    pub fn new() -> Self {
        Self { own: Arc::default(), parent: None }
    }

    /// Creates a request that is cancelled when this one is.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { parent: Some(Arc::new(self.clone())), ..Self::new() }
    }

    /// Cancels this request and its children. Returns `false` if it was already cancelled.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        if self.parent.as_ref().is_some_and(|parent| parent.is_cancelled()) {
            return false;
        }
        let is_first = self.own.reason.set(reason).is_ok();
        if is_first {
            self.own.cancelled.notify_waiters();
        }
        is_first
    }

    /// The reason, if cancelled.
    pub fn reason(&self) -> Option<CancelReason> {
        self.chain().find_map(|cancel| cancel.own.reason.get().copied())
    }

    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Waits until this request is cancelled; for ever if it never is.
    pub fn cancelled(&self) -> impl Future<Output = CancelReason> + Send + 'static {
        let signals = self.chain().map(|cancel| signalled(Arc::clone(&cancel.own)).boxed());
        let any = future::select_all(signals.collect::<Vec<_>>());
        let cancel = self.clone();
        async move {
            let (reason, ..) = any.await;
            cancel.reason().unwrap_or(reason)
        }
    }

    /// This request, its parent, and so on.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |cancel| cancel.parent.as_deref())
    }
}

async fn signalled(signal: Arc<Signal>) -> CancelReason {
    loop {
        let mut notified = pin!(signal.cancelled.notified());
        // Register before the check, so that a cancellation in between is not missed.
        notified.as_mut().enable();
        if let Some(reason) = signal.reason.get() {
            return *reason;
        }
        notified.await;
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "CancelToken({reason:?})"),
            None => f.write_str("CancelToken(not cancelled)"),
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "on request",
            Self::LeaseLost => "the lease was lost",
            Self::TimedOut => "the time limit was exceeded",
            Self::ShuttingDown => "the process is shutting down",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_is_cancelled_with_its_parent_but_not_vice_versa() {
        let parent = CancelToken::new();
        let (one, other) = (parent.child(), parent.child().child());

        one.cancel(CancelReason::TimedOut);
        assert_eq!(
            (one.reason(), other.reason(), parent.reason()),
            (Some(CancelReason::TimedOut), None, None)
        );

        parent.cancel(CancelReason::ShuttingDown);
        assert_eq!(one.reason(), Some(CancelReason::TimedOut), "the first reason wins");
        assert_eq!(other.cancelled().now_or_never(), Some(CancelReason::ShuttingDown));
    }

    #[test]
    fn first_reason_wins() {
        let cancel = CancelToken::new();
        let child = cancel.child();

        assert!(cancel.cancel(CancelReason::Requested));
        assert!(!cancel.cancel(CancelReason::LeaseLost));
        assert!(!child.cancel(CancelReason::TimedOut));

        assert_eq!(
            (cancel.reason(), child.reason()),
            (Some(CancelReason::Requested), Some(CancelReason::Requested))
        );
    }

    #[tokio::test]
    async fn waiter_is_woken_by_its_grandparent() {
        let root = CancelToken::new();
        let mut waiting = std::pin::pin!(root.child().child().cancelled());
        assert!(waiting.as_mut().now_or_never().is_none());

        root.cancel(CancelReason::LeaseLost);

        assert_eq!(waiting.await, CancelReason::LeaseLost);
    }
}
