//! Registry errors, one variant for each way a caller reacts.

use std::{borrow::Cow, fmt};

use super::{operation::ExpectedVersion, path::Path};
use crate::problem::Hint;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a registry request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another member created the node first: read again, decide again.
    #[error("{path} already exists")]
    Exists { path: Path },
    /// The registry said that the node, or the parent of a node to create, does not exist.
    #[error("{path} does not exist")]
    NotFound { path: Path },
    /// The node changed since it was read: read again, decide again.
    #[error("{path} is no longer at {expected:?}")]
    Conflict { path: Path, expected: ExpectedVersion },
    /// The node has children, which must be deleted first.
    #[error("{path} has children")]
    NotEmpty { path: Path },
    /// The credentials give no access to the node: a person has to fix them.
    #[error("not authorised for {path}")]
    NotAuthorised { path: Path },
    /// The request can never succeed: a bug, or a name that the registry refuses.
    #[error("the registry refuses {path}: {reason}")]
    Invalid {
        path: Path,
        /// The registry's own message.
        reason: String,
    },
    /// The registry does not execute the request now: it is overloaded, or a quota is used up. Nothing happened: back off, try again.
    #[error("the registry refuses {path} for now: {reason}")]
    Throttled {
        path: Path,
        /// The registry's own message.
        reason: String,
    },
    /// The request exceeds the registry's size limit.
    #[error("{path}: a request of {size} {unit} is over the registry's limit of {limit}")]
    TooLarge {
        /// The first node of the request.
        path: Path,
        size: usize,
        unit: SizeUnit,
        limit: usize,
    },
    /// One operation of a multi was refused, so none was executed.
    #[error("operation {index} was refused")]
    Operation {
        /// Position of the operation in the multi, from zero.
        index: usize,
        #[source]
        cause: Box<Error>,
    },
    /// A file that the registry URL names cannot be used, so no connection was attempted: a person has to correct it.
    #[error("the TLS settings of the registry URL cannot be used")]
    Settings {
        /// The problem, with the file it concerns.
        #[source]
        source: BoxError,
    },
    /// The request was not sent, so nothing happened: back off, try again.
    #[error("cannot reach the registry at {endpoint}")]
    Unreachable {
        endpoint: String,
        #[source]
        source: BoxError,
    },
    /// The request was sent and not answered: it may have been executed. Wait for the session, sync, read.
    #[error(
        "the connection to {endpoint} broke before an answer arrived: the request may have been executed"
    )]
    Unknown { endpoint: String },
    /// The session that the request was meant for has ended: stop, continue with the new one.
    #[error("the registry session has ended")]
    SessionExpired,
    /// [`close`](super::Registry::close) was called.
    #[error("the registry was closed")]
    Closed,
}

/// What the size of a request is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    Bytes,
    Operations,
}

impl fmt::Display for SizeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Operations => "operations",
        })
    }
}

impl Error {
    /// Returns the cause of a refused multi that has a single operation.
    pub(super) fn unwrap_single_op(self) -> Self {
        match self {
            Error::Operation { cause, .. } => *cause,
            other => other,
        }
    }

    /// Whether the connection failed, as opposed to the registry refusing the request.
    pub fn is_outage(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::Unknown { .. })
    }

    /// Whether the same request may succeed later, without anybody doing anything about it.
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::Throttled { .. } => true,
            Error::Operation { cause, .. } => cause.is_temporary(),
            error => error.is_outage(),
        }
    }

    /// Whether our credentials give no access: only a person can change that.
    pub fn is_denial(&self) -> bool {
        match self {
            Error::Operation { cause, .. } => cause.is_denial(),
            error => matches!(error, Error::NotAuthorised { .. }),
        }
    }

    /// Whether the registry answered and refused the request, so that nothing happened and the session goes on.
    pub fn is_refusal(&self) -> bool {
        let is_ours =
            matches!(self, Error::SessionExpired | Error::Closed | Error::Settings { .. });
        !self.is_outage() && !is_ours
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Error::NotAuthorised { .. } => {
                "check user and password in the registry URL, and the node's access list"
            }
            Error::Unreachable { .. } => "is ZooKeeper listening there?",
            Error::Settings { .. } => "check tls.ca, tls.cert and tls.key in the registry URL",
            Error::Operation { cause, .. } => return cause.hint(),
            _ => return None,
        };
        Some(Cow::Borrowed(hint))
    }
}
