//! The registries of this console and the connection to each.
//!
//! A connection is opened on first use by a task of its own, which reconnects forever. Requests to a registry that is down fail at once and do
//! not affect other registries. An administrator can add only registries with our own URL schemes, on allowed hosts.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    admin::{Admin, mirror::Mirror},
    job::ShardLimit,
    problem,
    registry::{RegistryUrl, UrlError},
    runtime::{Clock, Tasks},
};
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::catalog::{Catalog, CatalogEntry, EntryInfo};
use crate::http::problem::{Code, Problem};

/// How long a request waits for a connection that is being established.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between connection attempts: initial and maximal.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// All registries.
pub(crate) type Registries = Catalog<RegistryConnection>;

/// One registry and the connection to it.
#[derive(Debug)]
pub(crate) struct RegistryConnection {
    info: EntryInfo,
    pub(crate) url: RegistryUrl,
    pub(crate) mirror: Arc<Mirror>,
    connection_state: watch::Sender<ConnectionState>,
    /// Maintains the connection; started on first use.
    task: Mutex<Option<Tasks>>,
}

/// State of a connection.
#[derive(Debug, Clone)]
enum ConnectionState {
    /// Not used yet.
    Idle,
    Connecting,
    Up(Admin),
    /// The last attempt failed, with the error.
    Down(String),
}

/// State of a connection as shown to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ConnectionStatus)]
pub(crate) enum ConnectionStatus {
    /// Not used yet.
    Idle,
    /// A connection attempt is running.
    Connecting,
    Connected,
    /// The last attempt failed, or the connection was lost.
    Down,
}

impl Registries {
    /// Sets how many shards a job may have.
    pub(crate) fn max_shards(mut self, limit: ShardLimit) -> Self {
        self.settings = limit;
        self
    }

    /// How many shards a job may have.
    pub(crate) fn shard_limit(&self) -> ShardLimit {
        self.settings
    }

    /// The admin connection of a registry; waits briefly while it is being established.
    pub(crate) async fn admin(&self, registry: &Arc<RegistryConnection>) -> Result<Admin, Problem> {
        let mut connection_state = self.connection_state(registry);
        let deadline = self.clock().monotonic() + CONNECT_TIMEOUT;
        loop {
            let current = connection_state.borrow_and_update().clone();
            match current {
                ConnectionState::Up(admin) => return Ok(admin),
                ConnectionState::Down(problem) => {
                    return Err(Problem::new(Code::Unreachable, problem)
                        .with_retry_after(RETRY_PAUSES.1.as_secs()));
                }
                ConnectionState::Idle | ConnectionState::Connecting => {}
            }
            tokio::select! {
                changed = connection_state.changed() => {
                    if changed.is_err() {
                        return Err(no_such_registry(&registry.name));
                    }
                }
                () = self.clock().sleep_until(deadline) => {
                    let text = format!("registry {} does not answer", registry.name);
                    return Err(Problem::new(Code::Unreachable, text).with_hint("is ZooKeeper listening there?").with_retry_after(RETRY_PAUSES.1.as_secs()));
                }
            }
        }
    }

    /// Starts the task that maintains the connection, unless it runs, and returns the state to watch.
    fn connection_state(
        &self,
        registry: &Arc<RegistryConnection>,
    ) -> watch::Receiver<ConnectionState> {
        let mut task = registry.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            registry.connection_state.send_replace(ConnectionState::Connecting);
            let mut tasks = Tasks::new();
            tasks.spawn(maintain_connection(
                registry.url.clone(),
                registry.connection_state.clone(),
                Arc::clone(&registry.mirror),
                Arc::clone(self.clock()),
                self.settings,
            ));
            *task = Some(tasks);
        }
        registry.connection_state.subscribe()
    }
}

impl Deref for RegistryConnection {
    type Target = EntryInfo;

    fn deref(&self) -> &EntryInfo {
        &self.info
    }
}

impl CatalogEntry for RegistryConnection {
    type Url = RegistryUrl;
    type Settings = ShardLimit;

    const KIND: &'static str = "registries";
    const FIELD: &'static str = "name";
    const FLAG: &'static str = "--registry";
    const CONFIG_TABLE: &'static str = "addRegistries";

    fn new(info: EntryInfo) -> Result<Self, Problem> {
        let name = &info.name;
        let is_valid = !name.is_empty()
            && name.len() <= 64
            && name
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "._-".contains(character))
            && name.chars().any(|character| character.is_ascii_alphanumeric());
        if !is_valid {
            return Err(Problem::invalid("name", format!("{name:?} is not a valid registry name"))
                .with_hint(
                    "letters, digits, dots, dashes and underscores, at most 64 characters",
                ));
        }
        Ok(Self {
            url: parse_url(&info.raw_url)?,
            info,
            mirror: Arc::new(Mirror::default()),
            connection_state: watch::Sender::new(ConnectionState::Idle),
            task: Mutex::new(None),
        })
    }

    fn parse_addable(text: &str) -> Result<(RegistryUrl, Vec<String>), Problem> {
        let url = parse_url(text)?;
        let RegistryUrl::ZooKeeper(settings) = &url else {
            return Err(Problem::invalid("url", "a memory: registry exists in one process only")
                .with_hint("zookeeper://host:2181/namespace"));
        };
        if settings.tls.is_some() {
            return Err(Problem::invalid("url", "a zookeepers:// URL reads files of this machine")
                .with_hint("define it with --registry or in the configuration file"));
        }
        let hosts = settings.servers.iter().map(|server| server.host.clone()).collect();
        Ok((url, hosts))
    }

    fn describe(name: &str) -> String {
        format!("registry {name}")
    }

    fn not_found(name: &str) -> Problem {
        no_such_registry(name)
    }
}

