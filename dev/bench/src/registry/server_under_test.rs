//! The servers that are compared.

use std::{net::SocketAddr, time::Duration};

use testbed::ZooKeeper;

use super::process::Tinykeeper;
use crate::BoxError;

/// What happens to a write before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It stays in memory. ZooKeeper has no such mode.
    InMemory,
    /// It is written to a log, without waiting for the disk.
    Unsynced,
    /// It is synced to disk.
    Synced,
}

/// A running server. Dropping it stops it.
pub(crate) enum ServerUnderTest {
    ZooKeeper(ZooKeeper),
    Tinykeeper(Tinykeeper),
}

impl ServerUnderTest {
    /// The real ZooKeeper, with the default settings of the JVM and the tick of ZooKeeper's sample configuration.
    pub(crate) fn zookeeper(durability: Durability) -> Self {
        let server = ZooKeeper::builder().full_speed().tick(Duration::from_secs(2));
        Self::ZooKeeper(server.fsync(durability == Durability::Synced).start())
    }

    pub(crate) fn tinykeeper(durability: Durability) -> Result<Self, BoxError> {
        Ok(Self::Tinykeeper(Tinykeeper::start(durability)?))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            ServerUnderTest::ZooKeeper(_) => "ZooKeeper",
            ServerUnderTest::Tinykeeper(_) => "tinykeeper",
        }
    }

    /// Whether the server becomes faster with time.
    pub(crate) fn has_jit_compiler(&self) -> bool {
        matches!(self, ServerUnderTest::ZooKeeper(_))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            ServerUnderTest::ZooKeeper(server) => server.address(),
            ServerUnderTest::Tinykeeper(server) => server.address(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        match self {
            ServerUnderTest::ZooKeeper(server) => server.pid(),
            ServerUnderTest::Tinykeeper(server) => server.pid(),
        }
    }
}
