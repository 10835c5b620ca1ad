//! The registry trait on the ZooKeeper client.

use std::{fmt, future::Future, sync::Arc};

use async_trait::async_trait;
use tinykeeper::{
    client::{self, Client, ConnectError, Credentials},
    wire::{Acl, AddWatchMode, Code},
};
use tokio::sync::watch;

use super::{outage, walk::Walker};
use crate::{
    registry::{
        Registry,
        connect::plant,
        error::Error,
        operation::{Committed, Op},
        path::{Namespace, Path},
        session::{Lease, Session, SessionId, SessionState, StateSource, States},
        settings::ZooKeeperSettings,
        stat::{Node, Stat, Zxid},
        translate,
        watch::Watch,
    },
    runtime::Monotonic,
};

/// A member that meets the others in ZooKeeper.
pub struct ZooKeeper {
    link: Arc<Link>,
    settings: ZooKeeperSettings,
    endpoint: String,
    acl: Vec<Acl>,
}

/// The client as a session's lease.
struct Link(Client);

impl ZooKeeper {
    /// Connects, and makes sure that the namespace exists.
    pub async fn connect(settings: &ZooKeeperSettings) -> Result<Self, Error> {
        let registry = Self::visit(settings).await?;
        plant(&registry, settings.namespace.path()).await?;
        Ok(registry)
    }

    /// Connects and leaves everything as it is, also a namespace that is not there.
    pub async fn visit(settings: &ZooKeeperSettings) -> Result<Self, Error> {
        let endpoint = settings.endpoints();
        let client = Client::connect(config(settings))
            .await
            .map_err(|error| no_connection(error, &endpoint))?;
        // The ancestor's rule: with a user everything is his, without one everything is everybody's.
        let acl = if settings.digest.is_some() { Acl::creator_all() } else { Acl::open() };
        Ok(Self { link: Arc::new(Link(client)), settings: settings.clone(), endpoint, acl })
    }

    /// How many pings were answered: a sign that a server is there, and none that the session lives.
    pub fn pongs(&self) -> u64 {
        self.link.0.pongs()
    }

    /// Who may do something with a node, each as `scheme:user` without what proves it; `None` if there is no such node. Processes that do not agree
    /// about it shut each other out.
    pub async fn access(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        let answer = self.ask(|| self.link.0.acl(path.as_str())).await;
        let Some((list, _)) = self.found(path, answer)? else { return Ok(None) };
        let who = list.into_iter().map(|entry| {
            let user = entry.id.id.split(':').next().unwrap_or_default().to_owned();
            format!("{}:{user}", entry.id.scheme)
        });
        Ok(Some(who.collect()))
    }

    /// Asks once there is a connection. What never left this process is asked again while the connection is repaired.
    async fn ask<T, F>(&self, mut ask: impl FnMut() -> F + Send) -> Result<T, client::Error>
    where
        F: Future<Output = Result<T, client::Error>> + Send,
        T: Send,
    {
        match ask().await {
            Err(client::Error::NotSent)
                if outage::repaired(&self.link.0, self.settings.connection_timeout).await =>
            {
                ask().await
            }
            answer => answer,
        }
    }

    /// An error that is not about nodes.
    fn outage(&self, error: client::Error) -> Error {
        match error {
            client::Error::NotSent => {
                Error::Unreachable { endpoint: self.endpoint.clone(), source: error.into() }
            }
            client::Error::Unknown => Error::Unknown { endpoint: self.endpoint.clone() },
            client::Error::SessionExpired => Error::SessionExpired,
            client::Error::Closed => Error::Closed,
            client::Error::TooLarge { length, limit } => {
                Error::TooLarge { path: Path::root(), bytes: length, limit }
            }
            client::Error::AuthFailed => {
                Error::NotAuthorised { path: self.settings.namespace.path().clone() }
            }
            error => Error::Invalid { path: Path::root(), reason: error.to_string() },
        }
    }

    /// What a read of `path` came to: `None` only when the server said that there is no such node.
    fn found<T>(&self, path: &Path, answer: Result<T, client::Error>) -> Result<Option<T>, Error> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(client::Error::Refused { code: Code::NO_NODE, .. }) => Ok(None),
            Err(client::Error::Refused { code, .. }) => Err(translate::read_refusal(code, path)),
            Err(error) => Err(self.outage(error)),
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

