//! The session as callers see it: who we are to the servers, and until when that may be believed.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

/// What this client knows about its session. See the [module](super) for what moves between the states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// A server serves this session. Another id than before means that the old session is gone.
    Connected {
        /// The session's id, as in a node's `ephemeral_owner`.
        session: i64,
    },
    /// The connection is gone; the session may live.
    Suspended {
        /// The session's id.
        session: i64,
    },
    /// The servers have ended this session and removed its ephemeral nodes; a new one is being made.
    Lost {
        /// The id it had.
        session: i64,
    },
    /// Closed by us, for good.
    Closed,
    /// Our credentials were refused, for good.
    AuthFailed,
}

impl SessionState {
    /// Whether nothing can follow.
    pub fn is_final(self) -> bool {
        matches!(self, SessionState::Closed | SessionState::AuthFailed)
    }
}

/// The session at one moment; all fields belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Its id, or the id of the last one if there is none now.
    pub id: i64,
    /// The timeout the server granted.
    pub timeout: Duration,
    /// Until when it may be believed to live, on the clock of the configuration; zero once it is known to be gone.
    pub lease_deadline: Duration,
    /// What is known about it.
    pub state: SessionState,
}

/// What the task tells and the handles read.
#[derive(Debug)]
pub(super) struct Shared {
    session: Mutex<Session>,
    states: watch::Sender<SessionState>,
    pongs: AtomicU64,
}

impl Shared {
    /// `created_at` is when the session was asked for.
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

    /// A ping was answered, by whichever server; that says nothing about the session.
    pub(super) fn pong(&self) {
        self.pongs.fetch_add(1, Ordering::Relaxed);
    }

    /// The ensemble's leader counts our timeout from `since` or later.
    pub(super) fn renew(&self, since: Duration) {
        let mut session = self.lock();
        session.lease_deadline = session.lease_deadline.max(since + session.timeout);
    }

    /// A server took the session up again. That renews no lease: the server may be cut off from its leader.
    pub(super) fn reattached(&self, timeout: Duration) {
        self.change(|session| {
            session.timeout = timeout;
            session.state = SessionState::Connected { session: session.id };
        });
    }

    /// A new session was made, asked for at `created_at`.
    pub(super) fn renewed(&self, id: i64, timeout: Duration, created_at: Duration) {
        self.change(|session| {
            *session = Session {
                id,
                timeout,
                lease_deadline: created_at + timeout,
                state: SessionState::Connected { session: id },
            };
        });
    }

    pub(super) fn suspended(&self) {
        self.change(|session| session.state = SessionState::Suspended { session: session.id });
    }

    pub(super) fn lost(&self) {
        self.change(|session| {
            session.lease_deadline = Duration::ZERO;
            session.state = SessionState::Lost { session: session.id };
        });
    }

    /// `state` is one nothing can follow.
    pub(super) fn ended(&self, state: SessionState) {
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
        // Nothing under this lock can panic half way.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(6);

    #[test]
    fn a_lease_never_goes_back() {
        let shared = Shared::new(1, TIMEOUT, Duration::from_secs(10));
        assert_eq!(shared.session().lease_deadline, Duration::from_secs(16));

        shared.renew(Duration::from_secs(12));
        shared.renew(Duration::from_secs(11));

        assert_eq!(shared.session().lease_deadline, Duration::from_secs(18));
    }

    #[test]
    fn taking_the_session_up_again_renews_no_lease() {
        let shared = Shared::new(1, TIMEOUT, Duration::from_secs(10));

        shared.suspended();
        shared.reattached(TIMEOUT * 2);

        assert_eq!(shared.session().lease_deadline, Duration::from_secs(16));
        assert_eq!(shared.session().state, SessionState::Connected { session: 1 });
    }

    #[test]
    fn a_lost_session_has_no_lease() {
        let shared = Shared::new(1, TIMEOUT, Duration::from_secs(10));

        shared.lost();

        assert_eq!(shared.session().lease_deadline, Duration::ZERO);
    }
}
