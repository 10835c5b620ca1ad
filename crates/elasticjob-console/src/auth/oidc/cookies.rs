//! The pending logins of one browser, each in a cookie of its own: two tabs may log in at the same time.
//!
//! There are [`MAX_LOGINS`] of these cookies, so that abandoned logins do not pile up in the browser; the next login replaces the oldest.

use axum::http::{HeaderMap, HeaderValue};
use elasticjob::runtime::Monotonic;

use super::{
    LoginSeal,
    logins::{MAX_AGE, PendingLogin},
    routes::LOGIN_PATH,
};
use crate::{
    auth::caller::{cookie, cookie_name},
    http::{
        problem::{Code, Problem},
        state::AppState,
    },
};

/// Prefix of the cookies' names.
const LOGIN_COOKIE: &str = "elasticjob_oidc_";
const MAX_LOGINS: usize = 3;

/// Number of a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(usize);

impl Slot {
    fn name(self, app: &AppState) -> String {
        cookie_name(&format!("{LOGIN_COOKIE}{}", self.0), app)
    }

    /// The slot for a new login: one without a valid login, else that of the oldest.
    pub(super) fn for_new(
        headers: &HeaderMap,
        seal: &LoginSeal,
        now: Monotonic,
        app: &AppState,
    ) -> Self {
        let created_at =
            |slot: &Self| slot.login(headers, seal, now, app).map(|login| login.created_at);
        (0..MAX_LOGINS).map(Self).min_by_key(created_at).unwrap_or(Self(0))
    }

    /// The login with this state, and its slot.
    pub(super) fn find(
        headers: &HeaderMap,
        state: &str,
        seal: &LoginSeal,
        now: Monotonic,
        app: &AppState,
    ) -> Option<(Self, PendingLogin)> {
        let mut logins = (0..MAX_LOGINS)
            .map(Self)
            .filter_map(|slot| Some((slot, slot.login(headers, seal, now, app)?)));
        logins.find(|(_, login)| login.state == state)
    }

    fn login(
        self,
        headers: &HeaderMap,
        seal: &LoginSeal,
        now: Monotonic,
        app: &AppState,
    ) -> Option<PendingLogin> {
        seal.open(cookie(headers, &self.name(app))?, now)
    }

    /// The cookie that the browser sends when it returns from the provider; an empty one deletes it. `Lax`, because that navigation comes from
    /// another site.
    pub(super) fn cookie(self, sealed: &str, app: &AppState) -> Result<HeaderValue, Problem> {
        // Browsers accept the name of a secure console with this path only.
        let (path, secure) = if app.is_https { ("/", "; Secure") } else { (LOGIN_PATH, "") };
        let age = if sealed.is_empty() { 0 } else { MAX_AGE.as_secs() };
        let name = self.name(app);
        let cookie =
            format!("{name}={sealed}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
        HeaderValue::try_from(cookie)
            .map_err(|_| Problem::new(Code::Internal, "cannot encode the cookie"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::header;

    use super::*;

    #[test]
    fn new_login_takes_a_free_slot_or_that_of_the_oldest() {
        let (app, seal) = (AppState::in_memory(), LoginSeal::new().unwrap());
        let at = |seconds| Monotonic::from_start(Duration::from_secs(seconds));
        let headers = |created_at: &[(usize, u64)]| {
            let cookies = created_at.iter().map(|(slot, seconds)| {
                let login = PendingLogin::new("/".to_owned(), at(*seconds)).unwrap();
                format!("{LOGIN_COOKIE}{slot}={}", seal.seal(&login).unwrap())
            });
            let cookies = cookies.collect::<Vec<_>>().join("; ");
            HeaderMap::from_iter([(header::COOKIE, cookies.parse().unwrap())])
        };
        let next = |created_at: &[(usize, u64)], now| {
            Slot::for_new(&headers(created_at), &seal, at(now), &app).0
        };

        assert_eq!(next(&[], 0), 0);
        assert_eq!(next(&[(0, 1)], 2), 1);
        assert_eq!(next(&[(0, 3), (1, 2), (2, 4)], 5), 1, "the oldest");
        assert_eq!(next(&[(0, 100), (1, 2), (2, 604)], 605), 1, "one that has expired");
    }
}
