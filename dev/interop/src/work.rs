//! A job that takes a while and says when it begins and how it ends, and a listener that says when it is called.

use std::time::Duration;

use async_trait::async_trait;
use elasticjob::{
    execution::{Execution, Failure, OnceListener, SimpleJob},
    job::Shard,
};
use serde_json::{Value, json};

use crate::words::{say, tell};

/// Takes a while. One of its shards may fail each time.
pub(crate) struct Work {
    lasts: Duration,
    fails: Option<u32>,
}

impl Work {
    /// As an order says.
    pub(crate) fn read(order: &Value) -> Option<Self> {
        let lasts = Duration::from_millis(order["lastsMs"].as_u64()?);
        Some(Self { lasts, fails: u32::try_from(order["fails"].as_i64()?).ok() })
    }
}

impl SimpleJob for Work {
    type Error = Failure;

    async fn execute(&self, shard: Shard) -> Result<(), Failure> {
        tell("began", &shard)?;
        let mut unfinished = Unfinished(Some(shard));
        tokio::time::sleep(self.lasts).await;
        let Some(shard) = unfinished.0.take() else { return Ok(()) };
        if self.fails == Some(shard.item) {
            tell("failed", &shard)?;
            return Err(Failure::new("this shard fails each time"));
        }
        tell("ended", &shard)?;
        Ok(())
    }
}

/// Whoever is stopped half way is dropped, and cannot say so otherwise.
struct Unfinished(Option<Shard>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(shard) = &self.0 {
            // Nobody listens any more when this fails.
            let _ = tell("interrupted", shard);
        }
    }
}

/// How long one waits for the others, before and after: together less than the interval of a job, so that two who missed each other once
/// are there at the same time for the next fire.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Says when it is called.
pub(crate) struct Once;

#[async_trait]
impl OnceListener for Once {
    fn started_timeout(&self) -> Duration {
        PATIENCE
    }

    fn completed_timeout(&self) -> Duration {
        PATIENCE
    }

    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        called("before", execution)
    }

    async fn after(&self, execution: &Execution) -> Result<(), Failure> {
        called("after", execution)
    }
}

fn called(what: &str, execution: &Execution) -> Result<(), Failure> {
    let (job, task) = (execution.task.job.as_str(), execution.task.to_string());
    Ok(say(json!({"said": what, "job": job, "task": task}))?)
}
