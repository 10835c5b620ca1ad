//! State shared by all requests.

use std::{sync::Arc, time::Duration};

use elasticjob::runtime::Clock;

use super::{
    body::Bodies,
    detached_changes::DetachedChanges,
    folder_lock::FolderLock,
    limits::Limits,
    problem::Problem,
    stores::Stores,
    streams::{StreamSlot, Streams},
};
use crate::{
    audit::{limiter::EntryLimiter, trail::AuditTrail},
    auth::{
        accounts::Accounts, caller::Caller, familiar::FamiliarNetworks, oidc::Oidc,
        proxies::TrustedProxies, sessions::Sessions, throttle::Throttle,
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
    /// Where users logged in before.
    pub(crate) familiar: FamiliarNetworks,
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
    pub(crate) refusals: EntryLimiter,
    /// Limits how many failed logins are audited.
    pub(crate) failed_logins: EntryLimiter,
    /// Responses to triggers with an `Idempotency-Key`.
    pub(crate) idempotency_keys: IdempotencyKeys,
    /// The registry that each user of the legacy API has selected.
    pub(crate) selected_registries: crate::legacy::SelectedRegistries,
    /// Browsers reach the console by HTTPS.
    pub(crate) is_https: bool,
    /// Held as long as a request may write to the data folder.
    _folder_lock: Option<FolderLock>,
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
        let Stores { registries, histories, accounts, familiar, audit, folder_lock } = stores;
        Self(Arc::new(AppStateInner {
            clock,
            registries,
            histories,
            accounts,
            sessions: Sessions::new(session_idle),
            throttle: Throttle::default(),
            familiar,
            proxies,
            oidc,
            audit,
            bodies: Bodies::default(),
            streams: Streams::new(limits),
            detached_changes: DetachedChanges::default(),
            refusals: EntryLimiter::of_refusals(),
            failed_logins: EntryLimiter::of_failed_logins(),
            idempotency_keys: IdempotencyKeys::default(),
            selected_registries: crate::legacy::SelectedRegistries::default(),
            is_https,
            _folder_lock: folder_lock,
        }))
    }

    /// Opens a response that lasts.
    pub(crate) fn open_stream(&self, caller: &Caller) -> Result<StreamSlot, Problem> {
        let client = caller.source.and_then(|source| source.client);
        self.streams.open(&caller.username, client)
    }
}

#[cfg(test)]
impl AppState {
    /// The state of a console without registries, accounts and files.
    pub(crate) fn in_memory() -> Self {
        use super::console::{Console, FirstAccount};
        use crate::registries::catalog::AdditionPolicy;
        use elasticjob::{job::ShardLimit, runtime::SystemClock};

        let console = Console {
            registries: Vec::new(),
            histories: Vec::new(),
            listen: ([127, 0, 0, 1], 0).into(),
            data_dir: None,
            hosts: Vec::new(),
            proxies: TrustedProxies::default(),
            is_https: false,
            tls: None,
            session_idle: Duration::from_hours(1),
            limits: Limits::default(),
            registry_additions: AdditionPolicy::default(),
            history_additions: AdditionPolicy::default(),
            oidc: None,
            first_account: FirstAccount::Root,
            max_shards: ShardLimit::DEFAULT,
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let stores = Stores::open(&console, &clock).unwrap();
        let (idle, limits) = (console.session_idle, console.limits);
        Self::new(clock, stores, None, console.proxies, idle, limits, false)
    }
}

impl std::ops::Deref for AppState {
    type Target = AppStateInner;

    fn deref(&self) -> &AppStateInner {
        &self.0
    }
}
