//! Sessions of logged-in users.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;

use super::{accounts::Roles, hash_secret, random_secret};
use crate::http::problem::Problem;

/// Age at which a session ends, used or not.
const MAX_AGE: Duration = Duration::from_hours(12);
/// When exceeded, the least recently used session ends.
const MAX_SESSIONS: usize = 10_000;

#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) username: String,
    pub(crate) csrf: String,
    /// Roles assigned by an OIDC provider; `None` if the account determines them.
    pub(crate) roles: Option<Roles>,
    /// The secret is sent as a cookie, not in a header.
    pub(crate) is_cookie: bool,
    created_at: Monotonic,
    used_at: Monotonic,
}

/// All sessions, by the hash of their secrets.
#[derive(Debug)]
pub(crate) struct Sessions {
    max_idle: Duration,
    open: Mutex<HashMap<String, Session>>,
}

impl Sessions {
    /// Sessions end after being unused for `max_idle`.
    pub(crate) fn new(max_idle: Duration) -> Self {
        Self { max_idle, open: Mutex::default() }
    }

    /// Returns the session and its secret.
    pub(crate) fn create(
        &self,
        username: &str,
        is_cookie: bool,
        roles: Option<Roles>,
        now: Monotonic,
    ) -> Result<(Session, String), Problem> {
        let secret = random_secret(32)?;
        let session = Session {
            username: username.to_owned(),
            csrf: random_secret(24)?,
            roles,
            is_cookie,
            created_at: now,
            used_at: now,
        };
        let mut open = self.lock();
        open.retain(|_, session| self.is_open(session, now));
        if open.len() >= MAX_SESSIONS
            && let Some(oldest) = open.iter().min_by_key(|(_, session)| session.used_at)
        {
            let oldest = oldest.0.clone();
            open.remove(&oldest);
        }
        open.insert(hash_secret(&secret), session.clone());
        Ok((session, secret))
    }

    /// Finds an open session and counts this as a use.
    pub(crate) fn find(&self, secret: &str, is_cookie: bool, now: Monotonic) -> Option<Session> {
        let mut open = self.lock();
        let session = open.get_mut(&hash_secret(secret))?;
        if session.is_cookie != is_cookie || !self.is_open(session, now) {
            return None;
        }
        session.used_at = now;
        Some(session.clone())
    }

    /// Finds an open session without counting as a use: for event streams.
    pub(crate) fn peek(&self, secret: &str, now: Monotonic) -> Option<Session> {
        self.lock().get(&hash_secret(secret)).filter(|session| self.is_open(session, now)).cloned()
    }

    pub(crate) fn end(&self, secret: &str) {
        self.lock().remove(&hash_secret(secret));
    }

    /// Ends all sessions of a user except one. Returns how many.
    pub(crate) fn end_all(&self, username: &str, except: Option<&str>) -> usize {
        let except = except.map(hash_secret);
        let mut open = self.lock();
        let before = open.len();
        open.retain(|key, session| session.username != username || Some(key) == except.as_ref());
        before - open.len()
    }

    /// Open sessions by user: their number, and whether a provider assigned the roles.
    pub(crate) fn counts(&self, now: Monotonic) -> BTreeMap<String, (usize, bool)> {
        let mut all: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        for session in self.lock().values().filter(|session| self.is_open(session, now)) {
            let known = all.entry(session.username.clone()).or_default();
            *known = (known.0 + 1, session.roles.is_some());
        }
        all
    }

    fn is_open(&self, session: &Session, now: Monotonic) -> bool {
        now.saturating_since(session.created_at) < MAX_AGE
            && now.saturating_since(session.used_at) < self.max_idle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        // No code panics while holding this lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn session_ends_when_idle_or_too_old() {
        let sessions = Sessions::new(Duration::from_mins(30));
        let (_, secret) = sessions.create("ann", true, None, at(0)).unwrap();

        assert!(sessions.find(&secret, true, at(29 * 60)).is_some());
        assert!(
            sessions.find(&secret, false, at(29 * 60)).is_none(),
            "a cookie secret is not accepted in a header"
        );
        assert!(sessions.find(&secret, true, at(58 * 60)).is_some());
        assert!(sessions.find(&secret, true, at(58 * 60 + 30 * 60)).is_none());

        let (_, secret) = sessions.create("ann", true, None, at(0)).unwrap();
        let ages = (0..13 * 60).step_by(20).map(|minutes| at(minutes * 60));
        let open = ages.take_while(|now| sessions.find(&secret, true, *now).is_some()).count();
        assert_eq!(open, 12 * 3);
    }

    #[test]
    fn ending_sessions_leaves_others_open() {
        let sessions = Sessions::new(Duration::from_mins(30));
        let [one, other, third] =
            ["ann", "ann", "bob"].map(|name| sessions.create(name, true, None, at(0)).unwrap().1);

        sessions.end_all("ann", Some(&other));

        let open = [&one, &other, &third].map(|secret| sessions.peek(secret, at(1)).is_some());
        assert_eq!(open, [false, true, true]);
        sessions.end(&other);
        assert!(sessions.peek(&other, at(1)).is_none());
    }
}
