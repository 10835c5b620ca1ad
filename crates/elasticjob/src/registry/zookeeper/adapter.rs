//! The registry trait on the ZooKeeper client.

use std::{fmt, future::Future, sync::Arc};

use async_trait::async_trait;
use tinykeeper::{
    client::{self, Client, ConnectError, Credentials},
    wire::{Acl, AddWatchMode, Code},
};
use tokio::sync::watch;

use super::{
    node_watch::NodeWatch,
    read_batches::{MAX_RESPONSE, ReadBatches},
    reconnect,
    snapshot_watch::{SnapshotWatch, list},
};
use crate::{
    registry::{
        Limits, Registry,
        children_watch::ChildrenWatch,
        connect::ensure_path,
        error::{Error, SizeUnit},
        operation::{Committed, Op},
        path::{Namespace, Path},
        session::{Lease, Session, SessionId, SessionState, SessionStates, StateSource},
        settings::ZooKeeperSettings,
        stat::{Node, Stat, Zxid},
        translate,
        watch::Watch,
    },
    runtime::Monotonic,
};

/// A cluster member connected to ZooKeeper.
pub struct ZooKeeper {
    client: Arc<ClientLease>,
    reads: Arc<ReadBatches>,
    settings: ZooKeeperSettings,
    endpoint: String,
    acl: Vec<Acl>,
}

/// The client as the [`Lease`] of its sessions.
struct ClientLease(Client);

impl ZooKeeper {
    /// Connects and creates the namespace if it does not exist.
    pub async fn connect(settings: &ZooKeeperSettings) -> Result<Self, Error> {
        let registry = Self::connect_read_only(settings).await?;
        ensure_path(&registry, settings.namespace.path()).await?;
        Ok(registry)
    }

    /// Connects without writing anything, even if the namespace does not exist.
    pub async fn connect_read_only(settings: &ZooKeeperSettings) -> Result<Self, Error> {
        let endpoint = settings.endpoints();
        let client = Client::connect(config(settings))
            .await
            .map_err(|error| connect_error(error, &endpoint))?;
        // As Java ElasticJob does: with a user, nodes are accessible to that user only; without one, to everyone.
        let acl = if settings.digest.is_some() { Acl::creator_all() } else { Acl::open() };
        Ok(Self {
            reads: Arc::new(ReadBatches::new(client.clone())),
            client: Arc::new(ClientLease(client)),
            settings: settings.clone(),
            endpoint,
            acl,
        })
    }

    /// Number of answered pings. They prove that a server is reachable, not that the session is alive.
    pub fn pongs(&self) -> u64 {
        self.client.0.pongs()
    }

    /// The principals in a node's access list, each as `scheme:user` without its secret; `None` if the node does not exist. Processes
    /// whose lists differ lock each other out.
    pub async fn access(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        let answer = self.request(|| self.client.0.acl(path.as_str())).await;
        let Some((list, _)) = self.none_if_absent(path, answer)? else { return Ok(None) };
        let principals = list.into_iter().map(|entry| {
            let user = entry.id.id.split(':').next().unwrap_or_default().to_owned();
            format!("{}:{user}", entry.id.scheme)
        });
        Ok(Some(principals.collect()))
    }

    /// Sends a request. If it was not sent because there is no connection, waits for a reconnect and sends it once more.
    async fn request<T, F>(&self, mut send: impl FnMut() -> F + Send) -> Result<T, client::Error>
    where
        F: Future<Output = Result<T, client::Error>> + Send,
        T: Send,
    {
        match send().await {
            Err(client::Error::NotSent)
                if reconnect::wait_connected(&self.client.0, self.settings.connection_timeout)
                    .await =>
            {
                send().await
            }
            answer => answer,
        }
    }

