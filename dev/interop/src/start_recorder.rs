//! A job that only records when each of its shards started: for benchmarks, where printing an event for each would cost too much.

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

/// The recorded starts: job, item and time in milliseconds. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Starts(Arc<Mutex<Vec<(String, u32, i64)>>>);

impl Starts {
    /// A job that records its starts here and runs for `duration`.
    pub(crate) fn job(&self, duration: Duration) -> StartRecorder {
        StartRecorder { starts: self.clone(), duration }
    }

    fn record(&self, shard: &Shard) {
        let start = (shard.job.to_string(), shard.item, SystemClock.now().as_millisecond());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(start);
    }

    /// Returns and clears the recorded starts.
    pub(crate) fn take(&self) -> Value {
        let starts = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        starts.into_iter().map(|(job, item, at)| json!([job, item, at])).collect()
    }
}

pub(crate) struct StartRecorder {
    starts: Starts,
    duration: Duration,
}

impl SimpleJob for StartRecorder {
    type Error = Failure;

    async fn execute(&self, shard: Shard) -> Result<(), Failure> {
        self.starts.record(&shard);
        if !self.duration.is_zero() {
            tokio::time::sleep(self.duration).await;
        }
        Ok(())
    }
}
