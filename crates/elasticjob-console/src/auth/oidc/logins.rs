//! Pending logins: the browser is at the provider and has not come back yet.
//!
//! The browser itself carries its pending login, in a cookie that is sealed with a key of this process. So the console keeps nothing for a login
//! that was only begun: any number of them, by any client, affects no other. That a login is completed once is for the provider to ensure, which
//! accepts a code once; the console has the browser delete the cookie.

use std::{fmt, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use elasticjob::runtime::Monotonic;
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};

use crate::{
    auth::random_secret,
    http::problem::{Code, Problem},
};

/// How long a user may take at the provider.
pub(super) const MAX_AGE: Duration = Duration::from_mins(10);
/// Proxies accept a few thousand bytes of cookies, and a browser may have several logins pending.
const MAX_RETURN_TO: usize = 512;
/// Distinguishes this use of the key from any other.
const PURPOSE: &[u8] = b"oidc login";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingLogin {
    /// Returned by the provider in the redirect; binds the redirect to this login.
    pub(super) state: String,
    /// Contained in the id token; binds the token to this login.
    pub(super) nonce: String,
    /// PKCE verifier: proves that the code is redeemed by the client that requested it.
    pub(super) verifier: String,
    /// Where the browser goes after the login.
    pub(super) return_to: String,
    /// By the clock of this process, whose key seals the login.
    pub(super) created_at: Duration,
}

/// Seals pending logins with a key that only this process knows.
pub(super) struct LoginSeal(LessSafeKey);

impl PendingLogin {
    /// A path that is too long for a cookie is replaced by the first page.
    pub(super) fn new(return_to: String, now: Monotonic) -> Result<Self, Problem> {
        let return_to = if return_to.len() > MAX_RETURN_TO { "/".to_owned() } else { return_to };
        Ok(Self {
            state: random_secret(32)?,
            nonce: random_secret(32)?,
            verifier: random_secret(32)?,
            return_to,
            created_at: now.since_start(),
        })
    }
}

impl LoginSeal {
    pub(super) fn new() -> Result<Self, Problem> {
        let mut key = [0; 32];
        SystemRandom::new().fill(&mut key).map_err(|_| cannot_seal())?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).map_err(|_| cannot_seal())?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// The value of the cookie.
    pub(super) fn seal(&self, login: &PendingLogin) -> Result<String, Problem> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| cannot_seal())?;
        let mut sealed = serde_json::to_vec(login).map_err(|_| cannot_seal())?;
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(unique, Aad::from(PURPOSE), &mut sealed)
            .map_err(|_| cannot_seal())?;
        Ok(BASE64.encode([&nonce, &*sealed].concat()))
    }

    /// The login of this cookie, if this process sealed it and it has not expired.
    pub(super) fn open(&self, cookie: &str, now: Monotonic) -> Option<PendingLogin> {
        let sealed = BASE64.decode(cookie).ok()?;
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.0.open_in_place(nonce, Aad::from(PURPOSE), &mut sealed).ok()?;
        let login: PendingLogin = serde_json::from_slice(opened).ok()?;
        let age = now.saturating_since(Monotonic::from_start(login.created_at));
        (age < MAX_AGE).then_some(login)
    }
}

impl fmt::Debug for LoginSeal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LoginSeal(***)")
    }
}

fn cannot_seal() -> Problem {
    Problem::new(Code::Internal, "cannot seal the login")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn sealed_login_opens_until_it_expires() {
        let seal = LoginSeal::new().unwrap();
        let login = PendingLogin::new("/r/shop/jobs".to_owned(), at(5)).unwrap();
        let cookie = seal.seal(&login).unwrap();

        assert_eq!(seal.open(&cookie, at(5)).as_ref(), Some(&login));
        assert_eq!(seal.open(&cookie, at(604)).as_ref(), Some(&login));
        assert_eq!(seal.open(&cookie, at(605)), None, "too late");
        assert_ne!(cookie, seal.seal(&login).unwrap(), "each seal has its own nonce");
    }

    #[test]
    fn cookie_that_was_not_sealed_here_is_rejected() {
        let (seal, other) = (LoginSeal::new().unwrap(), LoginSeal::new().unwrap());
        let login = PendingLogin::new("/".to_owned(), at(0)).unwrap();
        let cookie = seal.seal(&login).unwrap();

        assert_eq!(other.open(&cookie, at(1)), None, "of another process");
        let bytes = BASE64.decode(&cookie).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            let changed = BASE64.encode(changed);
            assert_eq!(seal.open(&changed, at(1)), None, "byte {index}");
        }
        let plain = BASE64.encode(serde_json::to_vec(&login).unwrap());
        for forged in ["", "x", "AAAA", &plain, &cookie[..20], "é"] {
            assert_eq!(seal.open(forged, at(1)), None, "{forged:?}");
        }
    }

    #[test]
    fn cookie_shows_nothing_and_fits_into_a_browser() {
        let seal = LoginSeal::new().unwrap();
        let long = PendingLogin::new(format!("/{}", "x".repeat(511)), at(0)).unwrap();
        assert!(seal.seal(&long).unwrap().len() < 1_200);
        let longer = PendingLogin::new(format!("/{}", "x".repeat(512)), at(0)).unwrap();
        assert_eq!(longer.return_to, "/");

        let opened = BASE64.decode(seal.seal(&long).unwrap()).unwrap();
        let shown = String::from_utf8_lossy(&opened).into_owned();
        assert!(!shown.contains(&long.verifier) && !shown.contains("xxxx"));
    }
}