    /// Translates a client error that concerns no particular node.
    fn connection_error(&self, error: client::Error) -> Error {
        match error {
            client::Error::NotSent => {
                Error::Unreachable { endpoint: self.endpoint.clone(), source: error.into() }
            }
            client::Error::Unknown => Error::Unknown { endpoint: self.endpoint.clone() },
            client::Error::SessionExpired => Error::SessionExpired,
            client::Error::Closed => Error::Closed,
            client::Error::TooLarge { length, limit } => {
                Error::TooLarge { path: Path::root(), size: length, unit: SizeUnit::Bytes, limit }
            }
            client::Error::AuthFailed => {
                Error::NotAuthorised { path: self.settings.namespace.path().clone() }
            }
            error => Error::Invalid { path: Path::root(), reason: error.to_string() },
        }
    }

    /// Translates the answer to a read of `path`: `None` only if the server said that the node does not exist.
    fn none_if_absent<T>(
        &self,
        path: &Path,
        answer: Result<T, client::Error>,
    ) -> Result<Option<T>, Error> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(client::Error::Refused { code: Code::NO_NODE, .. }) => Ok(None),
            Err(client::Error::Refused { code, .. }) => Err(translate::read_refusal(code, path)),
            Err(error) => Err(self.connection_error(error)),
        }
    }

    fn zxid(&self, zxid: i64) -> Zxid {
        Zxid(zxid.saturating_add(self.settings.fence_floor))
    }
}

#[async_trait]
impl Registry for ZooKeeper {
    fn namespace(&self) -> &Namespace {
        &self.settings.namespace
    }

    fn limits(&self) -> Limits {
        Limits::ZOOKEEPER
    }

    fn session(&self) -> Session {
        let session = self.client.0.session();
        Session::new(
            SessionId(session.id),
            session.timeout,
            Arc::clone(&self.client) as Arc<dyn Lease>,
        )
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let requests = translate::ops(&ops, &self.acl);
        let session = ops.iter().find_map(translate::session_of);
        let client = &self.client.0;
        let answer = match session {
            Some(SessionId(session)) => {
                self.request(|| client.multi_in(session, requests.clone())).await
            }
            None => self.request(|| client.multi(requests.clone())).await,
        };
        match answer {
            Ok((zxid, results)) => {
                let written_at_ms = results.iter().find_map(translate::written_at_on_wire);
                let done: Option<Vec<_>> =
                    results.into_iter().map(translate::done_from_wire).collect();
                let done =
                    done.filter(|done| done.len() == ops.len()).ok_or_else(|| Error::Invalid {
                        path: ops.first().map_or_else(Path::root, |op| op.path().clone()),
                        reason: "the answer does not match the request".into(),
                    })?;
                Ok(Committed { zxid: self.zxid(zxid), done, written_at_ms })
            }
            Err(client::Error::MultiRefused { index, code, .. }) if index < ops.len() => {
                Err(Error::Operation {
                    index,
                    cause: Box::new(translate::refusal(code, &ops[index])),
                })
            }
            Err(client::Error::Refused { code, .. }) => {
                let path = ops.first().map_or_else(Path::root, |op| op.path().clone());
                Err(translate::read_refusal(code, &path))
            }
            Err(client::Error::TooLarge { length, limit }) => {
                let path = ops.first().map_or_else(Path::root, |op| op.path().clone());
                Err(Error::TooLarge { path, size: length, unit: SizeUnit::Bytes, limit })
            }
            Err(error) => Err(self.connection_error(error)),
        }
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        let answer = self.request(|| self.reads.get(path.as_str())).await;
        let floor = self.settings.fence_floor;
        Ok(self
            .none_if_absent(path, answer)?
            .map(|(data, stat)| Node { data, stat: translate::stat(&stat, floor) }))
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        let answer = self.request(|| self.client.0.exists(path.as_str())).await;
        let stat = self.none_if_absent(path, answer)?.flatten();
        Ok(stat.map(|stat| translate::stat(&stat, self.settings.fence_floor)))
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        let answer = self.request(|| self.reads.children(path.as_str())).await;
        self.none_if_absent(path, answer)
    }

