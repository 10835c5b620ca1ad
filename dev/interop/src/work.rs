//! The job of the tests, which sleeps and prints events, and a once-listener that prints an event for each call.

use std::time::Duration;

use async_trait::async_trait;
use elasticjob::{
    execution::{Execution, Failure, OnceListener, SimpleJob},
    job::Shard,
};
use serde_json::{Value, json};

use crate::output::{print_event, print_shard_event};

/// Sleeps, and prints an event when it starts and when it ends. One of its shards may always fail.
pub(crate) struct Work {
    duration: Duration,
    fails: Option<u32>,
}

impl Work {
    /// Reads the settings from a command.
    pub(crate) fn read(command: &Value) -> Option<Self> {
        let duration = Duration::from_millis(command["lastsMs"].as_u64()?);
        Some(Self { duration, fails: u32::try_from(command["fails"].as_i64()?).ok() })
    }
}

impl SimpleJob for Work {
    type Error = Failure;

    async fn execute(&self, shard: Shard) -> Result<(), Failure> {
        print_shard_event("started", &shard)?;
        let mut guard = InterruptGuard(Some(shard));
        tokio::time::sleep(self.duration).await;
        let Some(shard) = guard.0.take() else { return Ok(()) };
        if self.fails == Some(shard.item) {
            print_shard_event("failed", &shard)?;
            return Err(Failure::new("this shard always fails"));
        }
        print_shard_event("ended", &shard)?;
        Ok(())
    }
}

/// Prints `interrupted` when it is dropped with a shard: an interrupted handler is dropped, and cannot report it otherwise.
struct InterruptGuard(Option<Shard>);

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        if let Some(shard) = &self.0 {
            // This fails only if the test is gone.
            let _ = print_shard_event("interrupted", shard);
        }
    }
}

/// How long the listener waits for the other instances, before and after a run. Both together are less than the interval of a job, so that instances
/// that missed each other once meet at the next fire.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// Prints an event for each call.
pub(crate) struct OncePrinter;

#[async_trait]
impl OnceListener for OncePrinter {
    fn started_timeout(&self) -> Duration {
        TIMEOUT
    }

    fn completed_timeout(&self) -> Duration {
        TIMEOUT
    }

    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        print_call("before", execution)
    }

    async fn after(&self, execution: &Execution) -> Result<(), Failure> {
        print_call("after", execution)
    }
}

fn print_call(kind: &str, execution: &Execution) -> Result<(), Failure> {
    let (job, task) = (execution.task.job.as_str(), execution.task.to_string());
    Ok(print_event(json!({"event": kind, "job": job, "task": task}))?)
}
