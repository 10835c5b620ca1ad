//! Telling work to end, and why.

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::{Arc, OnceLock},
};

use futures_util::{FutureExt, future};
use tokio::sync::Notify;

/// A request to end, handed to whoever is to end. It only tells; what happens then is up to the one who is told.
///
/// Clones are the same request. A [child](Self::child) is told when its parent is and can be told alone. The first reason stands.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use elasticjob::runtime::{Cancel, CancelReason};
///
/// let run = Cancel::new();
/// let shard = run.child();
/// run.cancel(CancelReason::Requested);
/// assert_eq!(shard.cancelled().await, CancelReason::Requested);
/// # }
/// ```
#[derive(Clone)]
pub struct Cancel {
    own: Arc<Told>,
    parent: Option<Arc<Cancel>>,
}

/// Whoever waits is woken in the order of their waiting, so that the same story goes the same way twice.
#[derive(Default)]
struct Told {
    reason: OnceLock<CancelReason>,
    told: Notify,
}

/// Why work is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// Somebody asked for it.
    Requested,
    /// The right to do it is running out, and somebody else will get it.
    LeaseLost,
    /// It takes longer than it may.
    TimedOut,
    /// The process is ending.
    ShuttingDown,
}

impl Cancel {
    /// Nobody has been told anything yet.
    pub fn new() -> Self {
        Self { own: Arc::default(), parent: None }
    }

    /// One that is told whatever this one is told.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { parent: Some(Arc::new(self.clone())), ..Self::new() }
    }

    /// Tells everybody who holds this, or a child of it. Says whether this was news.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        if self.parent.as_ref().is_some_and(|parent| parent.is_cancelled()) {
            return false;
        }
        let is_news = self.own.reason.set(reason).is_ok();
        if is_news {
            self.own.told.notify_waiters();
        }
        is_news
    }

    /// Why to end, if so.
    pub fn reason(&self) -> Option<CancelReason> {
        self.line().find_map(|cancel| cancel.own.reason.get().copied())
    }

    /// Whether to end.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Waits until it is time to end; for ever, if it never is.
    pub fn cancelled(&self) -> impl Future<Output = CancelReason> + Send + 'static {
        let told = self.line().map(|cancel| told(Arc::clone(&cancel.own)).boxed());
        let told = future::select_all(told.collect::<Vec<_>>());
        let cancel = self.clone();
        async move {
            let (reason, ..) = told.await;
            cancel.reason().unwrap_or(reason)
        }
    }

    /// This one, its parent, and so on.
    fn line(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |cancel| cancel.parent.as_deref())
    }
}

async fn told(own: Arc<Told>) -> CancelReason {
    loop {
        let mut told = pin!(own.told.notified());
        // Before the look, so that nothing is told in between unheard.
        told.as_mut().enable();
        if let Some(reason) = own.reason.get() {
            return *reason;
        }
        told.await;
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "Cancel({reason:?})"),
            None => f.write_str("Cancel(no)"),
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "somebody asked for it",
            Self::LeaseLost => "the lease was lost",
            Self::TimedOut => "it took too long",
            Self::ShuttingDown => "the process is shutting down",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_with_its_parent_and_a_parent_not_with_its_child() {
        let parent = Cancel::new();
        let (one, other) = (parent.child(), parent.child().child());

        one.cancel(CancelReason::TimedOut);
        assert_eq!(
            (one.reason(), other.reason(), parent.reason()),
            (Some(CancelReason::TimedOut), None, None)
        );

        parent.cancel(CancelReason::ShuttingDown);
        assert_eq!(one.reason(), Some(CancelReason::TimedOut), "it was told before");
        assert_eq!(other.cancelled().now_or_never(), Some(CancelReason::ShuttingDown));
    }

    #[test]
    fn the_first_reason_stands() {
        let cancel = Cancel::new();
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
    async fn whoever_waits_is_woken_from_any_height() {
        let root = Cancel::new();
        let mut waiting = std::pin::pin!(root.child().child().cancelled());
        assert!(waiting.as_mut().now_or_never().is_none());

        root.cancel(CancelReason::LeaseLost);

        assert_eq!(waiting.await, CancelReason::LeaseLost);
    }
}
