//! Listeners that are called before and after every execution on this instance.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use async_trait::async_trait;
use futures_util::FutureExt;

use super::{alert::AlertOutcome, attempt_result::ShardResult, failure::Failure};
use crate::job::{JobName, RunId, Shard, TaskId};

/// The part of a run that this instance executes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Execution {
    /// Java ElasticJob's id of this execution.
    pub task: TaskId,
    pub run: RunId,
    pub shards: Vec<Shard>,
}

impl Execution {
    pub fn new(task: TaskId, run: RunId, shards: Vec<Shard>) -> Self {
        Self { task, run, shards }
    }
}

/// Called before and after every execution on this instance. If it fails, the job's alert reports that; the shards run all the same,
/// unless the alert is `THROW`.
#[async_trait]
pub trait Listener: Send + Sync + 'static {
    /// Listeners with smaller numbers are called first, both before and after.
    fn order(&self) -> i32 {
        i32::MAX
    }

    /// Called before the shards run.
    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        let _ = execution;
        Ok(())
    }

    /// Called after all shards have ended.
    async fn after(&self, execution: &Execution, ran: &[ShardResult]) -> Result<(), Failure> {
        let _ = (execution, ran);
        Ok(())
    }

    /// Called when fires are missed: no instance was up; the previous run was still going, or shards could not be claimed in time, and the job does
    /// not compensate misfires; or the ledger page of a shard cannot be read.
    /// For counting; it must return quickly.
    fn missed(&self, job: &JobName, fires: usize) {
        let _ = (job, fires);
    }

    /// Called when a run answers earlier fires, too, which therefore get no run of their own: how many.
    /// For counting; it must return quickly.
    fn coalesced(&self, job: &JobName, fires: usize) {
        let _ = (job, fires);
    }

    /// Called when an alert of the job was delivered or will not be: what became of it.
    /// For counting; it must return quickly.
    fn alerted(&self, job: &JobName, outcome: AlertOutcome) {
        let _ = (job, outcome);
    }
}

/// A job's listeners in their order.
#[derive(Clone, Default)]
pub struct Listeners(Vec<Arc<dyn Listener>>);

impl Listeners {
    /// Sorts listeners by their order; listeners with the same number keep theirs.
    pub fn new(listeners: impl IntoIterator<Item = Arc<dyn Listener>>) -> Self {
        let mut listeners: Vec<_> = listeners.into_iter().collect();
        listeners.sort_by_key(|listener| listener.order());
        Self(listeners)
    }

    /// Calls `before` of each. As in Java ElasticJob, listeners behind one that fails are not called.
    pub async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        for listener in &self.0 {
            call_listener(listener.before(execution)).await?;
        }
        Ok(())
    }

    /// Calls `after` of each; likewise.
    pub async fn after(&self, execution: &Execution, ran: &[ShardResult]) -> Result<(), Failure> {
        for listener in &self.0 {
            call_listener(listener.after(execution, ran)).await?;
        }
        Ok(())
    }

    /// Calls `missed` of each.
    pub fn missed(&self, job: &JobName, fires: usize) {
        self.count(job, |listener| listener.missed(job, fires));
    }

    /// Calls `coalesced` of each.
    pub fn coalesced(&self, job: &JobName, fires: usize) {
        self.count(job, |listener| listener.coalesced(job, fires));
    }

    /// Calls `alerted` of each.
    pub fn alerted(&self, job: &JobName, outcome: AlertOutcome) {
        self.count(job, |listener| listener.alerted(job, outcome));
    }

    fn count(&self, job: &JobName, count: impl Fn(&dyn Listener)) {
        for listener in &self.0 {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| count(&**listener))) {
                let failure = Failure::panicked(&*payload);
                tracing::error!(%job, error = %failure, "listener panicked while counting");
            }
        }
    }
}

pub(super) async fn call_listener(
    call: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let result = AssertUnwindSafe(call).catch_unwind().await;
    let result = result.unwrap_or_else(|payload| Err(Failure::panicked(&*payload)));
    result.map_err(|failure| Failure::new(format_args!("a listener failed: {failure}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::execution::fixture;

    struct RecordingListener(i32, &'static str, Arc<Mutex<Vec<String>>>);

    #[async_trait]
    impl Listener for RecordingListener {
        fn order(&self) -> i32 {
            self.0
        }

        async fn before(&self, execution: &Execution) -> Result<(), Failure> {
            self.2.lock().unwrap().push(format!("before {} {}", self.1, execution.shards.len()));
            if self.1 == "bad" { panic!("no") } else { Ok(()) }
        }

        async fn after(&self, _: &Execution, ran: &[ShardResult]) -> Result<(), Failure> {
            self.2.lock().unwrap().push(format!("after {} {}", self.1, ran.len()));
            Ok(())
        }
    }

    #[tokio::test]
    async fn listeners_run_in_order_until_one_fails() {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let listener = |order, name| {
            Arc::new(RecordingListener(order, name, Arc::clone(&calls))) as Arc<dyn Listener>
        };
        let listeners =
            Listeners::new([listener(3, "late"), listener(2, "bad"), listener(1, "early")]);
        let shard = fixture::shard("j", 0);
        let execution = Execution::new(shard.task.clone(), shard.run.clone(), vec![shard]);

        let before = listeners.before(&execution).await;
        let after = listeners.after(&execution, &[]).await;

        assert_eq!(before.unwrap_err().to_string(), "a listener failed: panicked: no");
        assert_eq!(after, Ok(()));
        assert_eq!(
            *calls.lock().unwrap(),
            ["before early 1", "before bad 1", "after early 0", "after bad 0", "after late 0"]
        );
    }
}