    async fn sync(&self) -> Result<(), Error> {
        self.request(|| self.client.0.sync()).await.map_err(|error| self.connection_error(error))
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        let mode = AddWatchMode::PersistentRecursive;
        let watch = self.request(|| self.client.0.watch(prefix.as_str(), mode)).await;
        let watch = watch.map_err(|error| match error {
            client::Error::Refused { code: Code::UNIMPLEMENTED, .. } => Error::Invalid {
                path: prefix.clone(),
                reason: "the server does not support recursive watches: ZooKeeper 3.6 or newer is required"
                    .to_owned(),
            },
            error => self.connection_error(error),
        })?;
        // An unreadable prefix must fail here instead of looking empty for ever.
        let first = self.request(|| list(&self.reads, prefix)).await;
        let first = self.none_if_absent(prefix, first)?;
        let (client, reads) = (self.client.0.clone(), Arc::clone(&self.reads));
        let floor = self.settings.fence_floor;
        Ok(Watch::new(SnapshotWatch::new(client, reads, watch, prefix.clone(), first, floor)))
    }

    async fn watch_children(&self, parent: &Path) -> Result<ChildrenWatch, Error> {
        let mode = AddWatchMode::Persistent;
        let watch = self.request(|| self.client.0.watch(parent.as_str(), mode)).await;
        let watch = watch.map_err(|error| self.connection_error(error))?;
        Ok(ChildrenWatch::new(NodeWatch(watch)))
    }

    async fn another_session(&self) -> Result<Option<Arc<dyn Registry>>, Error> {
        Ok(Some(Arc::new(Self::connect(&self.settings).await?)))
    }

    async fn close(&self) {
        self.client.0.close().await;
    }
}

impl Lease for ClientLease {
    fn deadline(&self, SessionId(session): SessionId) -> Monotonic {
        let now = self.0.session();
        Monotonic::from_start(if now.id == session {
            now.lease_deadline
        } else {
            std::time::Duration::ZERO
        })
    }

    fn states(&self) -> SessionStates {
        let mut receiver = self.0.states();
        let present = state(*receiver.borrow_and_update());
        SessionStates::new(present, StateReceiver(receiver))
    }
}

struct StateReceiver(watch::Receiver<client::SessionState>);

#[async_trait]
impl StateSource for StateReceiver {
    async fn newest(&mut self) -> Option<SessionState> {
        self.0.changed().await.ok()?;
        state(*self.0.borrow_and_update())
    }
}

/// `None` if no further state will follow.
fn state(state: client::SessionState) -> Option<SessionState> {
    match state {
        client::SessionState::Connected { session } => {
            Some(SessionState::Connected(SessionId(session)))
        }
        client::SessionState::Suspended { session } => {
            Some(SessionState::Suspended(SessionId(session)))
        }
        client::SessionState::Lost { session } => Some(SessionState::Lost(SessionId(session))),
        client::SessionState::Closed | client::SessionState::AuthFailed => None,
    }
}

fn config(settings: &ZooKeeperSettings) -> client::Config {
    let mut config = client::Config::new(settings.servers.iter().map(ToString::to_string));
    config.session_timeout = settings.session_timeout;
    config.connect_timeout = settings.connection_timeout;
    config.max_response = MAX_RESPONSE;
    config.retry = client::Retry {
        base_sleep: settings.retry.base_sleep,
        max_sleep: settings.retry.max_sleep,
        max_retries: settings.retry.max_retries,
    };
    config.auth = settings
        .digest
        .iter()
        .map(|digest| Credentials::digest(&digest.user, &digest.password))
        .collect();
    #[cfg(feature = "tls")]
    {
        config.tls = settings.tls.as_ref().map(tls);
    }
    config
}

#[cfg(feature = "tls")]
fn tls(files: &crate::registry::settings::Tls) -> client::TlsOptions {
    use client::{Identity, Pem};

    let identity = files.identity.clone();
    client::TlsOptions {
        ca: Pem::File(files.ca.clone()),
        identity: identity
            .map(|(cert, key)| Identity { cert: Pem::File(cert), key: Pem::File(key) }),
    }
}

fn connect_error(error: ConnectError, endpoint: &str) -> Error {
    match error {
        ConnectError::AuthRefused { .. } => Error::NotAuthorised { path: Path::root() },
        ConnectError::TlsSettings { source } => Error::Settings { source },
        error => Error::Unreachable { endpoint: endpoint.to_owned(), source: error.into() },
    }
}

impl fmt::Debug for ZooKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.settings)
    }
}
