//! How long this instance may go on with what it runs.

use std::{fmt, sync::Arc, time::Duration};

/// How long this instance may go on with what it runs, as far as it knows: for handlers that have something outside this process,
/// which goes on while this process cannot tell it to end.
///
/// ```
/// use std::time::Duration;
/// use elasticjob::execution::Lease;
///
/// assert_eq!(Lease::new(|| Duration::from_secs(9)).remaining(), Some(Duration::from_secs(9)));
/// assert_eq!(Lease::none().remaining(), None);
/// ```
#[derive(Clone, Default)]
pub struct Lease(Option<Arc<dyn Fn() -> Duration + Send + Sync>>);

impl Lease {
    /// Asks `remaining` how long it lasts from now, unless it is renewed; zero if it is over.
    pub fn new(remaining: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(remaining)))
    }

    /// For work that may go on without a lease.
    pub fn none() -> Self {
        Self(None)
    }

    /// How long it lasts from now, unless it is renewed; `None` if the work may go on without it.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.as_ref().map(|remaining| remaining())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.remaining()).finish()
    }
}
