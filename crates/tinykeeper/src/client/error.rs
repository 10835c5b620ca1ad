//! How a connection or a request can fail.

use crate::wire::Code;

/// A cause from below, kept for its text.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration names no server.
    #[error("no servers to connect to")]
    NoServers,
    /// Not a `host:port`.
    #[error("{server:?} is not host:port")]
    BadServer {
        /// What was given.
        server: String,
    },
    /// No server gave us a session, however often we tried.
    #[error("cannot reach any server of {servers} in {rounds} rounds")]
    Unreachable {
        /// Every server tried, with commas between.
        servers: String,
        /// How often each was tried.
        rounds: u32,
        /// What went wrong last, and at which server.
        source: BoxError,
    },
    /// A server does not believe our credentials; it will not believe them later either.
    #[error("{server} refused our {scheme} credentials")]
    AuthRefused {
        /// Which server.
        server: String,
        /// The scheme refused.
        scheme: String,
    },
    /// A certificate or key that cannot be used, ours or theirs.
    #[error("cannot speak TLS")]
    Tls {
        /// What is wrong with it, and at which server or in which file.
        source: BoxError,
    },
}

/// How a request failed. Nothing here is about a node's content except [`Error::Refused`] and [`Error::MultiRefused`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server looked at it and did not do it.
    #[error("refused: {code}")]
    Refused {
        /// Why.
        code: Code,
        /// The transaction at which it was refused.
        zxid: i64,
    },
    /// A multi was refused as a whole because of one member.
    #[error("refused at operation {index}: {code}")]
    MultiRefused {
        /// Which member, counted from zero.
        index: usize,
        /// Why.
        code: Code,
        /// The transaction at which it was refused.
        zxid: i64,
    },
    /// It was sent and the connection went before the answer: it may have happened. Only reading tells.
    #[error("the connection was lost before the answer, so the outcome is unknown")]
    Unknown,
    /// There is no connection; it never left this process.
    #[error("not sent: not connected")]
    NotSent,
    /// It was meant for a session that is gone; it never left this process.
    #[error("not sent: its session is gone")]
    SessionExpired,
    /// It is larger than a server takes; it never left this process.
    #[error("a request of {length} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its length as a frame.
        length: usize,
        /// The limit in force.
        limit: usize,
    },
    /// This path is watched in another way. ZooKeeper up to 3.8 keeps one mode for each path and connection, so the second
    /// would silently end the first.
    #[error("{path} is already watched in another mode")]
    WatchConflict {
        /// The path.
        path: String,
    },
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
    /// A server refused our credentials; the client is of no further use.
    #[error("the server refused our credentials")]
    AuthFailed,
}

impl Error {
    /// The server's reason, if it refused.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Refused { code, .. } | Error::MultiRefused { code, .. } => Some(*code),
            _ => None,
        }
    }
}
