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
/// Sessions of a user, by cookie and by access token each. When exceeded, the user's least recently used one ends.
const MAX_PER_USER: usize = 100;
/// When exceeded, the least recently used session of the user with the most sessions ends, so that no user can end those of others.
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
        make_room(&mut open, username, is_cookie);
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

/// Ends a session if the user, or all users together, have too many.
fn make_room(open: &mut HashMap<String, Session>, username: &str, is_cookie: bool) {
    let is_same =
        |session: &Session| session.username == username && session.is_cookie == is_cookie;
    if open.values().filter(|session| is_same(session)).count() >= MAX_PER_USER {
        end_oldest(open, is_same);
    } else if open.len() >= MAX_SESSIONS {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for session in open.values() {
            *counts.entry(&session.username).or_default() += 1;
        }
        let busiest = counts.into_iter().max_by_key(|(_, count)| *count);
        let busiest = busiest.map(|(username, _)| username.to_owned()).unwrap_or_default();
        end_oldest(open, |session| session.username == busiest);
    }
}

/// Ends the least recently used of the sessions that match.
fn end_oldest(open: &mut HashMap<String, Session>, matches: impl Fn(&Session) -> bool) {
    let matching = open.iter().filter(|(_, session)| matches(session));
    if let Some(key) = matching.min_by_key(|(_, session)| session.used_at).map(|it| it.0.clone()) {
        open.remove(&key);
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
    fn user_with_too_many_sessions_ends_only_own_ones() {
        let sessions = Sessions::new(Duration::from_hours(1));
        let create =
            |name: &str, is_cookie, now| sessions.create(name, is_cookie, None, now).unwrap().1;
        let victim = create("ann", true, at(0));
        let mine = [create("eve", true, at(1)), create("eve", false, at(1))];
        let [second, ..] = [create("eve", true, at(2)), create("eve", false, at(2))];
        for _ in 0..MAX_PER_USER - 1 {
            create("eve", true, at(3));
        }

        assert!(sessions.peek(&victim, at(4)).is_some());
        let open = [&mine[0], &mine[1], &second].map(|it| sessions.peek(it, at(4)).is_some());
        assert_eq!(open, [false, true, true], "the least recently used one of the same kind ends");
        assert_eq!(sessions.counts(at(4))["eve"].0, MAX_PER_USER + 2);
    }

    #[test]
    fn full_table_ends_a_session_of_the_user_with_the_most() {
        let sessions = Sessions::new(Duration::from_hours(1));
        let create = |name: &str, now| sessions.create(name, true, None, now).unwrap().1;
        let victim = create("ann", at(0));
        let (template, _) = sessions.create("eve", true, None, at(1)).unwrap();
        for number in 2..MAX_SESSIONS {
            let username = format!("eve {}", number % 101);
            let session = Session { username, ..template.clone() };
            sessions.lock().insert(number.to_string(), session);
        }
        assert_eq!(sessions.lock().len(), MAX_SESSIONS);

        let newcomer = create("bob", at(2));

        assert_eq!(sessions.lock().len(), MAX_SESSIONS);
        let open = [&victim, &newcomer].map(|secret| sessions.peek(secret, at(2)).is_some());
        assert_eq!(open, [true, true]);
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
