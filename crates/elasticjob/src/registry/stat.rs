//! Node metadata.

use std::fmt;

use bytes::Bytes;

use super::session::SessionId;

/// A transaction number. Later transactions have larger numbers, even across restarts of the registry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Zxid(pub i64);

impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zxid({:#x})", self.0)
    }
}

/// Counts changes of a node's data. It cannot detect that a node was deleted and re-created, because the count restarts at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub i32);

/// A node's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that created the node; distinguishes it from a later node at the same path.
    pub created: Zxid,
    /// The transaction of the last data change.
    pub changed: Zxid,
    /// Time of the last data change by the registry's clock, in milliseconds since 1970.
    pub changed_at_ms: i64,
    pub version: Version,
    /// The owning session of an ephemeral node.
    pub owner: Option<SessionId>,
    /// Number of children.
    pub children: usize,
}

/// A node's data and metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub data: Bytes,
    pub stat: Stat,
}
