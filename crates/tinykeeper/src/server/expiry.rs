//! Session expiry: a session ends when the server has not heard from it for its timeout.
//!
//! Contacts are frequent and expiries rare, so a contact only updates a time. The ordered set holds the time of the next check
//! for each session; a check may turn out to be too early and is then scheduled again.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Expiry {
    sessions: HashMap<i64, SessionTimer>,
    checks: BTreeSet<(Instant, i64)>,
}

#[derive(Debug, Clone, Copy)]
struct SessionTimer {
    timeout: Duration,
    last_contact: Instant,
    check_at: Instant,
}

impl Expiry {
    /// Starts or restarts the timer of a session with this timeout.
    pub(super) fn track(&mut self, session: i64, timeout: Duration, now: Instant) {
        self.forget(session);
        let check_at = now + timeout;
        self.sessions.insert(session, SessionTimer { timeout, last_contact: now, check_at });
        self.checks.insert((check_at, session));
    }

    /// Records a contact of the session.
    pub(super) fn touch(&mut self, session: i64, now: Instant) {
        if let Some(timer) = self.sessions.get_mut(&session) {
            timer.last_contact = now;
        }
    }

    /// Removes the timer of a session that has ended.
    pub(super) fn forget(&mut self, session: i64) {
        if let Some(timer) = self.sessions.remove(&session) {
            self.checks.remove(&(timer.check_at, session));
        }
    }

    /// When to call [`Expiry::expired`] next.
    pub(super) fn next_check(&self) -> Option<Instant> {
        self.checks.first().map(|(at, _)| *at)
    }

    /// Removes and returns the sessions whose timeout has passed.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<i64> {
        let mut expired = Vec::new();
        while let Some((at, session)) = self.checks.first().copied().filter(|(at, _)| *at <= now) {
            self.checks.remove(&(at, session));
            let Some(timer) = self.sessions.get_mut(&session) else {
                continue;
            };
            let end = timer.last_contact + timer.timeout;
            if end <= now {
                self.sessions.remove(&session);
                expired.push(session);
            } else {
                timer.check_at = end;
                self.checks.insert((end, session));
            }
        }
        expired
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
    fn session_expires_its_timeout_after_the_last_contact() {
        let start = super::super::clock::now();
        let mut expiry = Expiry::default();
        expiry.track(1, 3 * SECOND, start);
        expiry.track(2, 5 * SECOND, start);

        expiry.touch(1, start + SECOND);

        assert_eq!(expiry.next_check(), Some(start + 3 * SECOND));
        assert!(expiry.expired(start + 3 * SECOND).is_empty());
        assert_eq!(expiry.next_check(), Some(start + 4 * SECOND));
        assert_eq!(expiry.expired(start + 4 * SECOND), [1]);
        assert_eq!(expiry.expired(start + 10 * SECOND), [2]);
        assert_eq!(expiry.next_check(), None);
    }

    #[test]
    fn session_tracked_again_has_only_its_new_timeout() {
        let start = super::super::clock::now();
        let mut expiry = Expiry::default();
        expiry.track(1, 9 * SECOND, start);

        expiry.track(1, SECOND, start);

        assert_eq!(expiry.expired(start + SECOND), [1]);
        assert_eq!((expiry.len(), expiry.next_check()), (0, None));
    }
}
