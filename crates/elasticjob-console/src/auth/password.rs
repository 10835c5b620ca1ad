//! Checks a password, subject to the throttle.

use std::net::IpAddr;

use super::{accounts::may_exist, routes::whole_seconds};
use crate::{
    audit::trail::Entry,
    http::{
        problem::{Code, Problem},
        state::AppState,
    },
};

/// Characters of a mistyped name that are audited.
const MAX_AUDITED_CHARS: usize = 64;

impl AppState {
    pub(crate) async fn check_password(
        &self,
        username: &str,
        password: &str,
        address: Option<IpAddr>,
    ) -> Result<(), Problem> {
        let now = self.clock.monotonic();
        let mut attempt = self.throttle.begin(username, address, now).map_err(|wait| {
            let wait = whole_seconds(wait);
            Problem::new(Code::TooManyRequests, "too many wrong passwords")
                .with_hint(format!("wait {wait} s"))
                .with_retry_after(wait)
        })?;
        let is_right = if may_exist(username, password) {
            let turn = self.accounts.hash_turn().await?;
            attempt.begin_check();
            self.accounts.verify_password(turn, username, password).await
        } else {
            attempt.begin_check();
            false
        };
        if is_right {
            attempt.succeed(self.clock.monotonic());
            return Ok(());
        }
        let shown_name: String = username.chars().take(MAX_AUDITED_CHARS).collect();
        let address = address.map(|address| address.to_string());
        let mut entry = Entry::login(self.clock.now(), &shown_name, "login", address);
        entry.problem = Some("wrong name or password".to_owned());
        self.audit.add(entry);
        Err(Problem::new(Code::NotAuthenticated, "wrong username or password"))
    }
}
