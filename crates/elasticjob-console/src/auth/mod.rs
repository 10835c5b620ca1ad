//! Who asks, and what they may.
//!
//! * [`accounts`] — names, argon2 hashes, roles by registry, API tokens; in a file.
//! * [`sessions`] — who logged in; in memory: a restart logs everybody out.
//! * [`throttle`] — how often a password may be tried; [`proxies`] — who is believed about where a request comes from.
//! * [`oidc`] — logging in at somebody else's door.
//! * [`who`] — the one who asks, by cookie, API token, access token or password; roles are looked up at every request, so that what is taken away is gone at once.
//! * [`routes`] — logging in and out, accounts, tokens.
//!
//! Cookies are for browsers alone: a change by cookie needs the session's CSRF token in a header, which another site cannot read or send.

pub(crate) mod accounts;
pub(crate) mod oidc;
pub(crate) mod proxies;
pub(crate) mod routes;
pub(crate) mod sessions;
pub(crate) mod throttle;
pub(crate) mod caller;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};

use crate::http::problem::{Code, Problem};

/// So many random bytes, as text.
pub(crate) fn random_secret(bytes: usize) -> Result<String, Problem> {
    let mut secret = vec![0; bytes];
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| Problem::new(Code::Internal, "this machine has no randomness"))?;
    Ok(BASE64.encode(secret))
}

/// What is kept of a secret that is random itself: nobody can go back from there.
pub(crate) fn hash_secret(secret: &str) -> String {
    BASE64.encode(digest(&SHA256, secret.as_bytes()))
}
