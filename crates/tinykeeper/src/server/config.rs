//! Server configuration.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use super::four_letter::FourLetterWords;
use crate::wire::frame;

/// Server configuration. The defaults are ZooKeeper's where it has them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Listen address; port 0 selects a free port.
    pub listen: SocketAddr,
    /// Data directory; `None` keeps everything in memory.
    pub data: Option<PathBuf>,
    /// Whether a reply waits until its transaction is on disk.
    pub fsync: bool,
    /// Lower bound for the session timeouts that clients request.
    pub min_session_timeout: Duration,
    /// Upper bound for the session timeouts that clients request.
    pub max_session_timeout: Duration,
    /// Interval at which empty containers and nodes past their time to live are deleted.
    pub sweep_interval: Duration,
    /// Largest accepted request, in bytes.
    pub max_frame: usize,
    pub max_connections: usize,
    /// Limit for the connections of one IPv4 address or one IPv6 network of 64 bits.
    pub max_connections_per_address: usize,
    pub max_sessions: usize,
    /// Limit for the sessions opened since the start from one IPv4 address or one IPv6 network of 64 bits.
    pub max_sessions_per_address: usize,
    /// Limit for the memory of all watches, in bytes; the watches of one connection may use an eighth of it.
    pub max_watch_bytes: usize,
    /// Limit for the bytes queued for one connection that does not read.
    pub max_outbox: usize,
    /// Time limit for the handshake of a new connection, and for each write to a connection.
    pub io_timeout: Duration,
    /// Number of transactions after which a snapshot of the tree is written.
    pub snapshot_every: u64,
    /// The four-letter words that are executed. By default only those that tell neither session ids nor addresses of clients
    /// nor the data directory.
    pub four_letter_words: FourLetterWords,
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
            max_connections_per_address: 1_000,
            max_sessions: 100_000,
            max_sessions_per_address: 10_000,
            max_watch_bytes: 512 << 20,
            max_outbox: 32 << 20,
            io_timeout: Duration::from_secs(15),
            snapshot_every: 100_000,
            four_letter_words: FourLetterWords::default(),
        }
    }
}

impl Config {
    /// A server in memory on a free loopback port, for tests.
    pub fn in_memory() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Self::default() }
    }
}