impl RegistryConnection {
    /// The state, and the problem if it is down.
    pub(crate) fn status(&self) -> (ConnectionStatus, Option<String>) {
        match &*self.connection_state.borrow() {
            ConnectionState::Idle => (ConnectionStatus::Idle, None),
            ConnectionState::Connecting => (ConnectionStatus::Connecting, None),
            ConnectionState::Up(..)
                if self.mirror.read(|seen| seen.as_of.is_some() && !seen.is_current) =>
            {
                (ConnectionStatus::Down, Some("connection lost, reconnecting".to_owned()))
            }
            ConnectionState::Up(..) => (ConnectionStatus::Connected, None),
            ConnectionState::Down(problem) => (ConnectionStatus::Down, Some(problem.clone())),
        }
    }
}

/// Connects, follows the registry, and reconnects when the connection ends.
async fn maintain_connection(
    url: RegistryUrl,
    connection_state: watch::Sender<ConnectionState>,
    mirror: Arc<Mirror>,
    clock: Arc<dyn Clock>,
    shard_limit: ShardLimit,
) {
    let mut pause = RETRY_PAUSES.0;
    loop {
        match Admin::connect(&url).await {
            Ok(admin) => {
                pause = RETRY_PAUSES.0;
                let admin = admin.clock(Arc::clone(&clock)).max_shards(shard_limit);
                connection_state.send_replace(ConnectionState::Up(admin.clone()));
                follow_mirror(&admin, &mirror, &*clock).await;
                admin.close().await;
                connection_state.send_replace(ConnectionState::Connecting);
            }
            Err(error) => {
                tracing::debug!(registry = %url, %error, "registry unreachable, retrying");
                let problem = problem::Problem::of(&error);
                connection_state.send_replace(ConnectionState::Down(problem.to_string()));
            }
        }
        mirror.mark_disconnected();
        clock.sleep_until(clock.monotonic() + pause).await;
        pause = (pause * 2).min(RETRY_PAUSES.1);
    }
}

/// Keeps the mirror current while the connection is open. If watching fails, requests still work.
async fn follow_mirror(admin: &Admin, mirror: &Mirror, clock: &dyn Clock) {
    while let Err(error) = mirror.follow(admin).await {
        tracing::warn!(error = %problem::Problem::of(&error), "registry watch failed, retrying");
        mirror.mark_disconnected();
        clock.sleep_until(clock.monotonic() + RETRY_PAUSES.1).await;
    }
}

fn parse_url(url: &str) -> Result<RegistryUrl, Problem> {
    url.parse().map_err(|error: UrlError| {
        let text = format!("registry URL: {}", error.problem);
        Problem::invalid("url", text).with_hint(format!("for example {}", error.example))
    })
}

/// Also for registries that the caller may not see: the message must not tell which.
pub(crate) fn no_such_registry(name: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no registry {name}"))
        .with_hint("GET /api/v1/registries lists them")
}

#[cfg(test)]
mod tests {
    use elasticjob::runtime::SystemClock;

    use super::{super::catalog::AdditionPolicy, *};

    fn open(additions: AdditionPolicy) -> Registries {
        Registries::open(&[], additions, None, Arc::new(SystemClock)).unwrap()
    }

    #[test]
    fn only_listed_hosts_can_be_added() {
        let allowed_hosts = vec!["zk1".to_owned(), "*.zk.example.com".to_owned()];
        let registries = open(AdditionPolicy { is_enabled: true, allowed_hosts });

        for url in ["zookeeper://zk1/shop", "zookeeper://a.zk.example.com:2182,ZK1/shop"] {
            assert!(registries.check_addable(url).is_ok(), "{url}");
        }
        for url in [
            "zookeeper://127.0.0.1/shop",
            "zookeeper://zk1,169.254.169.254/shop",
            "zookeeper://zk.example.com/shop",
            "zookeeper://evilzk.example.com/shop",
            "zookeepers://zk1/shop?tls.ca=/etc/passwd",
            "memory:",
            "jdbc:h2:mem:x",
            "http://zk1/shop",
        ] {
            let problem = registries.check_addable(url).unwrap_err();
            assert_eq!(
                (problem.code, problem.field.as_deref()),
                (Code::Invalid, Some("url")),
                "{url}"
            );
        }
        assert_eq!(
            open(AdditionPolicy::default()).check_addable("zookeeper://zk1/shop").unwrap_err().code,
            Code::Refused
        );
    }

    #[test]
    fn registry_name_is_one_path_segment() {
        let registries =
            open(AdditionPolicy { is_enabled: true, allowed_hosts: vec!["zk1".to_owned()] });

        for name in ["", "a/b", "..", "a b", "ü", "a?b"] {
            assert!(registries.add(name, "zookeeper://zk1/shop").is_err(), "{name:?}");
        }
        registries.add("prod.eu-1", "zookeeper://zk1/shop").unwrap();
        assert_eq!(
            registries.add("prod.eu-1", "zookeeper://zk1/shop").unwrap_err().code,
            Code::Conflict
        );
        registries.remove("prod.eu-1").unwrap();
        assert_eq!(registries.remove("prod.eu-1").unwrap_err().code, Code::NotFound);
    }
}
