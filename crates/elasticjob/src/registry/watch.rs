//! A recursive watch: a snapshot, then changes, and a fresh snapshot after every gap.

use std::fmt;

use async_trait::async_trait;

use super::{path::Path, stat::Stat};

/// What a watch tells: `Init · InitApply* · InitDone · (Apply | Delete)*`, and again from `Init` after every gap.
///
/// Changes carry place and kind only, as ZooKeeper's do: whoever needs the data reads it. A change may be told that the
/// snapshot shows already; none is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A snapshot begins: forget what was known.
    Init,
    /// This node is there.
    InitApply {
        /// Where.
        path: Path,
        /// What is known about it.
        stat: Stat,
    },
    /// The snapshot is complete.
    InitDone,
    /// This node was created, or its data changed.
    Apply {
        /// Where.
        path: Path,
    },
    /// This node was deleted.
    Delete {
        /// Where.
        path: Path,
    },
}

/// A watch on a prefix. Dropping it ends it.
pub struct Watch {
    source: Box<dyn WatchSource>,
}

/// What an adapter has to bring for a [`Watch`].
#[async_trait]
pub trait WatchSource: Send {
    /// See [`Watch::next`]. Must not lose anything when the future is dropped before it is ready.
    async fn next(&mut self) -> Option<Event>;
    /// See [`Watch::try_next`].
    fn try_next(&mut self) -> Option<Event>;
    /// See [`Watch::is_current`].
    fn is_current(&self) -> bool;
}

impl Watch {
    /// A watch fed by `source`.
    pub fn new(source: impl WatchSource + 'static) -> Self {
        Self { source: Box::new(source) }
    }

    /// The next event; `None` when the registry was closed. Safe to drop while waiting: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        self.source.next().await
    }

    /// The next event if it is there already. Right after the answer to a write of one's own, everything committed before that
    /// write is there.
    pub fn try_next(&mut self) -> Option<Event> {
        self.source.try_next()
    }

    /// Whether the events given out so far make a whole picture: `false` from a gap until the `InitDone` of the snapshot that
    /// heals it. While `false`, [`Watch::try_next`] may have nothing to say although things changed.
    pub fn is_current(&self) -> bool {
        self.source.is_current()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("current", &self.is_current()).finish_non_exhaustive()
    }
}
