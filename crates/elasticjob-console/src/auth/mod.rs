//! Authenticates callers and checks their roles.
//!
//! * [`accounts`] — names, argon2 hashes, roles by registry, API tokens; stored in a file.
//! * [`sessions`] — logged-in users; kept in memory, so a restart logs everyone out.
//! * [`password`] — checks a password; [`throttle`] — limits attempts, with `lane` and `turns`; [`familiar`] — where users logged in before;
//!   [`hash_queue`] — limits hashes; [`proxies`] — trusted proxies and the client address.
//! * [`oidc`] — login through an OpenID Connect provider.
//! * [`caller`] — the authenticated caller, by cookie, API token, access token or password. Roles are looked up for every request, so that a
//!   revoked role is lost at once.
//! * [`routes`] — login, logout, accounts, tokens.
//!
//! Cookies are for browsers only: a change by cookie needs the session's CSRF token in a header, which another site can neither read nor send.
//! Tokens are for programs only: they change no accounts, tokens and sessions.

pub(crate) mod accounts;
pub(crate) mod caller;
pub(crate) mod familiar;
mod hash_queue;
mod lane;
pub(crate) mod oidc;
mod password;
mod password_hasher;
pub(crate) mod proxies;
pub(crate) mod routes;
pub(crate) mod sessions;
pub(crate) mod throttle;
mod turns;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};

use crate::http::problem::{Code, Problem};

/// Random bytes, Base64-encoded.
pub(crate) fn random_secret(bytes: usize) -> Result<String, Problem> {
    let mut secret = vec![0; bytes];
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| Problem::new(Code::Internal, "cannot get random bytes from the system"))?;
    Ok(BASE64.encode(secret))
}

/// The SHA-256 of a random secret. Only this is stored; a random secret needs no slow hash.
pub(crate) fn hash_secret(secret: &str) -> String {
    BASE64.encode(digest(&SHA256, secret.as_bytes()))
}
