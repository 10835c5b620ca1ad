//! Logging in at somebody else's door: `OpenID` Connect, the authorization code flow with PKCE.
//!
//! ```text
//!   browser ── GET /login/oidc ──▶ console ── 303, state, nonce, challenge ──▶ provider: who are you?
//!   browser ◀──────────────── 303, code, state ─────────────────────────────── provider
//!   browser ── GET /login/oidc/callback ──▶ console ── code, verifier, secret ──▶ provider
//!                                           console ◀── id token ──────────────── provider
//!                                           its signature, whose it is, for whom, until when, the nonce; claims ──▶ roles ──▶ session
//! ```
//!
//! * [`settings`] — what the configuration file says; [`provider`] — what is asked of the provider, and what it said last.
//! * [`logins`] — what was begun and waits for its browser: each is bound to a cookie, good for one try and for ten minutes.
//! * [`token`] — whether an id token is good; [`claims`] — who that is, and what they may. Both pure.
//! * [`routes`] — the two steps, and what the page that logs in has to know.
//!
//! Nothing is asked of the provider before somebody wants to log in there, so one that is down keeps nobody out who has a password. Whoever comes in this way has no
//! account here: what they may is said by the provider when they log in, and holds as long as the session. Their names begin with `oidc:`, which no account's can.

mod claims;
mod logins;
mod provider;
pub(crate) mod routes;
mod settings;
mod token;

pub use self::settings::{OidcFile, Settings};
use self::{logins::PendingLogins, provider::Provider};
use crate::http::problem::Problem;

/// The provider, and who is on the way there and back.
#[derive(Debug)]
pub(crate) struct Oidc {
    provider: Provider,
    logins: PendingLogins,
}

impl Oidc {
    /// `home` is where browsers find this console, if the settings do not say.
    pub(crate) fn new(settings: Settings, console_url: &str) -> Result<Self, Problem> {
        Ok(Self {
            provider: Provider::new(settings, console_url)?,
            logins: PendingLogins::default(),
        })
    }
}
