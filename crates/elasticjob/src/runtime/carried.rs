//! What belongs to the work at hand, wherever it is polled.

use std::{any::Any, sync::Arc};

tokio::task_local! {
    static CARRIED: Carried;
}

/// Something that belongs to the work at hand: a log record has no argument that could say whose it is. It goes along with a future through all its polls, and
/// onto a thread if it is [taken there](Carried::current).
#[derive(Clone)]
pub(crate) struct Carried(Option<Arc<dyn Any + Send + Sync>>);

impl Carried {
    pub(crate) fn new(thing: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(thing))
    }

    /// What is carried here, to be carried elsewhere.
    pub(crate) fn current() -> Self {
        CARRIED.try_with(Clone::clone).unwrap_or(Self(None))
    }

    /// The thing that is carried here, if it is one of these.
    #[cfg_attr(
        not(feature = "log-capture"),
        expect(dead_code, reason = "only who captures the log asks")
    )]
    pub(crate) fn get<T: Any + Send + Sync>() -> Option<Arc<T>> {
        CARRIED.try_with(|carried| carried.0.clone()).ok()??.downcast().ok()
    }

    /// Carries it along with this future.
    pub(crate) fn around<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CARRIED.scope(self, work)
    }

    /// Carries it while this runs.
    pub(crate) fn during<T>(self, work: impl FnOnce() -> T) -> T {
        CARRIED.sync_scope(self, work)
    }
}
