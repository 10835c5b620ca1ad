//! The server as its owner holds it.

use std::{io, net::SocketAddr};

use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use super::{config::Config, start::start};
use crate::{store, tree::SnapshotError};

/// A running server. Dropping it stops it at once; [`Server::shutdown`] lets it finish what it has begun.
#[derive(Debug)]
pub struct Server {
    pub(super) address: SocketAddr,
    pub(super) stop: watch::Sender<bool>,
    pub(super) tasks: JoinSet<Result<(), store::Error>>,
}

/// Why a server did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be had.
    #[error(
        "cannot listen on {address}: {source}; hint: stop what listens there or choose another address"
    )]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The data folder cannot be used, or the disk failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The data folder holds something that is not what this version wrote.
    #[error(
        "cannot read the tree of snapshot {zxid:#x}; hint: was the folder written by another version?"
    )]
    Snapshot {
        /// Which snapshot.
        zxid: i64,
        /// What is wrong with it.
        source: SnapshotError,
    },
    /// A record of the log does not fit the tree.
    #[error(
        "cannot replay transaction {zxid:#x}: {reason}; hint: was a file of the folder removed or replaced?"
    )]
    Replay {
        /// Which transaction.
        zxid: i64,
        /// What is wrong with it.
        reason: String,
    },
    /// A thread could not be started, or one of the server's tasks broke.
    #[error("the server broke")]
    Broken(#[source] io::Error),
}

impl Server {
    /// Starts a server; it answers when this returns.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tinykeeper::server::ServerError> {
    /// use tinykeeper::server::{Config, Server};
    ///
    /// let server = Server::start(Config::ephemeral()).await?;
    /// println!("clients connect to {}", server.address());
    /// server.shutdown().await
    /// # }
    /// ```
    pub async fn start(config: Config) -> Result<Self, ServerError> {
        start(config).await
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server ends by itself, which it does only when the disk fails.
    pub async fn ended(&mut self) -> Result<(), ServerError> {
        match self.tasks.join_next().await {
            Some(result) => settle(result),
            None => Ok(()),
        }
    }

    /// Stops: no new connections, everything taken is on disk, then the sockets close.
    pub async fn shutdown(mut self) -> Result<(), ServerError> {
        self.stop.send_replace(true);
        while let Some(result) = self.tasks.join_next().await {
            settle(result)?;
        }
        Ok(())
    }
}

fn settle(result: Result<Result<(), store::Error>, JoinError>) -> Result<(), ServerError> {
    match result {
        Ok(ended) => Ok(ended?),
        Err(broken) => Err(ServerError::Broken(io::Error::other(broken))),
    }
}
