//! A sink for a database that may be unreachable at first, with periodic maintenance.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{
    event::Event,
    sink::{Sink, SinkError},
    store::{HistoryUrl, PruneSummary, Retention, Store, StoreError},
};
use crate::runtime::{Clock, Randomness};

/// Average interval for pruning. Every process prunes, each at another time; the later ones find nothing left to do.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);

/// Average delay of the first prune, so that a process that runs only for some minutes prunes, too.
const FIRST_PRUNE: Duration = Duration::from_mins(1);

/// Average interval for marking lost attempts.
const LOST_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// A [`Store`] that is opened for the first batch, and again for later batches while that fails: a process and its jobs start even while the
/// database is down.
#[derive(Debug)]
pub(super) struct DatabaseSink {
    url: HistoryUrl,
    store: Mutex<Option<Store>>,
}

impl DatabaseSink {
    pub(super) fn new(url: HistoryUrl) -> Self {
        Self { url, store: Mutex::default() }
    }

    async fn store(&self) -> Result<Store, StoreError> {
        let mut store = self.store.lock().await;
        if let Some(store) = &*store {
            return Ok(store.clone());
        }
        let opened = Store::open(&self.url).await?;
        *store = Some(opened.clone());
        Ok(opened)
    }

    /// Marks lost attempts and prunes old history, forever.
    pub(super) async fn maintain(
        self: Arc<Self>,
        retention: Retention,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
    ) {
        let later = |span: Duration| clock.monotonic() + span.mul_f64(0.5 + randomness.fraction());
        let mut next_prune = later(FIRST_PRUNE);
        loop {
            clock.sleep_until(later(LOST_CHECK_INTERVAL)).await;
            // Only `keep` opens the store, and reports why it cannot.
            let Some(store) = self.store.lock().await.clone() else { continue };
            match store.mark_lost(clock.now()).await {
                Ok(0) => {}
                Ok(attempts) => tracing::info!(attempts, "attempts marked as lost"),
                Err(error) => tracing::debug!(%error, "marking lost attempts failed"),
            }
            if clock.monotonic() < next_prune {
                continue;
            }
            next_prune = later(PRUNE_INTERVAL);
            let pruned = store.prune(&retention, clock.now()).await;
            match pruned {
                Ok(pruned) if pruned != PruneSummary::default() => {
                    tracing::info!(
                        runs = pruned.runs,
                        missed = pruned.missed,
                        orphans = pruned.orphans,
                        "old history pruned"
                    );
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "pruning old history failed");
                }
            }
        }
    }
}

#[async_trait]
impl Sink for DatabaseSink {
    async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
        match self.store().await?.store(batch).await {
            // The tables may have been dropped; opening the store again creates them.
            Err(SinkError::Refused(_)) => {
                *self.store.lock().await = None;
                self.store().await?.store(batch).await
            }
            result => result,
        }
    }
}
