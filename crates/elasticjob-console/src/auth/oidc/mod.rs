//! Login with `OpenID` Connect: the authorization code flow with PKCE.
//!
//! ```text
//!   browser ── GET /login/oidc ──▶ console ── 303, state, nonce, challenge ──▶ provider: authenticates the user
//!   browser ◀──────────────── 303, code, state ─────────────────────────────── provider
//!   browser ── GET /login/oidc/callback ──▶ console ── code, verifier, secret ──▶ provider
//!                                           console ◀── id token ──────────────── provider
//!                                           verifies signature, issuer, audience, expiry, nonce; claims ──▶ roles ──▶ session
//! ```
//!
//! * [`settings`] — the provider's settings in the configuration file; [`provider`] — requests to the provider, and its cached metadata.
//! * [`logins`] — pending logins: each is sealed in a cookie of its browser and valid for ten minutes. [`cookies`] — those of one browser.
//! * [`token`] — verifies an id token; [`claims`] — derives username and roles. Both are pure.
//! * [`routes`] — the two steps of a login, and the login methods for the login page.
//!
//! The provider is contacted only when a user logs in there, so one that is down does not affect users with a password. A user who logs in this way
//! has no account here: the provider determines the roles at login, and they hold as long as the session. Their names begin with `oidc:`, which no
//! account name can.

mod claims;
mod cookies;
mod logins;
mod provider;
pub(crate) mod routes;
mod settings;
mod token;

pub use self::settings::{OidcFile, Settings};
use self::{logins::LoginSeal, provider::Provider};
use crate::http::problem::Problem;

/// The provider, and the seal of pending logins.
#[derive(Debug)]
pub(crate) struct Oidc {
    provider: Provider,
    seal: LoginSeal,
}

impl Oidc {
    /// `console_url` is where browsers find this console, unless the settings override it.
    pub(crate) fn new(settings: Settings, console_url: &str) -> Result<Self, Problem> {
        Ok(Self { provider: Provider::new(settings, console_url)?, seal: LoginSeal::new()? })
    }
}
