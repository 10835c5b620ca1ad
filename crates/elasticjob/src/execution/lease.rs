//! The remaining lease of this instance.

use std::{fmt, sync::Arc, time::Duration};

/// How long this instance may continue what it runs, as far as it knows. For handlers with work outside this process, which continues even
/// while this process cannot stop it.
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
    /// A lease of which `remaining` returns the time left unless it is renewed; zero once it is over.
    pub fn new(remaining: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(remaining)))
    }

    /// For work that needs no lease.
    pub fn none() -> Self {
        Self(None)
    }

    /// Time left unless the lease is renewed; `None` if the work needs no lease.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.as_ref().map(|remaining| remaining())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.remaining()).finish()
    }
}
