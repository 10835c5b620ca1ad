//! A server under test.

use std::{net::SocketAddr, time::Duration};

use testbed::ZooKeeper;

use super::process::Tinykeeper;
use crate::BoxError;

/// What becomes of a write before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Nothing. ZooKeeper has no such mode.
    InMemory,
    /// It is written to a log, and the disk gets it when the system sees fit.
    Unsynced,
    /// It is on disk.
    Synced,
}

/// A running server; dropping it ends it.
pub(super) enum Contestant {
    ZooKeeper(ZooKeeper),
    Tinykeeper(Tinykeeper),
}

impl Contestant {
    /// The real one, with everything the JVM can do and the tick its own sample configuration has.
    pub(super) fn zookeeper(keeping: Keeping) -> Self {
        let server = ZooKeeper::builder().full_speed().tick(Duration::from_secs(2));
        Self::ZooKeeper(server.fsync(keeping == Keeping::Synced).start())
    }

    pub(super) fn tinykeeper(keeping: Keeping) -> Result<Self, BoxError> {
        Ok(Self::Tinykeeper(Tinykeeper::start(keeping)?))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Contestant::ZooKeeper(_) => "ZooKeeper",
            Contestant::Tinykeeper(_) => "tinykeeper",
        }
    }

    /// Whether it becomes faster by doing the same thing again.
    pub(super) fn compiles_while_it_runs(&self) -> bool {
        matches!(self, Contestant::ZooKeeper(_))
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Contestant::ZooKeeper(server) => server.address(),
            Contestant::Tinykeeper(server) => server.address(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        match self {
            Contestant::ZooKeeper(server) => server.pid(),
            Contestant::Tinykeeper(server) => server.pid(),
        }
    }
}
