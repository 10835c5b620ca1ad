//! Connections to the history stores: at most one per registry.
//!
//! A store is opened on first use. After a failure it is not tried again for a few seconds, so that requests fail fast. An administrator can add
//! only stores on allowed hosts, by URLs that read no local files.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    history::{HistoryUrl, Run, Store, StoreError},
    runtime::{Clock, Monotonic, Tasks},
};
use tokio::sync::broadcast;

use super::run_changes;
use crate::{
    http::problem::{Code, Problem},
    registries::catalog::{Catalog, CatalogEntry, EntryInfo},
};

/// How long a request waits for a store to open.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a store is not tried again after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// Runs that a subscriber may lag behind.
const BACKLOG: usize = 1_024;

/// All history connections, by registry.
pub(crate) type HistoryConnections = Catalog<HistoryConnection>;

/// The history store of a registry, under the registry's name.
#[derive(Debug)]
pub(crate) struct HistoryConnection {
    info: EntryInfo,
    pub(crate) url: HistoryUrl,
    state: tokio::sync::Mutex<StoreState>,
    /// New and changed runs; `None` if some may have been missed.
    pub(super) run_changes: broadcast::Sender<Option<Arc<Run>>>,
    /// Polls for them; started by the first subscriber.
    pub(super) poller: Mutex<Option<Tasks>>,
}

#[derive(Debug, Default)]
enum StoreState {
    #[default]
    Idle,
    Open(Store),
    Down(Monotonic, Problem),
}

impl HistoryConnections {
    /// Opens the history store of a registry.
    pub(crate) async fn store(&self, registry: &str) -> Result<Store, Problem> {
        let history = self.get(registry).ok_or_else(|| no_history(registry))?;
        history.store(&**self.clock()).await
    }

    /// Subscribes to new and changed runs; `None` if the registry has no history.
    pub(crate) fn subscribe(
        &self,
        registry: &str,
    ) -> Option<broadcast::Receiver<Option<Arc<Run>>>> {
        let history = self.get(registry)?;
        let changes = history.run_changes.subscribe();
        let mut poller = history.poller.lock().unwrap_or_else(PoisonError::into_inner);
        if poller.is_none() {
            let mut tasks = Tasks::new();
            let clock = Arc::clone(self.clock());
            tasks.spawn(run_changes::poll_runs(Arc::downgrade(&history), clock));
            *poller = Some(tasks);
        }
        Some(changes)
    }

    /// Removes the history of a removed registry if it was added: a registry added under the same name later is a different one.
    pub(crate) fn remove_if_added(&self, registry: &str) -> Result<(), Problem> {
        match self.get(registry) {
            Some(history) if history.is_added => self.remove(registry),
            _ => Ok(()),
        }
    }
}

impl Deref for HistoryConnection {
    type Target = EntryInfo;

    fn deref(&self) -> &EntryInfo {
        &self.info
    }
}

impl CatalogEntry for HistoryConnection {
    type Url = HistoryUrl;
    type Settings = ();

    const KIND: &'static str = "histories";
    const FIELD: &'static str = "registry";
    const FLAG: &'static str = "--history";
    const CONFIG_TABLE: &'static str = "addHistories";

    fn new(info: EntryInfo) -> Result<Self, Problem> {
        Ok(Self {
            url: parse_url(&info.raw_url)?,
            info,
            state: tokio::sync::Mutex::default(),
            run_changes: broadcast::Sender::new(BACKLOG),
            poller: Mutex::new(None),
        })
    }

    fn parse_addable(text: &str) -> Result<(HistoryUrl, Vec<String>), Problem> {
        let host = database_host(text)?.to_owned();
        Ok((parse_url(text)?, vec![host]))
    }

    fn describe(name: &str) -> String {
        format!("the history of {name}")
    }

    fn not_found(name: &str) -> Problem {
        no_history(name)
    }
}

impl HistoryConnection {
    /// Returns the store, opening it if necessary.
    pub(crate) async fn store(&self, clock: &dyn Clock) -> Result<Store, Problem> {
        let mut state = self.state.lock().await;
        match &*state {
            StoreState::Open(store) => return Ok(store.clone()),
            StoreState::Down(since, problem)
                if clock.monotonic().saturating_since(*since) < RETRY_PAUSE =>
            {
                return Err(problem.clone());
            }
            StoreState::Down(..) | StoreState::Idle => {}
        }
        match open_store(&self.url, clock).await {
            Ok(store) => {
                *state = StoreState::Open(store.clone());
                Ok(store)
            }
            Err(problem) => {
                let problem = problem.with_retry_after(RETRY_PAUSE.as_secs());
                *state = StoreState::Down(clock.monotonic(), problem.clone());
                Err(problem)
            }
        }
    }

