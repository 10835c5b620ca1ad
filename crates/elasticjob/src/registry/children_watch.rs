//! Watches the children of one node, and nothing below them.

use std::fmt;

use async_trait::async_trait;

use super::{
    path::Path,
    watch::{Event, Watch},
};

/// Reports that nodes were created or deleted directly below one node, or that this may have happened unseen. Dropping it ends it.
///
/// It does not say which: the consumer lists the children again.
pub struct ChildrenWatch {
    source: Box<dyn ChildrenSource>,
}

/// What an adapter provides for a [`ChildrenWatch`].
#[async_trait]
pub trait ChildrenSource: Send {
    /// See [`ChildrenWatch::changed`].
    async fn changed(&mut self) -> Option<()>;
}

impl ChildrenWatch {
    pub fn new(source: impl ChildrenSource + 'static) -> Self {
        Self { source: Box::new(source) }
    }

    /// For a registry that has only recursive watches.
    pub(super) fn of_subtree(parent: &Path, watch: Watch) -> Self {
        Self::new(FilteredWatch { parent: parent.clone(), watch })
    }

    /// Waits for the next change; `None` once the registry is closed. Cancel safe: dropping the future loses no change.
    pub async fn changed(&mut self) -> Option<()> {
        self.source.changed().await
    }
}

impl fmt::Debug for ChildrenWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildrenWatch").finish_non_exhaustive()
    }
}

struct FilteredWatch {
    parent: Path,
    watch: Watch,
}

#[async_trait]
impl ChildrenSource for FilteredWatch {
    async fn changed(&mut self) -> Option<()> {
        loop {
            let path = match self.watch.next().await? {
                Event::InitDone => return Some(()),
                Event::Init | Event::InitApply { .. } => continue,
                Event::Apply { path } | Event::Delete { path } => path,
            };
            if path == self.parent || path.parent().as_ref() == Some(&self.parent) {
                return Some(());
            }
        }
    }
}
