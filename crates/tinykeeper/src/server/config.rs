//! How a server behaves.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use crate::wire::frame;

/// How a server behaves. The defaults are ZooKeeper's where it has them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where to keep what must survive a restart; without it everything is in memory.
    pub data: Option<PathBuf>,
    /// Whether an answer waits until its transaction is on disk.
    pub fsync: bool,
    /// The shortest session timeout granted.
    pub min_session_timeout: Duration,
    /// The longest session timeout granted.
    pub max_session_timeout: Duration,
    /// How often containers and nodes with a time to live are looked after.
    pub sweep_interval: Duration,
    /// The largest request accepted.
    pub max_frame: usize,
    /// How many connections are served at once.
    pub max_connections: usize,
    /// How many sessions may exist at once.
    pub max_sessions: usize,
    /// How many bytes may wait for one connection that does not read.
    pub max_outbox: usize,
    /// How long a new connection may take to say who it is, and how long one write to a connection may take.
    pub patience: Duration,
    /// After how many transactions the tree is written out whole.
    pub snapshot_every: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 2181)),
            data: None,
            fsync: true,
            min_session_timeout: Duration::from_secs(4),
            max_session_timeout: Duration::from_secs(40),
            sweep_interval: Duration::from_secs(10),
            max_frame: frame::DEFAULT_LIMIT,
            max_connections: 10_000,
            max_sessions: 100_000,
            max_outbox: 32 << 20,
            patience: Duration::from_secs(15),
            snapshot_every: 100_000,
        }
    }
}

impl Config {
    /// A server in memory on a free port of this machine, for tests.
    pub fn ephemeral() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Self::default() }
    }
}
