//! What all requests share.

use std::{sync::Arc, time::Duration};

use elasticjob::runtime::Clock;

use super::{
    detached_changes::DetachedChanges,
    problem::{Code, Problem},
};
use crate::{
    audit::{
        refusals::RefusalLimiter,
        trail::{AuditTrail, Entry},
    },
    auth::{
        accounts::Accounts,
        oidc::Oidc,
        proxies::TrustedProxies,
        routes::whole_seconds,
        sessions::Sessions,
        throttle::{TRIES_PER_ADDRESS, TRIES_PER_NAME, Throttle},
    },
    history::stores::HistoryConnections,
    jobs::trigger::IdempotencyKeys,
    registries::connections::Registries,
};

/// What all requests share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AppState(Arc<AppStateInner>);

#[derive(Debug)]
pub(crate) struct AppStateInner {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registries: Registries,
    pub(crate) histories: HistoryConnections,
    pub(crate) accounts: Accounts,
    pub(crate) sessions: Sessions,
    pub(crate) throttle: Throttle,
    /// Who is believed about where a request comes from.
    pub(crate) proxies: TrustedProxies,
    /// Where else somebody may log in.
    pub(crate) oidc: Option<Oidc>,
    pub(crate) audit: AuditTrail,
    /// Changes that are under way.
    pub(crate) detached_changes: DetachedChanges,
    /// How much was refused to whom.
    pub(crate) refusals: RefusalLimiter,
    /// Triggers that were asked for with a key.
    pub(crate) idempotency_keys: IdempotencyKeys,
    /// Which registry a user of the ancestor's paths has chosen.
    pub(crate) selected_registries: crate::legacy::SelectedRegistries,
    /// Whether browsers come by HTTPS.
    pub(crate) is_https: bool,
}

impl AppState {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        (registries, histories): (Registries, HistoryConnections),
        (accounts, oidc): (Accounts, Option<Oidc>),
        audit: AuditTrail,
        proxies: TrustedProxies,
        session_idle: Duration,
        is_https: bool,
    ) -> Self {
        Self(Arc::new(AppStateInner {
            clock,
            registries,
            histories,
            accounts,
            sessions: Sessions::new(session_idle),
            throttle: Throttle::default(),
            proxies,
            oidc,
            audit,
            detached_changes: DetachedChanges::default(),
            refusals: RefusalLimiter::default(),
            idempotency_keys: IdempotencyKeys::default(),
            selected_registries: crate::legacy::SelectedRegistries::default(),
            is_https,
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
        let keys = [
            (format!("{username}\n{address}"), TRIES_PER_NAME),
            (format!("\n{address}"), TRIES_PER_ADDRESS),
        ];
        if let Err(wait) = self.throttle.try_now(&keys, self.clock.monotonic()) {
            let wait = whole_seconds(wait);
            let text = format!("too many passwords were wrong; hint: wait {wait} s");
            return Err(Problem::new(Code::TooManyRequests, text).with_retry_after(wait));
        }
        if self.accounts.verify_password(username, password).await? {
            self.throttle.reset(&keys);
            return Ok(());
        }
        let shown_name: String = username.chars().take(64).collect();
        let from = Some(address.to_owned());
        let mut entry = Entry::login(self.clock.now(), &shown_name, "login", from);
        entry.problem = Some("wrong name or password".to_owned());
        self.audit.add(entry);
        Err(Problem::new(Code::NotAuthenticated, "that is not the name and password of an account"))
    }
}

impl std::ops::Deref for AppState {
    type Target = AppStateInner;

    fn deref(&self) -> &AppStateInner {
        &self.0
    }
}