    /// Whether the store is open, and the problem if not.
    pub(crate) fn status(&self) -> (bool, Option<String>) {
        match self.state.try_lock().as_deref() {
            Ok(StoreState::Open(_)) => (true, None),
            Ok(StoreState::Down(_, problem)) => (false, Some(problem.detail.clone())),
            Ok(StoreState::Idle) | Err(_) => (false, None),
        }
    }
}

/// Opens a store, with a timeout. A missing SQLite file is not created.
pub(crate) async fn open_store(url: &HistoryUrl, clock: &dyn Clock) -> Result<Store, Problem> {
    if url.file().is_some_and(|file| !file.exists()) {
        return Err(Problem::new(Code::Unreachable, format!("{url} does not exist"))
            .with_hint("elasticjob run and elasticjob dev create it"));
    }
    tokio::select! {
        store = Store::open(url) => Ok(store?),
        () = clock.sleep_until(clock.monotonic() + OPEN_TIMEOUT) => Err(Problem::new(
            Code::Unreachable,
            format!("the history store {url} does not answer"),
        ).with_hint("is the server running?")),
    }
}

pub(crate) fn no_history(registry: &str) -> Problem {
    Problem::new(Code::NoHistory, format!("registry {registry} has no history store")).with_hint(
        format!("elasticjob console --history {registry}=URL, or POST /api/v1/histories"),
    )
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            // A wrong URL is the client's mistake; the field is added by the caller.
            StoreError::Url { problem, hint } => {
                Self::new(Code::Invalid, problem.as_str()).with_hint(hint)
            }
            _ => Self::of(Code::Unreachable, &error),
        }
    }
}

fn parse_url(text: &str) -> Result<HistoryUrl, Problem> {
    text.parse().map_err(|error: StoreError| Problem::from(error).with_field("url"))
}

/// The host of a database URL. Rejects everything that could lead elsewhere: sockets, files, and hosts in query parameters.
fn database_host(text: &str) -> Result<&str, Problem> {
    let invalid = |text: &str| {
        let hint = "postgres://user:password@host:5432/database or mysql://…, and at most sslmode or ssl-mode";
        Problem::invalid("url", text).with_hint(hint)
    };
    if text.chars().any(|character| !character.is_ascii_graphic() || "#\\".contains(character)) {
        return Err(invalid("the URL contains an invalid character"));
    }
    let (scheme, rest) =
        text.split_once("://").ok_or_else(|| invalid("not the URL of a database server"))?;
    if !["postgres", "postgresql", "mysql", "mariadb"].contains(&scheme) {
        return Err(invalid("not the URL of a database server"));
    }
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let name = parameter.split('=').next().unwrap_or_default();
        if !["sslmode", "ssl-mode"].contains(&name) {
            return Err(invalid("this parameter is not allowed here"));
        }
    }
    let authority = location.split('/').next().unwrap_or_default();
    let address = authority.rsplit('@').next().unwrap_or_default();
    let host = match address.strip_prefix('[').and_then(|address| address.split_once(']')) {
        Some((host, _)) => host,
        None => address.split(':').next().unwrap_or_default(),
    };
    let is_valid = host
        .chars()
        .all(|character| character.is_ascii_alphanumeric() || ".-_:".contains(character));
    if host.is_empty() || !is_valid {
        return Err(invalid("the URL names no host"));
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use elasticjob::runtime::SystemClock;

    use super::*;
    use crate::registries::catalog::AdditionPolicy;

    fn open(additions: AdditionPolicy) -> HistoryConnections {
        HistoryConnections::open(&[], additions, None, Arc::new(SystemClock)).unwrap()
    }

    #[test]
    fn only_listed_hosts_can_be_added() {
        let allowed_hosts = vec!["db1".to_owned(), "*.db.example.com".to_owned()];
        let histories = open(AdditionPolicy { is_enabled: true, allowed_hosts });

        for url in [
            "postgres://jane:x@db1:5432/h",
            "mysql://a.db.example.com/h",
            "postgres://jane:a@b@db1/h?sslmode=require",
        ] {
            assert!(histories.check_addable(url).is_ok(), "{url}");
        }
        for url in [
            "sqlite:/etc/passwd",
            "sqlite::memory:",
            "postgres://169.254.169.254/h",
            "postgres://db1@evil/h",
            "postgres://db1/h?host=/var/run/postgresql",
            "postgres://db1/h?hostaddr=10.0.0.1",
            "postgres://db1/h?sslrootcert=/etc/passwd",
            "postgres://%2Fvar%2Frun/h",
            "postgres:///h",
            "mysql://db1\t.evil/h",
            "mysql://db1/h#@evil",
            "jdbc:mysql://db1/h",
        ] {
            let problem = histories.check_addable(url).unwrap_err();
            let rejection = (problem.code, problem.field.as_deref());
            assert_eq!(rejection, (Code::Invalid, Some("url")), "{url}");
        }
        let off = open(AdditionPolicy::default()).check_addable("postgres://db1/h").unwrap_err();
        assert_eq!(off.code, Code::Refused);
    }
}
