//! What can be changed, and on which condition.

use bytes::Bytes;

use super::{
    path::Path,
    session::SessionId,
    stat::{Version, Zxid},
};

/// How long a node lives and who names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Until deleted.
    Persistent,
    /// As long as this session. Refused with [`Error::SessionExpired`](super::Error::SessionExpired) when the registry holds
    /// another session by now.
    Ephemeral(SessionId),
    /// Until deleted; the registry appends a number that is larger than that of every sibling before.
    Sequential,
    /// As long as this session, with a number.
    EphemeralSequential(SessionId),
    /// Until its last child has gone: the registry removes it some time later.
    Container,
}

impl Kind {
    /// The session it is meant for.
    pub fn session(self) -> Option<SessionId> {
        match self {
            Kind::Ephemeral(session) | Kind::EphemeralSequential(session) => Some(session),
            Kind::Persistent | Kind::Sequential | Kind::Container => None,
        }
    }
}

/// A node to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Where; a sequential node gets ten digits appended.
    pub path: Path,
    /// Its data.
    pub data: Bytes,
    /// How long it lives.
    pub kind: Kind,
}

impl Create {
    /// A node of this kind.
    pub fn new(path: &Path, data: impl Into<Bytes>, kind: Kind) -> Self {
        Self { path: path.clone(), data: data.into(), kind }
    }

    /// A node that lives until deleted.
    pub fn persistent(path: &Path, data: impl Into<Bytes>) -> Self {
        Self::new(path, data, Kind::Persistent)
    }

    /// A node that lives as long as `session`.
    pub fn ephemeral(path: &Path, data: impl Into<Bytes>, session: SessionId) -> Self {
        Self::new(path, data, Kind::Ephemeral(session))
    }
}

/// Which version of a node a change is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Whichever is there.
    Any,
    /// This one: otherwise [`Error::Conflict`](super::Error::Conflict).
    Version(Version),
}

/// One change, or a condition on the others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "path, data and expected are what they say")]
pub enum Op {
    Create(Create),
    Set {
        path: Path,
        data: Bytes,
        expected: Expected,
    },
    Delete {
        path: Path,
        expected: Expected,
    },
    /// Refuse everything unless the node is there in this version.
    Check {
        path: Path,
        expected: Expected,
    },
}

impl Op {
    /// The node it is about.
    pub fn path(&self) -> &Path {
        match self {
            Op::Create(create) => &create.path,
            Op::Set { path, .. } | Op::Delete { path, .. } | Op::Check { path, .. } => path,
        }
    }

    /// What it expects to find.
    pub fn expected(&self) -> Expected {
        match self {
            Op::Create(_) => Expected::Any,
            Op::Set { expected, .. } | Op::Delete { expected, .. } | Op::Check { expected, .. } => {
                *expected
            }
        }
    }
}

/// What one operation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Done {
    /// Created here: for a sequential node, with its number.
    Created(Path),
    Set(Version),
    Deleted,
    Checked,
}

/// Everything was done, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The transaction: the creation id of every node it created.
    pub zxid: Zxid,
    /// One for each operation, in order.
    pub done: Vec<Done>,
}

impl Committed {
    /// Where the first created node is.
    pub fn path(&self) -> Option<&Path> {
        self.done.iter().find_map(
            |done| {
                if let Done::Created(path) = done { Some(path) } else { None }
            },
        )
    }
}
