//! The pages of the ledger, as they were last seen, and who lives.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::actor::Actor;
use crate::{
    coordination::ledger::{LedgerPage, VersionedPage},
    job::InstanceId,
    registry::{Error, Path},
};

impl Actor {
    pub(super) async fn page(&mut self, shard: u32) -> Result<VersionedPage, Error> {
        self.fetch_pages(&[shard]).await?;
        Ok(self.pages.get(&shard).map(|seen| VersionedPage::clone(seen)).unwrap_or_default())
    }

    /// Reads the pages that are not known, all at once.
    pub(super) async fn fetch_pages(&mut self, shards: &[u32]) -> Result<(), Error> {
        let unknown: Vec<u32> =
            shards.iter().copied().filter(|shard| !self.pages.contains_key(shard)).collect();
        let paths: Vec<Path> = unknown.iter().map(|shard| self.tree.ledger_page(*shard)).collect();
        let nodes = join_all(paths.iter().map(|path| self.registry.get(path))).await;
        for ((shard, path), node) in unknown.into_iter().zip(paths).zip(nodes) {
            let seen = match node? {
                None => VersionedPage::default(),
                Some(node) => {
                    let page = LedgerPage::read(&node.data)
                        .map_err(|error| Error::Invalid { path, reason: error.to_string() })?;
                    self.look_for_the_dead(shard, &page, node.stat.changed);
                    VersionedPage { page, version: Some(node.stat.version) }
                }
            };
            self.pages.insert(shard, Box::new(seen));
        }
        Ok(())
    }

    pub(super) async fn last_due(&mut self) -> Result<BTreeMap<u32, Option<Timestamp>>, Error> {
        self.catch_up().await?;
        let mut last = BTreeMap::new();
        for shard in self.mine() {
            last.insert(shard, self.page(shard).await?.page.due_at);
        }
        Ok(last)
    }

    /// Whether this instance lives: it takes part, or its process does at least.
    pub(super) async fn lives(&mut self, id: &InstanceId) -> Result<bool, Error> {
        if self.view.instances.contains_key(id.as_str()) {
            return Ok(true);
        }
        Ok(!id.is_java() && self.registry.exists(&self.tree.process(id)).await?.is_some())
    }

    pub(super) fn has_java(&self) -> bool {
        let mut ids = self.view.instances.keys().filter_map(|id| id.parse::<InstanceId>().ok());
        ids.any(|id| id.is_java())
    }
}
