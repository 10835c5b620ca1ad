//! The databases that history is kept in, one for each registry that has any, and the line to each.
//!
//! A line is opened when it is first asked for. One that does not open is left alone for a moment, so that nobody waits for it again and again. What an
//! administrator adds is on hosts on the list, and nothing that reads files of this machine.

use std::{
    ops::Deref,
    path::PathBuf,
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
    registries::catalog::{AdditionPolicy, Catalog, CatalogEntry, EntryInfo},
};

/// How long a request waits for a database to open.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one that did not open is left alone.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How many runs a listener may be behind.
const BACKLOG: usize = 1_024;

/// All of them, by registry.
#[derive(Debug)]
pub(crate) struct HistoryConnections {
    catalog: Catalog<HistoryConnection>,
    clock: Arc<dyn Clock>,
}

impl Deref for HistoryConnections {
    type Target = Catalog<HistoryConnection>;

    fn deref(&self) -> &Catalog<HistoryConnection> {
        &self.catalog
    }
}

/// The history of a registry, under the registry's name.
#[derive(Debug)]
pub(crate) struct HistoryConnection {
    info: EntryInfo,
    pub(crate) url: HistoryUrl,
    state: tokio::sync::Mutex<StoreState>,
    /// Runs that are new or changed; nothing where some may have been missed.
    pub(super) run_changes: broadcast::Sender<Option<Arc<Run>>>,
    /// Who looks for them; nobody before somebody listens.
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
    /// Those that were named, and those that were added in former times.
    pub(crate) fn open(
        named: &[(String, String)],
        additions: AdditionPolicy,
        file: Option<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        Ok(Self { catalog: Catalog::open(named, additions, file)?, clock })
    }

    /// The history of a registry, open.
    pub(crate) async fn store(&self, registry: &str) -> Result<Store, Problem> {
        let history = self.get(registry).ok_or_else(|| no_history(registry))?;
        history.store(&*self.clock).await
    }

    /// Runs of a registry that are new or changed, from now on; nothing if it has no history.
    pub(crate) fn subscribe(
        &self,
        registry: &str,
    ) -> Option<broadcast::Receiver<Option<Arc<Run>>>> {
        let history = self.get(registry)?;
        let changes = history.run_changes.subscribe();
        let mut poller = history.poller.lock().unwrap_or_else(PoisonError::into_inner);
        if poller.is_none() {
            let mut tasks = Tasks::new();
            tasks.spawn(run_changes::poll_runs(Arc::downgrade(&history), Arc::clone(&self.clock)));
            *poller = Some(tasks);
        }
        Some(changes)
    }

    /// Takes one away if there is one that was added: what is added under the name of a registry later is another registry.
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

    const KIND: &'static str = "histories";
    const FIELD: &'static str = "registry";
    const FLAG: &'static str = "--history";
    const CONFIG_TABLE: &'static str = "addHistories";

    fn new(info: EntryInfo) -> Result<Self, Problem> {
        Ok(Self {
            url: parse_url(&info.url)?,
            info,
            state: tokio::sync::Mutex::default(),
            run_changes: broadcast::Sender::new(BACKLOG),
            poller: Mutex::new(None),
        })
    }

    fn info(&self) -> &EntryInfo {
        &self.info
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
    /// The database, open.
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

    /// Whether it is open, and why not.
    pub(crate) fn status(&self) -> (bool, Option<String>) {
        match self.state.try_lock().as_deref() {
            Ok(StoreState::Open(_)) => (true, None),
            Ok(StoreState::Down(_, problem)) => (false, Some(problem.detail.clone())),
            Ok(StoreState::Idle) | Err(_) => (false, None),
        }
    }
}

/// Opens a database, if it does so soon. A file that is not there is not made.
pub(crate) async fn open_store(url: &HistoryUrl, clock: &dyn Clock) -> Result<Store, Problem> {
    if url.file().is_some_and(|file| !file.exists()) {
        return Err(Problem::new(
            Code::Unreachable,
            format!("there is no {url}; hint: elasticjob run and elasticjob dev write it"),
        ));
    }
    tokio::select! {
        store = Store::open(url) => Ok(store?),
        () = clock.sleep_until(clock.monotonic() + OPEN_TIMEOUT) => Err(Problem::new(
            Code::Unreachable,
            format!("history in {url} does not answer; hint: is the server running?"),
        )),
    }
}

/// There is no history there.
pub(crate) fn no_history(registry: &str) -> Problem {
    Problem::new(
        Code::NoHistory,
        format!(
            "registry {registry} has no history here; hint: elasticjob console --history {registry}=URL, or POST /api/v1/histories"
        ),
    )
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            // What was given is named by its field.
            StoreError::Url { problem, hint } => {
                Self::new(Code::Invalid, format!("{problem}; hint: {hint}"))
            }
            _ => Self::new(Code::Unreachable, error.to_string()),
        }
    }
}

fn parse_url(text: &str) -> Result<HistoryUrl, Problem> {
    text.parse().map_err(|error: StoreError| Problem::from(error).with_field("url"))
}

/// The host a database is on, in a URL that says nothing else than where and who: no socket, no file, no other host behind the question mark.
fn database_host(text: &str) -> Result<&str, Problem> {
    let invalid = |text: &str| {
        let hint = "postgres://user:password@host:5432/database or mysql://…, and at most sslmode or ssl-mode";
        Problem::invalid("url", format!("{text}; hint: {hint}"))
    };
    if text.chars().any(|character| !character.is_ascii_graphic() || "#\\".contains(character)) {
        return Err(invalid("there is a character in it that does not belong there"));
    }
    let (scheme, rest) =
        text.split_once("://").ok_or_else(|| invalid("a database on a server is wanted"))?;
    if !["postgres", "postgresql", "mysql", "mariadb"].contains(&scheme) {
        return Err(invalid("a database on a server is wanted"));
    }
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let name = parameter.split('=').next().unwrap_or_default();
        if !["sslmode", "ssl-mode"].contains(&name) {
            return Err(invalid("not every parameter can be given here"));
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
        return Err(invalid("it names no host"));
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use elasticjob::runtime::SystemClock;

    use super::*;

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
