//! Settings of a ZooKeeper connection.

use std::{fmt, path::PathBuf, time::Duration};

use super::path::Namespace;

/// Addresses, credentials and timeouts of a ZooKeeper connection. The defaults are Java ElasticJob's.
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
    /// At least one.
    pub servers: Vec<Endpoint>,
    /// Prefix of all nodes.
    pub namespace: Namespace,
    /// User and password. With them, every created node is accessible to this user only.
    pub digest: Option<Digest>,
    /// How long the registry waits for a sign of life before it ends the session.
    pub session_timeout: Duration,
    /// Limit for one connection attempt, and for how long a request waits for a reconnect.
    pub connection_timeout: Duration,
    /// Retries of the first connection.
    pub retry: Retry,
    /// TLS files; `None` for a plain connection.
    pub tls: Option<Tls>,
    /// Added to every transaction number, so that fencing tokens keep growing when a new registry replaces an older one.
    pub fence_floor: i64,
}

impl ZooKeeperSettings {
    /// All other settings have Java ElasticJob's defaults.
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

    /// Authenticates as `user` on every connection.
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

    /// Connects over TLS.
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

    /// The servers as one line of text for messages.
    pub(crate) fn endpoints(&self) -> String {
        self.servers.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(",")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name or an IP address; IPv6 without brackets.
    pub host: String,
    pub port: u16,
}

impl Endpoint {
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
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.user)
    }
}

/// Retries of the first connection. A connection that breaks later is retried for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The first pause; each further one is twice as long.
    pub base_sleep: Duration,
    /// Upper limit of a pause.
    pub max_sleep: Duration,
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

/// TLS files in PEM format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Certificate authorities that the servers' certificates are checked against.
    pub ca: PathBuf,
    /// Client certificate and its key, if the servers require one.
    pub identity: Option<(PathBuf, PathBuf)>,
}
