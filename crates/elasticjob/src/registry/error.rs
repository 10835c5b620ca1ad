//! What can go wrong, by what a caller does about it.

use super::{operation::Expected, path::Path};

/// The cause of an error, whatever it was.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why the registry did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Somebody was there first: look again, decide again.
    #[error("{path} exists already")]
    Exists {
        /// The node.
        path: Path,
    },
    /// The node, or the parent of one to be created, is not there. The registry said so.
    #[error("{path} does not exist")]
    Absent {
        /// The node.
        path: Path,
    },
    /// It changed since it was read: look again, decide again.
    #[error("{path} is not at {expected:?} any more")]
    Conflict {
        /// The node.
        path: Path,
        /// What was expected.
        expected: Expected,
    },
    /// It has children: they have to go first.
    #[error("{path} has children")]
    NotEmpty {
        /// The node.
        path: Path,
    },
    /// The credentials do not open it: ask the operator.
    #[error(
        "not authorised for {path}; hint: check user and password in the registry URL, and the node's access list"
    )]
    NotAuthorised {
        /// The node.
        path: Path,
    },
    /// It can never work: a bug, or a name that a registry refuses.
    #[error("the registry refuses {path}: {reason}")]
    Invalid {
        /// The node.
        path: Path,
        /// The registry's words.
        reason: String,
    },
    /// Larger than the registry takes.
    #[error("{path}: a request of {bytes} bytes is over the registry's limit of {limit}")]
    TooLarge {
        /// The first node of the request.
        path: Path,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// One member of a multi was refused, so nothing was done.
    #[error("operation {index} was refused")]
    Member {
        /// Which one, from zero.
        index: usize,
        /// Why.
        #[source]
        cause: Box<Error>,
    },
    /// The request did not leave, so nothing happened: back off, try again.
    #[error("cannot reach the registry at {endpoint}; hint: is ZooKeeper listening there?")]
    Unreachable {
        /// Where it should be.
        endpoint: String,
        /// What was in the way.
        #[source]
        source: BoxError,
    },
    /// The request left and no answer came: it may have happened. Wait for the session, sync, read.
    #[error(
        "the connection to {endpoint} broke before it answered: it is not known whether the request was carried out"
    )]
    Unknown {
        /// Whom it was sent to.
        endpoint: String,
    },
    /// The session this was meant for is gone: stop, take up the new one.
    #[error("the registry session has ended")]
    SessionExpired,
    /// [`close`](super::Registry::close) was called.
    #[error("the registry was closed")]
    Closed,
}

impl Error {
    /// Takes the only member's error out of a multi of one.
    pub(super) fn of_only_member(self) -> Self {
        match self {
            Error::Member { cause, .. } => *cause,
            other => other,
        }
    }

    /// Whether it was the connection and not the registry that said no.
    pub fn is_outage(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::Unknown { .. })
    }
}
