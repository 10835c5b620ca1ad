//! The public handle of a running server.

use std::{io, net::SocketAddr};

use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use super::{config::Config, start::start};
use crate::{store, tree::SnapshotError};

/// A running server. Dropping it stops the server at once; [`Server::shutdown`] finishes pending work first.
#[derive(Debug)]
pub struct Server {
    pub(super) address: SocketAddr,
    pub(super) stop: watch::Sender<bool>,
    pub(super) tasks: JoinSet<Result<(), store::Error>>,
}

/// Why a server did not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// The data directory cannot be used, or the disk failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A snapshot in the data directory cannot be decoded by this version.
    #[error("cannot read the tree of snapshot {zxid:#x}")]
    Snapshot { zxid: i64, source: SnapshotError },
    /// A record of the log does not fit the tree.
    #[error("cannot replay transaction {zxid:#x}: {reason}")]
    Replay { zxid: i64, reason: String },
    /// A thread could not be started, or a task or thread of the server panicked.
    #[error("internal error of the server")]
    Internal(#[source] io::Error),
}

impl ServerError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Listen { .. } => "stop what listens there or choose another address",
            Self::Store(error) => return error.hint(),
            Self::Snapshot { .. } => "was the directory written by another version?",
            Self::Replay { .. } => "was a file of the directory removed or replaced?",
            Self::Internal(_) => return None,
        };
        Some(hint.to_owned())
    }
}

impl Server {
    /// Starts a server; it accepts connections when this returns.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tinykeeper::server::ServerError> {
    /// use tinykeeper::server::{Config, Server};
    ///
    /// let server = Server::start(Config::in_memory()).await?;
    /// println!("clients connect to {}", server.address());
    /// server.shutdown().await
    /// # }
    /// ```
    pub async fn start(config: Config) -> Result<Self, ServerError> {
        start(config).await
    }

    /// The address the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server stops by itself, which happens only if the disk fails or a task or thread of the server panics.
    pub async fn wait(&mut self) -> Result<(), ServerError> {
        // If one task fails, the other one ends without an error, and may end first.
        while let Some(result) = self.tasks.join_next().await {
            flatten(result)?;
        }
        Ok(())
    }

    /// Stops the server: it accepts no more connections, writes everything received to disk, then closes the sockets.
    pub async fn shutdown(mut self) -> Result<(), ServerError> {
        self.stop.send_replace(true);
        self.wait().await
    }
}

fn flatten(result: Result<Result<(), store::Error>, JoinError>) -> Result<(), ServerError> {
    match result {
        Ok(result) => Ok(result?),
        Err(panic) => Err(ServerError::Internal(io::Error::other(panic))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failure_is_reported_although_another_task_ended_before() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async { Ok(()) });
        tasks.spawn(async {
            tokio::task::yield_now().await;
            panic!("boom");
        });
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server { address, stop: watch::channel(false).0, tasks };

        let result = server.wait().await;

        assert!(matches!(result, Err(ServerError::Internal(_))), "{result:?}");
    }
}
