//! Registry sessions: identity, deadline and state changes.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::runtime::Monotonic;

/// Identifies one session. A session that replaces an ended one has a new id.
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

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// The registry answers.
    Connected(SessionId),
    /// The connection is broken; the session may still be alive. Trust it until its deadline, start nothing new.
    Suspended(SessionId),
    /// The registry reported that the session has ended (a passed deadline alone is not enough): its ephemeral nodes are gone.
    Lost(SessionId),
    /// A new session replaced the old one.
    Renewed { old: SessionId, new: SessionId },
}

impl SessionState {
    /// The session concerned; for a renewal, the new one.
    pub fn session(self) -> SessionId {
        match self {
            SessionState::Connected(id) | SessionState::Suspended(id) | SessionState::Lost(id) => {
                id
            }
            SessionState::Renewed { new, .. } => new,
        }
    }
}

/// The session at the time of the call to [`Registry::session`](super::Registry::session). Its deadline is always current.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    timeout: Duration,
    lease: Arc<dyn Lease>,
}

/// What an adapter provides for a [`Session`]: its deadline and its state changes.
pub trait Lease: Send + Sync {
    /// See [`Session::deadline`].
    fn deadline(&self, session: SessionId) -> Monotonic;
    /// See [`Session::states`].
    fn states(&self) -> SessionStates;
}

impl Session {
    pub fn new(id: SessionId, timeout: Duration, lease: Arc<dyn Lease>) -> Self {
        Self { id, timeout, lease }
    }

    pub fn id(&self) -> SessionId {
        self.id
    }

    /// How long the registry waits for a sign of life before it ends the session.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The time until which the registry certainly has not ended the session; later contact extends it.
    ///
    /// Only requests known to have reached the registry's leader extend it: writes and [`sync`](super::Registry::sync), never pings or
    /// plain reads, because a follower cut off from its leader answers those for a session that ended long ago. The deadline counts
    /// from when the request was *sent*. Subtract a margin, because clocks drift. A session known to have ended has a deadline in
    /// the past.
    pub fn deadline(&self) -> Monotonic {
        self.lease.deadline(self.id)
    }

    /// State changes of this session and of the sessions that replace it.
    pub fn states(&self) -> SessionStates {
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

/// The session states of one registry connection, starting with the current one.
///
/// A slow reader may miss short suspensions, but never the end of a session.
pub struct SessionStates {
    source: Box<dyn StateSource>,
    last: Option<SessionState>,
    pending: VecDeque<SessionState>,
}

/// What an adapter provides for [`SessionStates`].
#[async_trait]
pub trait StateSource: Send {
    /// Waits for a change and returns the newest state; `None` once the registry is closed.
    async fn newest(&mut self) -> Option<SessionState>;
}

impl SessionStates {
    /// `present` is the state at the time of the call. It is delivered even if the state has changed by the time it is read.
    pub fn new(present: Option<SessionState>, source: impl StateSource + 'static) -> Self {
        Self { source: Box::new(source), last: None, pending: present.into_iter().collect() }
    }

    /// The next state; `None` once the registry is closed.
    pub async fn next(&mut self) -> Option<SessionState> {
        loop {
            if let Some(state) = self.pending.pop_front() {
                self.last = Some(state);
                return Some(state);
            }
            let newest = self.source.newest().await?;
            self.pending.extend(steps(self.last, newest));
        }
    }
}

impl fmt::Debug for SessionStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStates").field("last", &self.last).finish_non_exhaustive()
    }
}

/// The states to deliver between the last delivered one and the newest, so that a reader never sees a new session without the end of
/// the old one, however many changes it missed.
fn steps(last: Option<SessionState>, newest: SessionState) -> Vec<SessionState> {
    let Some(last) = last.filter(|last| last.session() != newest.session()) else {
        // A renewal implies that the session is connected.
        let is_known = matches!(
            (last, newest),
            (Some(SessionState::Renewed { .. }), SessionState::Connected(_))
        );
        return if is_known || last == Some(newest) { vec![] } else { vec![newest] };
    };
    let (old, new) = (last.session(), newest.session());
    let mut steps = Vec::new();
    if !matches!(last, SessionState::Lost(_)) {
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
    fn present_state_comes_first_then_only_changes() {
        let connected = SessionState::Connected(OLD);

        assert_eq!(steps(None, connected), [connected]);
        assert_eq!(steps(Some(connected), connected), []);
        assert_eq!(
            steps(Some(connected), SessionState::Suspended(OLD)),
            [SessionState::Suspended(OLD)]
        );
    }

    #[test]
    fn new_session_is_preceded_by_the_end_of_the_old_one() {
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
