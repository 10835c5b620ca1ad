//! Waits for changes of a job's runs without polling.

use super::{error::AdminError, handle::Admin};
use crate::{
    job::JobName,
    registry::{Error, Watch},
};

/// Reports when a ledger page of a job changes: then [`Admin::shards`] may return other runs.
pub struct LedgerChanges(Watch);

impl Admin {
    /// Watches the ledger of a job from now on.
    pub async fn ledger_changes(&self, job: &JobName) -> Result<LedgerChanges, AdminError> {
        Ok(LedgerChanges(self.registry.watch(self.tree(job)?.ledger()).await?))
    }
}

impl LedgerChanges {
    /// Waits for the next change; changes that are already queued are reported as one.
    pub async fn next(&mut self) -> Result<(), AdminError> {
        self.0.next().await.ok_or(Error::SessionExpired)?;
        while self.0.try_next().is_some() {}
        Ok(())
    }
}
