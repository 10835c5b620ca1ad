//! A database that may not be there yet, and is tidied now and then.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::{
    event::Event,
    sink::{Sink, SinkError},
    store::{HistoryUrl, Pruned, Retention, Store, StoreError},
};
use crate::runtime::{Clock, Randomness};

/// About how often what is old is forgotten. Every process does it, each at a time of its own: whoever comes second finds nothing left to do.
const TIDY: Duration = Duration::from_hours(1);

/// About how often it is looked for attempts that nobody will tell the end of.
const LOOK: Duration = Duration::from_secs(30);

/// A [`Store`] that is opened when something is to be kept, and tried again while it cannot be: a process starts, and its jobs run, while its
/// database is down.
#[derive(Debug)]
pub(super) struct Archive {
    url: HistoryUrl,
    store: OnceCell<Store>,
}

impl Archive {
    pub(super) fn new(url: HistoryUrl) -> Self {
        Self { url, store: OnceCell::new() }
    }

    async fn store(&self) -> Result<&Store, StoreError> {
        self.store.get_or_try_init(|| Store::open(&self.url)).await
    }

    /// Marks what is lost, and forgets what is not to be kept, for ever.
    pub(super) async fn tidy(
        self: Arc<Self>,
        retention: Retention,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
    ) {
        let later = |span: Duration| clock.monotonic() + span.mul_f64(0.5 + randomness.fraction());
        let mut tidy = later(TIDY);
        loop {
            clock.sleep_until(later(LOOK)).await;
            // That it cannot be kept is said elsewhere, and nobody opens it but for something to keep.
            let Some(store) = self.store.get() else { continue };
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
        self.store().await?.keep(batch).await
    }
}
