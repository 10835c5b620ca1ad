//! What a client has to know before it can connect.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::mpsc;

#[cfg(feature = "tls")]
use super::tls::TlsOptions;
use crate::wire::WatcherEvent;

/// A monotonic reading that goes on while the machine is suspended.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// How to reach the servers and what to expect of them. Start from [`Config::new`] and change fields.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// `host:port` of every server, IPv6 in brackets; resolved anew for each attempt, tried in shuffled order.
    pub servers: Vec<String>,
    /// The session timeout to ask for; the server may grant another.
    pub session_timeout: Duration,
    /// How long one attempt at one server may take, from resolving its name to the end of the handshake. The session timeout
    /// divided by the number of servers bounds it too, so that all can be tried while the session lives.
    pub connect_timeout: Duration,
    /// What to prove on every connection before anything else is sent.
    pub auth: Vec<Credentials>,
    /// TLS, if the servers want it.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsOptions>,
    /// How often and how fast to try again.
    pub retry: Retry,
    /// The largest request to send; larger ones are refused here, because a server drops the connection over them. The default
    /// is ZooKeeper's, whose `jute.maxbuffer` is one byte less than a mebibyte.
    pub max_frame: usize,
    /// The largest answer to take. Lists of children grow past what a request may be, so this is larger by default.
    pub max_answer: usize,
    /// How many events a watch nobody drains may pile up before they are replaced by one gap.
    pub watch_queue: usize,
    /// How long the server we are connected to may take to tell the ensemble's leader that it heard of us: half a tick, so
    /// this default holds for ticks of up to 2 s. Never more than a quarter of the session timeout, which is two ticks at
    /// least. `None` for a single server, which has nobody to tell. [`Client::lease_deadline`](super::Client::lease_deadline)
    /// counts on it.
    pub touch_lag: Option<Duration>,
    /// The clock of [`Client::lease_deadline`](super::Client::lease_deadline).
    pub clock: Clock,
    /// Receives every notification as it came, in order with the answers: the only way to see those of one-shot watches set
    /// through [`Client::call`](super::Client::call), which are not set again on a reconnect.
    pub notifications: Option<mpsc::UnboundedSender<WatcherEvent>>,
}

impl Config {
    /// The ancestor's defaults: a session of 60 s, 15 s to connect, three retries.
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
            max_answer: 16 << 20,
            watch_queue: 65_536,
            touch_lag: Some(Duration::from_secs(1)),
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

/// How often and how fast to try again. A *round* tries every server once.
///
/// The count bounds the first connection only: a client that once had a session goes on trying until it is closed. Pauses
/// double from the first to the longest, each shortened by chance by up to a half so that clients do not come in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The pause after the first failed round.
    pub base_sleep: Duration,
    /// The longest pause.
    pub max_sleep: Duration,
    /// How many rounds to add to the first before [`Client::connect`](super::Client::connect) gives up.
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

/// Who we are, and the proof of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `digest`, usually.
    pub scheme: String,
    /// What the scheme asks for; never printed.
    pub secret: Bytes,
}

impl Credentials {
    /// A user and password for the scheme `digest`.
    pub fn digest(user: &str, password: &str) -> Self {
        Self { scheme: "digest".into(), secret: format!("{user}:{password}").into() }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:…", self.scheme)
    }
}

/// The system's clock since it was started, sleep included.
pub fn boot_clock() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    // Elsewhere (macOS) the monotonic clock is the one that counts sleep.
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let reading = rustix::time::clock_gettime(clock);
    // Neither is ever negative.
    Duration::new(reading.tv_sec as u64, reading.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let mut config = Config::new(["localhost:2181"]);
        config.auth.push(Credentials::digest("jane", "secret"));

        let shown = format!("{config:?}");

        assert!(shown.contains("digest:…"), "{shown}");
        assert!(!shown.contains("secret") && !shown.contains("jane"), "{shown}");
    }
}
