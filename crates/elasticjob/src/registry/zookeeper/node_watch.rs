//! A watch on one node and the names of its children.

use async_trait::async_trait;
use tinykeeper::client::{self, WatchEvent};

use crate::registry::children_watch::ChildrenSource;

pub(super) struct NodeWatch(pub(super) client::Watch);

#[async_trait]
impl ChildrenSource for NodeWatch {
    async fn changed(&mut self) -> Option<()> {
        loop {
            match self.0.next().await? {
                WatchEvent::Changed { .. } | WatchEvent::Gap(_) => break,
                WatchEvent::Suspended => {}
            }
        }
        // One listing answers everything that is queued by now.
        while self.0.try_next().is_some() {}
        Some(())
    }
}
