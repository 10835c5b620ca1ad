//! Waiting for news of a job's runs without asking again and again.

use super::{door::Admin, error::AdminError};
use crate::{
    job::JobName,
    registry::{Error, Watch},
};

/// Tells when a ledger page of a job changes: what [`Admin::shards`] says of its runs may be something else then.
pub struct LedgerChanges(Watch);

impl Admin {
    /// Watches the ledger of a job from now on.
    pub async fn ledger_changes(&self, job: &JobName) -> Result<LedgerChanges, AdminError> {
        Ok(LedgerChanges(self.registry.watch(self.tree(job)?.ledger()).await?))
    }
}

impl LedgerChanges {
    /// Waits for the next change; several at once count as one.
    pub async fn next(&mut self) -> Result<(), AdminError> {
        self.0.next().await.ok_or(Error::SessionExpired)?;
        while self.0.try_next().is_some() {}
        Ok(())
    }
}
