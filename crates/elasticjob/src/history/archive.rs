//! A database that may not be there yet, and is tidied now and then.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{
    event::Event,
    sink::{Sink, SinkError},
    store::{HistoryUrl, Pruned, Retention, Store, StoreError},
};
use crate::runtime::{Clock, Randomness};

/// About how often what is old is forgotten. Every process does it, each at a time of its own: whoever comes second finds nothing left to do.
const TIDY: Duration = Duration::from_hours(1);

/// About when it is done for the first time: a process that is started every few minutes does it, too.
const FIRST: Duration = Duration::from_mins(1);

/// About how often it is looked for attempts that nobody will tell the end of.
const LOOK: Duration = Duration::from_secs(30);

/// A [`Store`] that is opened when something is to be kept, and tried again while it cannot be: a process starts, and its jobs run, while its
/// database is down.
#[derive(Debug)]
pub(super) struct Archive {
    url: HistoryUrl,
    store: Mutex<Option<Store>>,
}

impl Archive {
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

    /// Marks what is lost, and forgets what is not to be kept, for ever.
    pub(super) async fn tidy(
        self: Arc<Self>,
        retention: Retention,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
    ) {
        let later = |span: Duration| clock.monotonic() + span.mul_f64(0.5 + randomness.fraction());
        let mut tidy = later(FIRST);
        loop {
            clock.sleep_until(later(LOOK)).await;
            // That it cannot be kept is said elsewhere, and nobody opens it but for something to keep.
            let Some(store) = self.store.lock().await.clone() else { continue };
            match store.mark_lost(clock.now()).await {
                Ok(0) => {}
                Ok(attempts) => tracing::info!(
                    attempts,
                    "shards began again while nobody had told the end of an attempt: it is lost"
                ),
                Err(error) => tracing::debug!(%error, "history could not be looked through"),
            }
            if clock.monotonic() < tidy {
                continue;
            }
            tidy = later(TIDY);
            let pruned = store.prune(&retention, clock.now()).await;
            match pruned {
                Ok(pruned) if pruned != Pruned::default() => {
                    tracing::info!(
                        runs = pruned.runs,
                        missed = pruned.missed,
                        orphans = pruned.orphans,
                        "old history is forgotten"
                    );
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "old history could not be forgotten this time");
                }
            }
        }
    }
}

#[async_trait]
impl Sink for Archive {
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
        match self.store().await?.keep(batch).await {
            // Somebody may have taken its tables away: whoever opens it makes them.
            Err(SinkError::Refused(_)) => {
                *self.store.lock().await = None;
                self.store().await?.keep(batch).await
            }
            answer => answer,
        }
    }
}
