//! Client configuration.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::mpsc;

#[cfg(feature = "tls")]
use super::tls::TlsOptions;
use crate::wire::WatcherEvent;

/// A monotonic clock that also advances while the machine is suspended.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Client configuration. Start from [`Config::new`] and change fields.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// `host:port` of every server, IPv6 in brackets. Names are resolved for each attempt; servers are tried in shuffled order.
    pub servers: Vec<String>,
    /// The session timeout to request; the server may grant a different one.
    pub session_timeout: Duration,
    /// Time limit for one attempt at one server, from name resolution to the end of the handshake. It is also bounded by the
    /// session timeout divided by the number of servers, so that every server can be tried while the session is alive.
    pub connect_timeout: Duration,
    /// Credentials to send on every connection before anything else.
    pub auth: Vec<Credentials>,
    #[cfg(feature = "tls")]
    pub tls: Option<TlsOptions>,
    pub retry: Retry,
    /// Largest request to send, in bytes. The client refuses larger ones, because a server would drop the connection. The
    /// default is ZooKeeper's limit: its `jute.maxbuffer` is one byte less than a mebibyte.
    pub max_frame: usize,
    /// Largest response to accept, in bytes. Lists of children can exceed the size of a request, so the default is larger.
    pub max_response: usize,
    /// Number of events that a watch queues before they are replaced by one gap.
    pub watch_queue: usize,
    /// Longest time the connected server may take to report a contact of this client to the ensemble's leader. That is half a
    /// tick, and a bit more if the leader is late: it asks for reports every half tick at the earliest. The default is a
    /// quarter more than half a tick of 2 s. The client uses at most five sixteenths of the session timeout, which is at
    /// least two ticks: again a quarter more than half a tick. `None` for a single server, which has no leader to report to.
    /// [`Client::lease_deadline`](super::Client::lease_deadline) relies on it.
    pub touch_lag: Option<Duration>,
    /// The clock of [`Client::lease_deadline`](super::Client::lease_deadline).
    pub clock: Clock,
    /// Receives every notification, in order with the replies. This is the only way to see notifications of one-shot watches set
    /// through [`Client::call`](super::Client::call); the client does not restore those after a reconnect.
    pub notifications: Option<mpsc::UnboundedSender<WatcherEvent>>,
}

impl Config {
    /// Java ElasticJob's defaults: a session timeout of 60 s, 15 s to connect, three retries.
    pub fn new(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            session_timeout: Duration::from_mins(1),
            connect_timeout: Duration::from_secs(15),
            auth: Vec::new(),
            #[cfg(feature = "tls")]
            tls: None,
            retry: Retry::default(),
            max_frame: 0xf_ffff,
            max_response: 16 << 20,
            watch_queue: 65_536,
            touch_lag: Some(Duration::from_millis(1_250)),
            clock: Arc::new(boot_clock),
            notifications: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("servers", &self.servers)
            .field("session_timeout", &self.session_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("auth", &self.auth)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// Retries of connection attempts. A *round* tries every server once.
///
/// The number of retries bounds the first connection only: a client that has had a session retries until it is closed. The delay
/// doubles from `base_sleep` to `max_sleep`; each is shortened randomly by up to a half, so that clients do not retry in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The delay after the first failed round.
    pub base_sleep: Duration,
    /// The longest delay.
    pub max_sleep: Duration,
    /// Number of rounds after the first before [`Client::connect`](super::Client::connect) gives up.
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

/// Credentials for one authentication scheme.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Usually `digest`.
    pub scheme: String,
    /// The secret in the format of the scheme; never printed.
    pub secret: Bytes,
}

impl Credentials {
    /// User and password for the scheme `digest`.
    pub fn digest(user: &str, password: &str) -> Self {
        Self { scheme: "digest".into(), secret: format!("{user}:{password}").into() }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:…", self.scheme)
    }
}

/// Time since the system booted, including sleep.
pub fn boot_clock() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    // On other systems (macOS) the monotonic clock includes sleep.
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let reading = rustix::time::clock_gettime(clock);
    // Neither clock is ever negative.
    Duration::new(reading.tv_sec as u64, reading.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_secrets() {
        let mut config = Config::new(["localhost:2181"]);
        config.auth.push(Credentials::digest("jane", "secret"));

        let shown = format!("{config:?}");

        assert!(shown.contains("digest:…"), "{shown}");
        assert!(!shown.contains("secret") && !shown.contains("jane"), "{shown}");
    }
}
