//! Errors of connecting and of requests.

use crate::wire::Code;

/// The cause of an error, without its type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a client could not connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    #[error("no servers to connect to")]
    NoServers,
    #[error("{server:?} is not host:port")]
    BadServer { server: String },
    /// No server granted a session in any round.
    #[error("cannot reach any server of {servers} in {rounds} rounds")]
    Unreachable {
        /// Every server tried, separated by commas.
        servers: String,
        rounds: u32,
        /// The last error, which names its server.
        source: BoxError,
    },
    /// A server refused the credentials. This is final: a retry would be refused too.
    #[error("{server} refused the {scheme} credentials")]
    AuthRefused { server: String, scheme: String },
    /// The server's certificate is not trusted, or the server does not accept this client's.
    #[error("cannot establish TLS")]
    Tls {
        /// The problem, with the server it concerns.
        source: BoxError,
    },
    /// A certificate or key of this client cannot be read or used: no server was asked, and a retry fails too.
    #[error("cannot use the TLS settings")]
    TlsSettings {
        /// The problem, with the file it concerns.
        source: BoxError,
    },
}

/// Why a request failed. Only [`Error::Refused`] and [`Error::MultiRefused`] are about nodes, the others about the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server processed the request and refused it.
    #[error("refused: {code}")]
    Refused {
        code: Code,
        /// The transaction of the refusal.
        zxid: i64,
    },
    /// The server refused a whole multi because of one operation.
    #[error("refused at operation {index}: {code}")]
    MultiRefused {
        /// Index of the operation, from zero.
        index: usize,
        code: Code,
        /// The transaction of the refusal.
        zxid: i64,
    },
    /// The request was sent and the connection was lost before the reply: it may have taken effect. Only a read can tell.
    #[error("the connection was lost before the reply, so the outcome is unknown")]
    Unknown,
    /// There is no connection; the request never left this process.
    #[error("not sent: not connected")]
    NotSent,
    /// The request named a session that has expired; it never left this process.
    #[error("not sent: its session has expired")]
    SessionExpired,
    /// The request exceeds [`Config::max_frame`](super::Config::max_frame); it never left this process.
    #[error("a request of {length} bytes is over the limit of {limit}")]
    TooLarge {
        /// Length of the frame.
        length: usize,
        limit: usize,
    },
    /// The path is already watched in a different mode. ZooKeeper up to 3.8 stores one mode per path and connection, so the
    /// second watch would silently end the first.
    #[error("{path:?} is already watched in another mode")]
    WatchConflict { path: String },
    #[error("the client is closed")]
    Closed,
    /// A server refused the credentials. The client cannot be used any more.
    #[error("the server refused the credentials")]
    AuthFailed,
}

impl Error {
    /// The server's code, if it refused the request.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Refused { code, .. } | Error::MultiRefused { code, .. } => Some(*code),
            _ => None,
        }
    }
}
