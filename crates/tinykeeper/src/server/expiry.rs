//! When sessions end: nobody heard of them for their timeout.
//!
//! Hearing of a session is frequent, its end is rare, so hearing only notes the time; the ordered list holds when each session
//! is looked at next, which may turn out to be too early.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Expiry {
    sessions: HashMap<i64, Lease>,
    looks: BTreeSet<(Instant, i64)>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    timeout: Duration,
    heard: Instant,
    look_at: Instant,
}

impl Expiry {
    /// The session lives from now on with this timeout.
    pub(super) fn track(&mut self, session: i64, timeout: Duration, now: Instant) {
        self.forget(session);
        let look_at = now + timeout;
        self.sessions.insert(session, Lease { timeout, heard: now, look_at });
        self.looks.insert((look_at, session));
    }

    /// The session was heard of.
    pub(super) fn touch(&mut self, session: i64, now: Instant) {
        if let Some(lease) = self.sessions.get_mut(&session) {
            lease.heard = now;
        }
    }

    /// The session is over.
    pub(super) fn forget(&mut self, session: i64) {
        if let Some(lease) = self.sessions.remove(&session) {
            self.looks.remove(&(lease.look_at, session));
        }
    }

    /// When to call [`Expiry::expired`] next.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// Sessions nobody heard of for their timeout; they are forgotten here.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<i64> {
        let mut over = Vec::new();
        while let Some((at, session)) = self.looks.first().copied().filter(|(at, _)| *at <= now) {
            self.looks.remove(&(at, session));
            let Some(lease) = self.sessions.get_mut(&session) else {
                continue;
            };
            let end = lease.heard + lease.timeout;
            if end <= now {
                self.sessions.remove(&session);
                over.push(session);
            } else {
                lease.look_at = end;
                self.looks.insert((end, session));
            }
        }
        over
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_session_ends_its_timeout_after_it_was_last_heard_of() {
        let start = super::super::clock::now();
        let mut expiry = Expiry::default();
        expiry.track(1, 3 * SECOND, start);
        expiry.track(2, 5 * SECOND, start);

        expiry.touch(1, start + SECOND);

        assert_eq!(expiry.next_look(), Some(start + 3 * SECOND));
        assert!(expiry.expired(start + 3 * SECOND).is_empty());
        assert_eq!(expiry.next_look(), Some(start + 4 * SECOND));
        assert_eq!(expiry.expired(start + 4 * SECOND), [1]);
        assert_eq!(expiry.expired(start + 10 * SECOND), [2]);
        assert_eq!(expiry.next_look(), None);
    }

    #[test]
    fn a_session_tracked_again_has_its_new_timeout_only() {
        let start = super::super::clock::now();
        let mut expiry = Expiry::default();
        expiry.track(1, 9 * SECOND, start);

        expiry.track(1, SECOND, start);

        assert_eq!(expiry.expired(start + SECOND), [1]);
        assert_eq!((expiry.len(), expiry.next_look()), (0, None));
    }
}
