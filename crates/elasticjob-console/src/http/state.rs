//! State shared by all requests.

use std::{net::IpAddr, sync::Arc, time::Duration};

use elasticjob::runtime::Clock;

use super::{
    body::Bodies,
    client_network::ClientNetwork,
    detached_changes::DetachedChanges,
    limits::Limits,
    problem::{Code, Problem},
    stores::Stores,
    streams::{StreamSlot, Streams},
};
use crate::{
    audit::{
        refusals::RefusalLimiter,
        trail::{AuditTrail, Entry},
    },
    auth::{
        accounts::Accounts,
        caller::Caller,
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

/// State shared by all requests. Cheap to clone.
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
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub(crate) proxies: TrustedProxies,
    /// OpenID Connect provider, if any.
    pub(crate) oidc: Option<Oidc>,
    pub(crate) audit: AuditTrail,
    pub(super) bodies: Bodies,
    streams: Streams,
    /// Running changes.
    pub(crate) detached_changes: DetachedChanges,
    /// Limits how many refusals per user are audited.
    pub(crate) refusals: RefusalLimiter,
    /// Responses to triggers with an `Idempotency-Key`.
    pub(crate) idempotency_keys: IdempotencyKeys,
    /// The registry that each user of the legacy API has selected.
    pub(crate) selected_registries: crate::legacy::SelectedRegistries,
    /// Browsers reach the console by HTTPS.
    pub(crate) is_https: bool,
}

impl AppState {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        stores: Stores,
        oidc: Option<Oidc>,
        proxies: TrustedProxies,
        session_idle: Duration,
        limits: Limits,
        is_https: bool,
    ) -> Self {
        let Stores { registries, histories, accounts, audit } = stores;
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
            bodies: Bodies::default(),
            streams: Streams::new(limits),
            detached_changes: DetachedChanges::default(),
            refusals: RefusalLimiter::default(),
            idempotency_keys: IdempotencyKeys::default(),
            selected_registries: crate::legacy::SelectedRegistries::default(),
            is_https,
        }))
    }

    /// The client for which a request counts; `None` for a trusted proxy that does not tell whom it forwards: it may stand for all clients.
    pub(crate) fn client_network(&self, address: IpAddr) -> Option<ClientNetwork> {
        (!self.proxies.trusts(address)).then(|| address.into())
    }

    /// Opens a response that lasts.
    pub(crate) fn open_stream(&self, caller: &Caller) -> Result<StreamSlot, Problem> {
        let address = caller.address.as_deref().and_then(|address| address.parse().ok());
        let client = address.and_then(|address| self.client_network(address));
        self.streams.open(&caller.username, client)
    }

    /// Checks a password, subject to the throttle.
    pub(crate) async fn check_password(
        &self,
        username: &str,
        password: &str,
        address: Option<&str>,
    ) -> Result<(), Problem> {
        // Failures count per name and address, so that an account cannot be locked out from another address. They also count per address, so that
        // one client cannot try many names; since many users may share an address, that limit is higher.
        let address = address.unwrap_or_default();
        let keys = [
            (format!("{username}\n{address}"), TRIES_PER_NAME),
            (format!("\n{address}"), TRIES_PER_ADDRESS),
        ];
        if let Err(wait) = self.throttle.try_now(&keys, self.clock.monotonic()) {
            let wait = whole_seconds(wait);
            let text = "too many wrong passwords";
            return Err(Problem::new(Code::TooManyRequests, text)
                .with_hint(format!("wait {wait} s"))
                .with_retry_after(wait));
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
        Err(Problem::new(Code::NotAuthenticated, "wrong username or password"))
    }
}

impl std::ops::Deref for AppState {
    type Target = AppStateInner;

    fn deref(&self) -> &AppStateInner {
        &self.0
    }
}
