//! Pending logins: the browser is at the provider and has not come back yet.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;

use crate::{
    auth::{hash_secret, random_secret},
    http::problem::Problem,
};

/// How long a user may take at the provider.
pub(super) const MAX_AGE: Duration = Duration::from_mins(10);
/// When exceeded, the oldest pending login is dropped.
const MAX_LOGINS: usize = 1_000;

#[derive(Debug, Clone)]
pub(super) struct PendingLogin {
    /// Returned by the provider in the redirect; binds the redirect to this login.
    pub(super) state: String,
    /// Contained in the id token; binds the token to this login.
    pub(super) nonce: String,
    /// PKCE verifier: proves that the code is redeemed by the client that requested it.
    pub(super) verifier: String,
    /// Where the browser goes after the login.
    pub(super) return_to: String,
    created_at: Monotonic,
}

/// All pending logins, by the hash of their cookies.
#[derive(Debug, Default)]
pub(super) struct PendingLogins(Mutex<HashMap<String, PendingLogin>>);

impl PendingLogins {
    /// Returns the login and the cookie that binds it to the browser.
    pub(super) fn create(
        &self,
        return_to: String,
        now: Monotonic,
    ) -> Result<(PendingLogin, String), Problem> {
        let cookie = random_secret(32)?;
        let login = PendingLogin {
            state: random_secret(32)?,
            nonce: random_secret(32)?,
            verifier: random_secret(32)?,
            return_to,
            created_at: now,
        };
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.retain(|_, login| now.saturating_since(login.created_at) < MAX_AGE);
        if pending.len() >= MAX_LOGINS
            && let Some(oldest) = pending.iter().min_by_key(|(_, login)| login.created_at)
        {
            let oldest = oldest.0.clone();
            pending.remove(&oldest);
        }
        pending.insert(hash_secret(&cookie), login.clone());
        Ok((login, cookie))
    }

    /// Takes the login of this cookie, if the state matches. It is used up either way.
    pub(super) fn take(&self, cookie: &str, state: &str, now: Monotonic) -> Option<PendingLogin> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let login = pending.remove(&hash_secret(cookie))?;
        let is_valid = login.state == state && now.saturating_since(login.created_at) < MAX_AGE;
        is_valid.then_some(login)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn pending_login_is_valid_once_in_its_browser_until_it_expires() {
        let logins = PendingLogins::default();
        let begin = || logins.create("/".to_owned(), at(0)).unwrap();

        let (login, cookie) = begin();
        assert!(logins.take("another", &login.state, at(1)).is_none());
        assert_eq!(logins.take(&cookie, &login.state, at(1)).unwrap().nonce, login.nonce);
        assert!(logins.take(&cookie, &login.state, at(1)).is_none(), "once");

        let (login, cookie) = begin();
        assert!(logins.take(&cookie, "guess", at(1)).is_none());
        assert!(logins.take(&cookie, &login.state, at(1)).is_none(), "valid for one attempt");

        let (login, cookie) = begin();
        assert!(logins.take(&cookie, &login.state, at(600)).is_none(), "too late");
    }

    #[test]
    fn pending_logins_are_capped() {
        let logins = PendingLogins::default();
        let (first, cookie) = logins.create("/".to_owned(), at(0)).unwrap();
        for _ in 0..MAX_LOGINS {
            logins.create("/".to_owned(), at(1)).unwrap();
        }

        assert!(logins.take(&cookie, &first.state, at(2)).is_none());
        assert!(logins.0.lock().unwrap().len() <= MAX_LOGINS);
    }
}
