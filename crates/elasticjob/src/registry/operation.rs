//! Write operations and their preconditions.

use bytes::Bytes;

use super::{
    path::Path,
    session::SessionId,
    stat::{Version, Zxid},
};

/// How long a node lives, and whether the registry numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Until deleted.
    Persistent,
    /// As long as this session. Refused with [`Error::SessionExpired`](super::Error::SessionExpired) if the member
    /// has another session by then.
    Ephemeral(SessionId),
    /// Until deleted; the registry appends a number larger than that of every earlier sibling.
    Sequential,
    /// As long as this session; the registry appends a number.
    EphemeralSequential(SessionId),
    /// Until its last child is deleted; the registry removes it some time later.
    Container,
}

impl Kind {
    /// The session that an ephemeral node belongs to.
    pub fn session(self) -> Option<SessionId> {
        match self {
            Kind::Ephemeral(session) | Kind::EphemeralSequential(session) => Some(session),
            Kind::Persistent | Kind::Sequential | Kind::Container => None,
        }
    }
}

/// A node to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// For a sequential node, the registry appends ten digits.
    pub path: Path,
    pub data: Bytes,
    pub kind: Kind,
}

impl Create {
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

/// The version of a node that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Any version.
    Any,
    /// Exactly this version; otherwise [`Error::Conflict`](super::Error::Conflict).
    Version(Version),
}

/// A change, or a condition for the other operations of a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Create(Create),
    Set {
        path: Path,
        data: Bytes,
        expected: ExpectedVersion,
    },
    Delete {
        path: Path,
        expected: ExpectedVersion,
    },
    /// Refuses the whole multi unless the node exists in this version.
    Check {
        path: Path,
        expected: ExpectedVersion,
    },
}

impl Op {
    /// The node it applies to.
    pub fn path(&self) -> &Path {
        match self {
            Op::Create(create) => &create.path,
            Op::Set { path, .. } | Op::Delete { path, .. } | Op::Check { path, .. } => path,
        }
    }

    /// Size on the wire in bytes, at most.
    pub fn size(&self) -> usize {
        const HEADERS: usize = 64;
        let data = match self {
            Op::Create(create) => create.data.len(),
            Op::Set { data, .. } => data.len(),
            Op::Delete { .. } | Op::Check { .. } => 0,
        };
        HEADERS + self.path().as_str().len() + data
    }

    /// The version it requires.
    pub fn expected(&self) -> ExpectedVersion {
        match self {
            Op::Create(_) => ExpectedVersion::Any,
            Op::Set { expected, .. } | Op::Delete { expected, .. } | Op::Check { expected, .. } => {
                *expected
            }
        }
    }
}

/// The result of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResult {
    /// The path of the created node, including the number of a sequential node.
    Created(Path),
    Set(Version),
    Deleted,
    Checked,
}

/// The result of a committed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Transaction number; also the creation id of every node that the transaction created.
    pub zxid: Zxid,
    /// One result for each operation, in order.
    pub done: Vec<OpResult>,
    /// Time of the transaction by the registry's clock, in milliseconds since 1970; known if the transaction set a node.
    pub written_at_ms: Option<i64>,
}

impl Committed {
    /// The path of the first created node.
    pub fn path(&self) -> Option<&Path> {
        self.done
            .iter()
            .find_map(|done| if let OpResult::Created(path) = done { Some(path) } else { None })
    }
}
