//! The session as a value.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::runtime::Monotonic;

/// One life of a member in the registry. A new life has a new id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub i64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({:#x})", self.0)
    }
}

/// What became of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// The registry answers.
    Connected(SessionId),
    /// The connection is broken; the session may live on. Believe in it until its deadline, start nothing new.
    Suspended(SessionId),
    /// The registry said that it is over: its ephemerals are gone.
    Lost(SessionId),
    /// A new one has begun in its place.
    Renewed {
        /// The one that is over.
        old: SessionId,
        /// The one that began.
        new: SessionId,
    },
}

impl SessionState {
    /// The session it is about; for a renewal, the new one.
    pub fn session(self) -> SessionId {
        match self {
            SessionState::Connected(id) | SessionState::Suspended(id) | SessionState::Lost(id) => {
                id
            }
            SessionState::Renewed { new, .. } => new,
        }
    }
}

/// A session as it was when [`Registry::session`](super::Registry::session) was asked; its deadline is always current.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    timeout: Duration,
    lease: Arc<dyn Lease>,
}

/// What an adapter has to bring for a [`Session`]: where its deadline comes from, and the news about it.
pub trait Lease: Send + Sync {
    /// See [`Session::deadline`].
    fn deadline(&self, session: SessionId) -> Monotonic;
    /// See [`Session::states`].
    fn states(&self) -> States;
}

impl Session {
    /// A session of an adapter.
    pub fn new(id: SessionId, timeout: Duration, lease: Arc<dyn Lease>) -> Self {
        Self { id, timeout, lease }
    }

    /// Its number.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// How long the registry waits without hearing of it before it ends it.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Until when it is certain that the registry has not ended it, unless it is renewed meanwhile.
    ///
    /// Only what is known to have reached the registry's leader counts — by writes and [`sync`](super::Registry::sync), never by
    /// pings or plain reads, which a cut-off follower answers for a session that has long ended — and from when it was *sent*.
    /// Take a margin off: clocks drift. A session that is known to be gone has a deadline in the past.
    pub fn deadline(&self) -> Monotonic {
        self.lease.deadline(self.id)
    }

    /// What becomes of it and of the sessions after it.
    pub fn states(&self) -> States {
        self.lease.states()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// What becomes of the sessions of one registry, the present state first.
///
/// Short suspensions may go unseen by a slow reader; the end of a session never does.
pub struct States {
    source: Box<dyn StateSource>,
    told: Option<SessionState>,
    waiting: VecDeque<SessionState>,
}

/// What an adapter has to bring for [`States`].
#[async_trait]
pub trait StateSource: Send {
    /// The newest state once it has changed; `None` when the registry is closed.
    async fn newest(&mut self) -> Option<SessionState>;
}

impl States {
    /// `present`: the state at the moment of asking, which must not be missed even if it has changed when it is read.
    pub fn new(present: Option<SessionState>, source: impl StateSource + 'static) -> Self {
        Self { source: Box::new(source), told: None, waiting: present.into_iter().collect() }
    }

    /// The next state; `None` when the registry is closed.
    pub async fn next(&mut self) -> Option<SessionState> {
        loop {
            if let Some(state) = self.waiting.pop_front() {
                self.told = Some(state);
                return Some(state);
            }
            let newest = self.source.newest().await?;
            self.waiting.extend(steps(self.told, newest));
        }
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").field("told", &self.told).finish_non_exhaustive()
    }
}

/// What lies between the state told last and the newest one, so that nobody sees a new session without the end of the old
/// one, however much was missed.
fn steps(told: Option<SessionState>, newest: SessionState) -> Vec<SessionState> {
    let Some(told) = told.filter(|told| told.session() != newest.session()) else {
        // A renewal is a connection, too.
        let known = matches!(
            (told, newest),
            (Some(SessionState::Renewed { .. }), SessionState::Connected(_))
        );
        return if known || told == Some(newest) { vec![] } else { vec![newest] };
    };
    let (old, new) = (told.session(), newest.session());
    let mut steps = Vec::new();
    if !matches!(told, SessionState::Lost(_)) {
        steps.push(SessionState::Lost(old));
    }
    steps.push(SessionState::Renewed { old, new });
    if !matches!(newest, SessionState::Connected(_)) {
        steps.push(newest);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: SessionId = SessionId(1);
    const NEW: SessionId = SessionId(2);

    #[test]
    fn the_present_state_comes_first_and_then_only_changes() {
        let connected = SessionState::Connected(OLD);

        assert_eq!(steps(None, connected), [connected]);
        assert_eq!(steps(Some(connected), connected), []);
        assert_eq!(
            steps(Some(connected), SessionState::Suspended(OLD)),
            [SessionState::Suspended(OLD)]
        );
    }

    #[test]
    fn a_new_session_is_never_seen_without_the_end_of_the_old_one() {
        let renewed = SessionState::Renewed { old: OLD, new: NEW };

        assert_eq!(
            steps(Some(SessionState::Connected(OLD)), SessionState::Connected(NEW)),
            [SessionState::Lost(OLD), renewed]
        );
        assert_eq!(steps(Some(SessionState::Lost(OLD)), SessionState::Connected(NEW)), [renewed]);
        assert_eq!(
            steps(Some(SessionState::Suspended(OLD)), SessionState::Suspended(NEW)),
            [SessionState::Lost(OLD), renewed, SessionState::Suspended(NEW)]
        );
        assert_eq!(steps(Some(renewed), SessionState::Connected(NEW)), []);
    }
}
