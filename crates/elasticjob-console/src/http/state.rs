//! What all requests share.

use std::{sync::Arc, time::Duration};

use elasticjob::runtime::Clock;

use super::{
    detached_changes::Errands,
    problem::{Code, Problem},
};
use crate::{
    audit::{
        refusals::Refusals,
        trail::{Audit, Entry},
    },
    auth::{
        accounts::Accounts,
        oidc::Oidc,
        proxies::Proxies,
        routes::seconds,
        sessions::Sessions,
        throttle::{AN_ADDRESS, SOMEBODY, Throttle},
    },
    history::stores::Books,
    jobs::trigger::Keys,
    registries::connections::Registries,
};

/// What all requests share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registries: Registries,
    pub(crate) books: Books,
    pub(crate) accounts: Accounts,
    pub(crate) sessions: Sessions,
    pub(crate) throttle: Throttle,
    /// Who is believed about where a request comes from.
    pub(crate) proxies: Proxies,
    /// Where else somebody may log in.
    pub(crate) oidc: Option<Oidc>,
    pub(crate) audit: Audit,
    /// Changes that are under way.
    pub(crate) errands: Errands,
    /// How much was refused to whom.
    pub(crate) refusals: Refusals,
    /// Triggers that were asked for with a key.
    pub(crate) keys: Keys,
    /// Which registry a user of the ancestor's paths has chosen.
    pub(crate) choices: crate::legacy::Choices,
    /// Whether browsers come by HTTPS.
    pub(crate) is_secure: bool,
}

impl Shared {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        (registries, books): (Registries, Books),
        (accounts, oidc): (Accounts, Option<Oidc>),
        audit: Audit,
        proxies: Proxies,
        idle: Duration,
        is_secure: bool,
    ) -> Self {
        Self(Arc::new(Inner {
            clock,
            registries,
            books,
            accounts,
            sessions: Sessions::new(idle),
            throttle: Throttle::default(),
            proxies,
            oidc,
            audit,
            errands: Errands::default(),
            refusals: Refusals::default(),
            keys: Keys::default(),
            choices: crate::legacy::Choices::default(),
            is_secure,
        }))
    }

    /// Whether that is the password, if it may be tried now.
    pub(crate) async fn check_password(
        &self,
        username: &str,
        password: &str,
        address: Option<&str>,
    ) -> Result<(), Problem> {
        // The same name from elsewhere is somebody else: nobody can be locked out from afar. One address that tries many names is one, but many people may
        // come from one address: it may be wrong more often.
        let address = address.unwrap_or_default();
        let keys =
            [(format!("{username}\n{address}"), SOMEBODY), (format!("\n{address}"), AN_ADDRESS)];
        if let Err(wait) = self.throttle.try_now(&keys, self.clock.monotonic()) {
            let wait = seconds(wait);
            let text = format!("too many passwords were wrong; hint: wait {wait} s");
            return Err(Problem::new(Code::TooManyRequests, text).after(wait));
        }
        if self.accounts.knows(username, password).await? {
            self.throttle.forgive(&keys);
            return Ok(());
        }
        let typed: String = username.chars().take(64).collect();
        let from = Some(address.to_owned());
        let mut entry = Entry::of_login(self.clock.now(), &typed, "login", from);
        entry.problem = Some("wrong name or password".to_owned());
        self.audit.add(entry);
        Err(Problem::new(Code::NotAuthenticated, "that is not the name and password of an account"))
    }
}

impl std::ops::Deref for Shared {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
