//! A job that does nothing but note when each of its shards began: for measuring, where every word costs.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    execution::{Failure, SimpleJob},
    job::Shard,
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};

/// What was noted. Clones are the same book.
#[derive(Clone, Default)]
pub(crate) struct Beats(Arc<Mutex<Vec<(String, u32, i64)>>>);

impl Beats {
    /// A job that notes here, and takes this long.
    pub(crate) fn job(&self, lasts: Duration) -> Beat {
        Beat { beats: self.clone(), lasts }
    }

    fn note(&self, shard: &Shard) {
        let beat = (shard.job.to_string(), shard.item, SystemClock.now().as_millisecond());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(beat);
    }

    /// What was noted since this was last asked.
    pub(crate) fn told(&self) -> Value {
        let noted = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        noted.into_iter().map(|(job, item, at)| json!([job, item, at])).collect()
    }
}

pub(crate) struct Beat {
    beats: Beats,
    lasts: Duration,
}

impl SimpleJob for Beat {
    type Error = Failure;

    async fn execute(&self, shard: Shard) -> Result<(), Failure> {
        self.beats.note(&shard);
        if !self.lasts.is_zero() {
            tokio::time::sleep(self.lasts).await;
        }
        Ok(())
    }
}
