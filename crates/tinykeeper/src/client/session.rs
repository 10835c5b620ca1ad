//! The session as callers see it: its id, its state and its lease.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

/// What the client knows about its session. See the [module](super) for the transitions between the states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// Connected with this session. A different id than before means that the old session has expired.
    Connected {
        /// The session's id, as in a node's `ephemeral_owner`.
        session: i64,
    },
    /// The connection is lost; the session may still be alive.
    Suspended { session: i64 },
    /// The servers have ended this session and deleted its ephemeral nodes; the client is opening a new one.
    Lost { session: i64 },
    /// The client was closed. Final.
    Closed,
    /// The credentials were refused. Final.
    AuthFailed,
}

impl SessionState {
    /// Whether no other state can follow.
    pub fn is_final(self) -> bool {
        matches!(self, SessionState::Closed | SessionState::AuthFailed)
    }
}

/// A consistent snapshot of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Its id, or the id of the last session if there is none now.
    pub id: i64,
    /// The timeout that the server granted.
    pub timeout: Duration,
    /// Until when the session may be trusted to be alive, on the configured clock; zero once it is known to have ended.
    pub lease_deadline: Duration,
    pub state: SessionState,
}

/// The session data that the task writes and the handles read.
#[derive(Debug)]
pub(super) struct SharedSession {
    session: Mutex<Session>,
    states: watch::Sender<SessionState>,
    pongs: AtomicU64,
}

impl SharedSession {
    /// `created_at` is when the session was requested.
    pub(super) fn new(id: i64, timeout: Duration, created_at: Duration) -> Self {
        let state = SessionState::Connected { session: id };
        Self {
            session: Mutex::new(Session {
                id,
                timeout,
                lease_deadline: created_at + timeout,
                state,
            }),
            states: watch::Sender::new(state),
            pongs: AtomicU64::new(0),
        }
    }

    pub(super) fn session(&self) -> Session {
        *self.lock()
    }

    pub(super) fn states(&self) -> watch::Receiver<SessionState> {
        self.states.subscribe()
    }

    pub(super) fn pongs(&self) -> u64 {
        self.pongs.load(Ordering::Relaxed)
    }

    /// Counts the reply to a ping. It proves nothing about the session.
    pub(super) fn record_pong(&self) {
        self.pongs.fetch_add(1, Ordering::Relaxed);
    }

    /// Extends the lease: the ensemble's leader counts the session timeout from `since` or later.
    pub(super) fn renew_lease(&self, since: Duration) {
        let mut session = self.lock();
        session.lease_deadline = session.lease_deadline.max(since + session.timeout);
    }

    /// Marks the session as resumed by a server. This does not renew the lease: the server may be partitioned from its leader.
    pub(super) fn mark_resumed(&self, timeout: Duration) {
        self.change(|session| {
            session.timeout = timeout;
            session.state = SessionState::Connected { session: session.id };
        });
    }

    /// Replaces the session with a new one that was requested at `created_at`.
    pub(super) fn replace(&self, id: i64, timeout: Duration, created_at: Duration) {
        self.change(|session| {
            *session = Session {
                id,
                timeout,
                lease_deadline: created_at + timeout,
                state: SessionState::Connected { session: id },
            };
        });
    }

    pub(super) fn mark_suspended(&self) {
        self.change(|session| session.state = SessionState::Suspended { session: session.id });
    }

    pub(super) fn mark_lost(&self) {
        self.change(|session| {
            session.lease_deadline = Duration::ZERO;
            session.state = SessionState::Lost { session: session.id };
        });
    }

    /// Ends the session in a final state.
    pub(super) fn mark_final(&self, state: SessionState) {
        self.change(|session| {
            session.lease_deadline = Duration::ZERO;
            session.state = state;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Session)) {
        let state = {
            let mut session = self.lock();
            change(&mut session);
            session.state
        };
        self.states.send_replace(state);
    }

    fn lock(&self) -> MutexGuard<'_, Session> {
        // Code under this lock cannot panic, so the data is consistent.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(6);

    #[test]
    fn lease_deadline_never_decreases() {
        let shared = SharedSession::new(1, TIMEOUT, Duration::from_secs(10));
        assert_eq!(shared.session().lease_deadline, Duration::from_secs(16));

        shared.renew_lease(Duration::from_secs(12));
        shared.renew_lease(Duration::from_secs(11));

        assert_eq!(shared.session().lease_deadline, Duration::from_secs(18));
    }

    #[test]
    fn resuming_the_session_does_not_renew_the_lease() {
        let shared = SharedSession::new(1, TIMEOUT, Duration::from_secs(10));

        shared.mark_suspended();
        shared.mark_resumed(TIMEOUT * 2);

        assert_eq!(shared.session().lease_deadline, Duration::from_secs(16));
        assert_eq!(shared.session().state, SessionState::Connected { session: 1 });
    }

    #[test]
    fn lost_session_has_no_lease() {
        let shared = SharedSession::new(1, TIMEOUT, Duration::from_secs(10));

        shared.mark_lost();

        assert_eq!(shared.session().lease_deadline, Duration::ZERO);
    }
}