    fn session(&self) -> Session {
        let session = self.link.0.session();
        Session::new(
            SessionId(session.id),
            session.timeout,
            Arc::clone(&self.link) as Arc<dyn Lease>,
        )
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let requests = translate::ops(&ops, &self.acl);
        let session = ops.iter().find_map(translate::session_of);
        let client = &self.link.0;
        let answer = match session {
            Some(SessionId(session)) => {
                self.ask(|| client.multi_in(session, requests.clone())).await
            }
            None => self.ask(|| client.multi(requests.clone())).await,
        };
        match answer {
            Ok((zxid, results)) => {
                let done: Option<Vec<_>> = results.into_iter().map(translate::done).collect();
                let done =
                    done.filter(|done| done.len() == ops.len()).ok_or_else(|| Error::Invalid {
                        path: ops.first().map_or_else(Path::root, |op| op.path().clone()),
                        reason: "its answer does not fit the request".into(),
                    })?;
                Ok(Committed { zxid: self.zxid(zxid), done })
            }
            Err(client::Error::MultiRefused { index, code, .. }) if index < ops.len() => {
                Err(Error::Member { index, cause: Box::new(translate::refusal(code, &ops[index])) })
            }
            Err(client::Error::Refused { code, .. }) => {
                let path = ops.first().map_or_else(Path::root, |op| op.path().clone());
                Err(translate::read_refusal(code, &path))
            }
            Err(client::Error::TooLarge { length, limit }) => {
                let path = ops.first().map_or_else(Path::root, |op| op.path().clone());
                Err(Error::TooLarge { path, bytes: length, limit })
            }
            Err(error) => Err(self.outage(error)),
        }
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        let answer = self.ask(|| self.link.0.get(path.as_str())).await;
        let floor = self.settings.fence_floor;
        Ok(self
            .found(path, answer)?
            .map(|(data, stat)| Node { data, stat: translate::stat(&stat, floor) }))
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        let answer = self.ask(|| self.link.0.exists(path.as_str())).await;
        let stat = self.found(path, answer)?.flatten();
        Ok(stat.map(|stat| translate::stat(&stat, self.settings.fence_floor)))
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        let answer = self.ask(|| self.link.0.children(path.as_str())).await;
        Ok(self.found(path, answer)?.map(|(children, _)| children))
    }

    async fn sync(&self) -> Result<(), Error> {
        self.ask(|| self.link.0.sync()).await.map_err(|error| self.outage(error))
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        let mode = AddWatchMode::PersistentRecursive;
        let watch = self.ask(|| self.link.0.watch(prefix.as_str(), mode)).await;
        let watch = watch.map_err(|error| match error {
            client::Error::Refused { code: Code::UNIMPLEMENTED, .. } => Error::Invalid {
                path: prefix.clone(),
                reason: "it cannot watch everything below a node; hint: ZooKeeper has to be 3.6 or newer"
                    .to_owned(),
            },
            error => self.outage(error),
        })?;
        // A prefix that may not be read is an error here and now, not an empty picture for ever.
        self.children(prefix).await?;
        let floor = self.settings.fence_floor;
        Ok(Watch::new(Walker::new(self.link.0.clone(), watch, prefix.clone(), floor)))
    }

    async fn close(&self) {
        self.link.0.close().await;
    }
}

impl Lease for Link {
    fn deadline(&self, SessionId(session): SessionId) -> Monotonic {
        let now = self.0.session();
        Monotonic::from_start(if now.id == session {
            now.lease_deadline
        } else {
            std::time::Duration::ZERO
        })
    }

    fn states(&self) -> States {
        let mut receiver = self.0.states();
        let present = state(*receiver.borrow_and_update());
        States::new(present, Latest(receiver))
    }
}

struct Latest(watch::Receiver<client::SessionState>);

#[async_trait]
impl StateSource for Latest {
    async fn newest(&mut self) -> Option<SessionState> {
        self.0.changed().await.ok()?;
        state(*self.0.borrow_and_update())
    }
}

/// `None` when there is nothing to come.
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

fn no_connection(error: ConnectError, endpoint: &str) -> Error {
    match error {
        ConnectError::AuthRefused { .. } => Error::NotAuthorised { path: Path::root() },
        error => Error::Unreachable { endpoint: endpoint.to_owned(), source: error.into() },
    }
}

impl fmt::Debug for ZooKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.settings)
    }
}
