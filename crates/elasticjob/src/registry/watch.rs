//! Recursive watches: a snapshot, then changes, and a new snapshot after every gap.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use super::{path::Path, stat::Stat};

/// A watch delivers `Init · InitApply* · InitDone · (Apply | Delete)*`, and starts again with `Init` after every gap.
///
/// Changes carry path and kind only, as in ZooKeeper; the consumer reads the data if it needs it. A snapshot carries the data: a change after it was
/// read is reported. A change may be reported that the snapshot already contains; none is missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A snapshot begins: discard everything known so far.
    Init,
    /// This node exists. `data` is `None` if this member may not read it.
    InitApply { path: Path, stat: Stat, data: Option<Bytes> },
    /// The snapshot is complete.
    InitDone,
    /// This node was created, or its data changed.
    Apply { path: Path },
    /// This node was deleted.
    Delete { path: Path },
}

/// A watch on a prefix. Dropping it ends it.
pub struct Watch {
    source: Box<dyn WatchSource>,
}

/// What an adapter provides for a [`Watch`].
#[async_trait]
pub trait WatchSource: Send {
    /// See [`Watch::next`]. Must be cancel safe: dropping the future before it completes loses no event.
    async fn next(&mut self) -> Option<Event>;
    /// See [`Watch::try_next`].
    fn try_next(&mut self) -> Option<Event>;
    /// See [`Watch::is_current`].
    fn is_current(&self) -> bool;
}

impl Watch {
    /// Creates a watch that reads from `source`.
    pub fn new(source: impl WatchSource + 'static) -> Self {
        Self { source: Box::new(source) }
    }

    /// The next event; `None` once the registry is closed. Cancel safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Event> {
        self.source.next().await
    }

    /// The next event if one is queued. Once one of this member's writes is answered, every change committed before that write is
    /// queued.
    pub fn try_next(&mut self) -> Option<Event> {
        self.source.try_next()
    }

    /// Whether the events delivered so far form a complete view: `false` from a gap until the `InitDone` of the snapshot that closes
    /// it. While `false`, [`Watch::try_next`] may return nothing although nodes changed.
    pub fn is_current(&self) -> bool {
        self.source.is_current()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("current", &self.is_current()).finish_non_exhaustive()
    }
}
