//! How to reach a ZooKeeper, as a typed builder.

use std::{fmt, path::PathBuf, time::Duration};

use super::path::Namespace;

/// How to reach a ZooKeeper ensemble, and how to behave there. The defaults are the ancestor's.
///
/// ```
/// use std::time::Duration;
/// use elasticjob::registry::{Endpoint, ZooKeeperSettings};
///
/// let settings = ZooKeeperSettings::new([Endpoint::new("zk1", 2181)], "shop".parse()?)
///     .session_timeout(Duration::from_secs(30))
///     .digest("jane", "secret");
/// assert_eq!(settings.to_string(), "zookeeper://jane:***@zk1:2181/shop?sessionTimeout=30s");
/// # Ok::<(), elasticjob::registry::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZooKeeperSettings {
    /// The servers; at least one.
    pub servers: Vec<Endpoint>,
    /// The prefix of everything.
    pub namespace: Namespace,
    /// User and password; with them every node is created for this user alone.
    pub digest: Option<Digest>,
    /// How long the registry waits for a sign of life before it ends a session.
    pub session_timeout: Duration,
    /// How long one attempt to connect may take, and how long a request waits for a connection that is just being repaired.
    pub connection_timeout: Duration,
    /// How often and how fast the first connection is tried again.
    pub retry: Retry,
    /// TLS, if the servers want it.
    pub tls: Option<Tls>,
    /// Added to every transaction number, so that fencing tokens go on growing when a registry is replaced by a younger one.
    pub fence_floor: i64,
}

impl ZooKeeperSettings {
    /// The ancestor's defaults for everything else.
    pub fn new(servers: impl IntoIterator<Item = Endpoint>, namespace: Namespace) -> Self {
        Self {
            servers: servers.into_iter().collect(),
            namespace,
            digest: None,
            session_timeout: Duration::from_mins(1),
            connection_timeout: Duration::from_secs(15),
            retry: Retry::default(),
            tls: None,
            fence_floor: 0,
        }
    }

    /// Proves to be `user` on every connection.
    #[must_use]
    pub fn digest(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.digest = Some(Digest { user: user.into(), password: password.into() });
        self
    }

    /// See [`ZooKeeperSettings::session_timeout`].
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// See [`ZooKeeperSettings::connection_timeout`].
    #[must_use]
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.connection_timeout = timeout;
        self
    }

    /// See [`ZooKeeperSettings::retry`].
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Speaks TLS.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// See [`ZooKeeperSettings::fence_floor`].
    #[must_use]
    pub fn fence_floor(mut self, floor: i64) -> Self {
        self.fence_floor = floor;
        self
    }

    /// The servers, for people.
    pub(crate) fn endpoints(&self) -> String {
        self.servers.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(",")
    }
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name or an address, IPv6 without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Endpoint {
    /// A server.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl From<std::net::SocketAddr> for Endpoint {
    fn from(address: std::net::SocketAddr) -> Self {
        Self::new(address.ip().to_string(), address.port())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// User and password; the password is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Digest {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.user)
    }
}

/// How often and how fast the first connection is tried again. Later ones are tried for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The first pause; each one after is twice as long.
    pub base_sleep: Duration,
    /// The longest pause.
    pub max_sleep: Duration,
    /// How often.
    pub max_retries: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            base_sleep: Duration::from_secs(1),
            max_sleep: Duration::from_secs(3),
            max_retries: 3,
        }
    }
}

/// Files for TLS, all PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Who may vouch for the servers.
    pub ca: PathBuf,
    /// Our own certificate and its key, if the servers ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}
