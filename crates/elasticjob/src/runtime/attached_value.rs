//! A value attached to a unit of work, available wherever that work is polled.

use std::{any::Any, sync::Arc};

tokio::task_local! {
    static CARRIED: AttachedValue;
}

/// A value attached to the current unit of work, so that a log record can be attributed to it without an argument. It stays with a
/// future through all its polls; code that moves work to a thread passes it on with [`current`](AttachedValue::current).
#[derive(Clone)]
pub(crate) struct AttachedValue(Option<Arc<dyn Any + Send + Sync>>);

impl AttachedValue {
    pub(crate) fn new(value: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(value))
    }

    /// The value attached to the current work, to be attached elsewhere.
    pub(crate) fn current() -> Self {
        CARRIED.try_with(Clone::clone).unwrap_or(Self(None))
    }

    /// The attached value, if there is one of type `T`.
    #[cfg_attr(
        not(feature = "log-capture"),
        expect(dead_code, reason = "only log capture reads it")
    )]
    pub(crate) fn get<T: Any + Send + Sync>() -> Option<Arc<T>> {
        CARRIED.try_with(|carried| carried.0.clone()).ok()??.downcast().ok()
    }

    /// Attaches the value to a future.
    pub(crate) fn around<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CARRIED.scope(self, work)
    }

    /// Attaches the value while a closure runs.
    pub(crate) fn during<T>(self, work: impl FnOnce() -> T) -> T {
        CARRIED.sync_scope(self, work)
    }
}
