//! What is known about a node.

use std::fmt;

use bytes::Bytes;

use super::session::SessionId;

/// The number of a transaction. Later ones have larger numbers, also after a restart of the registry.
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

/// How often a node's data changed. Blind to delete-and-create: a node made anew starts at zero again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub i32);

/// What is known about a node besides its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that created it: tells a node from another one made later in the same place.
    pub created: Zxid,
    /// The transaction that last changed its data.
    pub changed: Zxid,
    /// When that was, in milliseconds since 1970, by the registry's clock.
    pub changed_at_ms: i64,
    /// How often its data changed.
    pub version: Version,
    /// The session it lives with, if it is ephemeral.
    pub owner: Option<SessionId>,
    /// How many children it has.
    pub children: usize,
}

/// A node as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its data.
    pub data: Bytes,
    /// Everything else.
    pub stat: Stat,
}
