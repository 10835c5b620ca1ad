//! Logins that were begun and wait for their browser to come back.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;

use crate::{
    auth::{imprint, secret},
    http::problem::Problem,
};

/// How long somebody may take at the provider.
pub(super) const LIFE: Duration = Duration::from_mins(10);
/// How many may be on their way; the oldest goes first.
const MOST: usize = 1_000;

/// A login that was begun.
#[derive(Debug, Clone)]
pub(super) struct Login {
    /// What the provider sends back, so that nobody else's answer is taken for this one's.
    pub(super) state: String,
    /// What the id token has in it, so that no other login's is taken for this one's.
    pub(super) nonce: String,
    /// What shows that whoever brings the code is who asked for it.
    pub(super) verifier: String,
    /// Where to go afterwards.
    pub(super) to: String,
    begun: Monotonic,
}

/// All of them, by the imprint of their cookies.
#[derive(Debug, Default)]
pub(super) struct Logins(Mutex<HashMap<String, Login>>);

impl Logins {
    /// Somebody wants to log in: the login, and the cookie that shows whose it is.
    pub(super) fn begin(&self, to: String, now: Monotonic) -> Result<(Login, String), Problem> {
        let cookie = secret(32)?;
        let login =
            Login { state: secret(32)?, nonce: secret(32)?, verifier: secret(32)?, to, begun: now };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, login| now.saturating_since(login.begun) < LIFE);
        if waiting.len() >= MOST
            && let Some(oldest) = waiting.iter().min_by_key(|(_, login)| login.begun)
        {
            let oldest = oldest.0.clone();
            waiting.remove(&oldest);
        }
        waiting.insert(imprint(&cookie), login.clone());
        Ok((login, cookie))
    }

    /// The login of this cookie, if the state is its. Right or wrong, it is over.
    pub(super) fn take(&self, cookie: &str, state: &str, now: Monotonic) -> Option<Login> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let login = waiting.remove(&imprint(cookie))?;
        let is_good = login.state == state && now.saturating_since(login.begun) < LIFE;
        is_good.then_some(login)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn a_login_is_good_for_one_try_in_its_own_browser_and_not_for_ever() {
        let logins = Logins::default();
        let begin = || logins.begin("/".to_owned(), at(0)).unwrap();

        let (login, cookie) = begin();
        assert!(logins.take("another", &login.state, at(1)).is_none());
        assert_eq!(logins.take(&cookie, &login.state, at(1)).unwrap().nonce, login.nonce);
        assert!(logins.take(&cookie, &login.state, at(1)).is_none(), "once");

        let (login, cookie) = begin();
        assert!(logins.take(&cookie, "guess", at(1)).is_none());
        assert!(logins.take(&cookie, &login.state, at(1)).is_none(), "one try");

        let (login, cookie) = begin();
        assert!(logins.take(&cookie, &login.state, at(600)).is_none(), "too late");
    }

    #[test]
    fn however_many_begin_only_so_many_are_kept() {
        let logins = Logins::default();
        let (first, cookie) = logins.begin("/".to_owned(), at(0)).unwrap();
        for _ in 0..MOST {
            logins.begin("/".to_owned(), at(1)).unwrap();
        }

        assert!(logins.take(&cookie, &first.state, at(2)).is_none());
        assert!(logins.0.lock().unwrap().len() <= MOST);
    }
}
