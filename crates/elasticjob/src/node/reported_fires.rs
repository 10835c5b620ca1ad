//! Until when each fire of a job was reported, so that no fire is reported twice.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// Until when each fire of a job on this node was reported, or is the business of catch-up. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct ReportedFires(Arc<Mutex<Timestamp>>);

impl ReportedFires {
    pub(super) fn until(until: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(until)))
    }

    /// The fires until then have been reported.
    pub(super) fn extend(&self, until: Timestamp) {
        let mut known = self.lock();
        *known = (*known).max(until);
    }

    /// The end of what was reported, by a clock that shows `now` and may have been set back since.
    pub(super) fn end(&self, now: Timestamp) -> Timestamp {
        let mut known = self.lock();
        *known = (*known).min(now);
        *known
    }

    fn lock(&self) -> MutexGuard<'_, Timestamp> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_of_a_clock_that_was_ahead_are_not_reported_in_advance() {
        let second = |second| Timestamp::from_second(second).unwrap();
        let reported = ReportedFires::until(second(10));

        reported.extend(second(90));
        assert_eq!(reported.end(second(20)), second(20), "the clock was set back");

        reported.extend(second(15));
        assert_eq!(reported.end(second(30)), second(20));
    }
}
