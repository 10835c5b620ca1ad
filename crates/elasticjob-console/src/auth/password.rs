//! Checks a password, subject to the throttle, and opens the session for it.

use super::{
    accounts::{StoredCredential, may_exist},
    proxies::RequestSource,
    routes::whole_seconds,
    sessions::Session,
};
use crate::{
    audit::trail::Entry,
    http::{
        client_network::ClientNetwork,
        problem::{Code, Problem},
        state::AppState,
    },
};
use serde_json::json;

/// Characters of a mistyped name that are audited.
const MAX_AUDITED_CHARS: usize = 64;

impl AppState {
    /// Returns what was verified.
    pub(crate) async fn check_password(
        &self,
        username: &str,
        password: &str,
        source: Option<RequestSource>,
    ) -> Result<StoredCredential, Problem> {
        let client = source.and_then(|source| source.client);
        let is_familiar = self.familiar.contains(username, client, self.clock.now());
        let now = self.clock.monotonic();
        let begun = self.throttle.begin(username, client, is_familiar, now);
        let mut attempt = begun.map_err(|wait| {
            let wait = whole_seconds(wait);
            Problem::new(Code::TooManyRequests, "too many wrong passwords")
                .with_hint(format!("wait {wait} s"))
                .with_retry_after(wait)
        })?;
        let verified = if may_exist(username, password) {
            let hash_queue = &self.accounts.hash_queue;
            let turn = if is_familiar {
                hash_queue.turn().await?
            } else {
                hash_queue.turn_of_stranger(client).await?
            };
            attempt.begin_check();
            self.accounts.verify_password(turn, username, password).await
        } else {
            attempt.begin_check();
            None
        };
        if let Some(credential) = verified {
            attempt.succeed();
            self.familiar.add(username, client, self.clock.now());
            return Ok(credential);
        }
        let shown_name: String = username.chars().take(MAX_AUDITED_CHARS).collect();
        let address = source.map(|source| source.address.to_string());
        let mut entry = Entry::login(self.clock.now(), &shown_name, "login", address);
        entry.problem = Some("wrong name or password".to_owned());
        self.audit_failed_login(entry, client);
        Err(wrong_password())
    }

    /// Audits a failed login, unless there are too many: the next one that is audited tells how many were not.
    pub(crate) fn audit_failed_login(&self, mut entry: Entry, client: Option<ClientNetwork>) {
        let key = format!("{} {client:?}", entry.username);
        let Some(suppressed) = self.failed_logins.record(&key, self.clock.monotonic()) else {
            return;
        };
        if suppressed > 0 {
            entry.result = json!({ "leftOut": suppressed });
        }
        self.audit.add(entry);
    }

    /// Opens a session for a password that was verified. Returns the session and its secret.
    ///
    /// A change of the password stores the new one first, and then ends all sessions. So a session that is opened too late to be ended is one
    /// whose password is not stored any more.
    pub(crate) fn open_session(
        &self,
        username: &str,
        credential: &StoredCredential,
        is_cookie: bool,
    ) -> Result<(Session, String), Problem> {
        let now = self.clock.monotonic();
        let (session, secret) = self.sessions.create(username, is_cookie, None, now)?;
        if self.accounts.has_credential(username, credential, self.clock.now()) {
            return Ok((session, secret));
        }
        self.sessions.end(&secret);
        Err(wrong_password())
    }
}

fn wrong_password() -> Problem {
    Problem::new(Code::NotAuthenticated, "wrong username or password")
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn flood_of_logins_waits_in_a_short_queue_and_delays_no_known_user_for_long() {
        let app = AppState::in_memory();
        app.accounts.create_first("ann", "the password").await.unwrap();
        let source = |number: u32| {
            let address = IpAddr::from(number.to_be_bytes());
            Some(RequestSource { address, client: Some(address.into()) })
        };
        app.check_password("ann", "the password", source(1)).await.unwrap();
        let hash_queue = &app.accounts.hash_queue;
        let busy = [hash_queue.turn().await.unwrap(), hash_queue.turn().await.unwrap()];

        let names: Vec<String> = (0..2_000).map(|number| format!("user {number}")).collect();
        let flood = names.iter().zip(100..);
        let flood = flood.map(|(name, number)| app.check_password(name, "guess", source(number)));
        let mut flood: Vec<_> = flood.map(Box::pin).collect();
        let refused: Vec<_> = flood.iter_mut().filter_map(FutureExt::now_or_never).collect();

        assert_eq!(flood.len() - refused.len(), 64, "the others wait");
        for refusal in refused {
            assert_eq!(refusal.unwrap_err().code, Code::TooManyRequests);
        }
        let mut known = Box::pin(app.check_password("ann", "the password", source(1)));
        assert!((&mut known).now_or_never().is_none(), "a known user has a place in the queue");
        drop((busy, flood));
        known.await.unwrap();
    }

    #[tokio::test]
    async fn password_that_changes_once_verified_opens_no_session() {
        let app = AppState::in_memory();
        app.accounts.create_first("ann", "old password").await.unwrap();
        let old = app.check_password("ann", "old password", None).await.unwrap();
        app.open_session("ann", &old, true).unwrap();

        app.accounts.put("ann", Some("new password".to_owned()), None).await.unwrap();
        app.sessions.end_all("ann", None);

        for is_cookie in [true, false] {
            let late = app.open_session("ann", &old, is_cookie);
            assert_eq!(late.unwrap_err().code, Code::NotAuthenticated);
        }
        assert!(app.sessions.counts(app.clock.monotonic()).is_empty());
    }
}
