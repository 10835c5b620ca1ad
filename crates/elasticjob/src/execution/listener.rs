//! Who is called before and after every execution on this instance.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use async_trait::async_trait;
use futures_util::FutureExt;

use super::{failure::Failure, runner::Ran};
use crate::job::{JobName, RunId, Shard, TaskId};

/// What this instance executes of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Execution {
    /// What the ancestor calls it.
    pub task: TaskId,
    /// The run it is part of.
    pub run: RunId,
    /// The shards.
    pub shards: Vec<Shard>,
}

impl Execution {
    /// These shards of this run.
    pub fn new(task: TaskId, run: RunId, shards: Vec<Shard>) -> Self {
        Self { task, run, shards }
    }
}

/// Is called before and after every execution on this instance. What it says when it fails goes to the job's alert; the shards
/// run all the same, unless the alert is `THROW`.
#[async_trait]
pub trait Listener: Send + Sync + 'static {
    /// Small numbers come first, before as well as after.
    fn order(&self) -> i32 {
        i32::MAX
    }

    /// Before the shards run.
    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        let _ = execution;
        Ok(())
    }

    /// After all of them have ended.
    async fn after(&self, execution: &Execution, ran: &[Ran]) -> Result<(), Failure> {
        let _ = (execution, ran);
        Ok(())
    }

    /// Fires that were due and that this instance leaves out: nobody was there, or the one before was not over and the job does not make up
    /// for it. For counting: it must not take long.
    fn missed(&self, job: &JobName, fires: usize) {
        let _ = (job, fires);
    }
}

/// A job's listeners, in order.
#[derive(Clone, Default)]
pub struct Listeners(Vec<Arc<dyn Listener>>);

impl Listeners {
    /// Puts them in order; those with the same number stay as they are.
    pub fn new(listeners: impl IntoIterator<Item = Arc<dyn Listener>>) -> Self {
        let mut listeners: Vec<_> = listeners.into_iter().collect();
        listeners.sort_by_key(|listener| listener.order());
        Self(listeners)
    }

    /// Calls them before. As with the ancestor, those behind one that fails are not called.
    pub async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        for listener in &self.0 {
            called(listener.before(execution)).await?;
        }
        Ok(())
    }

    /// Calls them after; likewise.
    pub async fn after(&self, execution: &Execution, ran: &[Ran]) -> Result<(), Failure> {
        for listener in &self.0 {
            called(listener.after(execution, ran)).await?;
        }
        Ok(())
    }

    /// Tells all of them.
    pub fn missed(&self, job: &JobName, fires: usize) {
        for listener in &self.0 {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| listener.missed(job, fires))) {
                let failure = Failure::panicked(&*payload);
                tracing::error!(%job, %failure, "a listener failed when it was told of a missed fire");
            }
        }
    }
}

pub(super) async fn called(call: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let result = AssertUnwindSafe(call).catch_unwind().await;
    let result = result.unwrap_or_else(|payload| Err(Failure::panicked(&*payload)));
    result.map_err(|failure| Failure::new(format_args!("a listener failed: {failure}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::execution::fixture;

    struct Noting(i32, &'static str, Arc<Mutex<Vec<String>>>);

    #[async_trait]
    impl Listener for Noting {
        fn order(&self) -> i32 {
            self.0
        }

        async fn before(&self, execution: &Execution) -> Result<(), Failure> {
            self.2.lock().unwrap().push(format!("before {} {}", self.1, execution.shards.len()));
            if self.1 == "bad" { panic!("no") } else { Ok(()) }
        }

        async fn after(&self, _: &Execution, ran: &[Ran]) -> Result<(), Failure> {
            self.2.lock().unwrap().push(format!("after {} {}", self.1, ran.len()));
            Ok(())
        }
    }

    #[tokio::test]
    async fn listeners_are_called_in_order_and_those_behind_a_failure_are_not() {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let listener =
            |order, name| Arc::new(Noting(order, name, Arc::clone(&noted))) as Arc<dyn Listener>;
        let listeners =
            Listeners::new([listener(3, "late"), listener(2, "bad"), listener(1, "early")]);
        let shard = fixture::shard("j", 0);
        let execution = Execution::new(shard.task.clone(), shard.run.clone(), vec![shard]);

        let before = listeners.before(&execution).await;
        let after = listeners.after(&execution, &[]).await;

        assert_eq!(before.unwrap_err().to_string(), "a listener failed: panicked: no");
        assert_eq!(after, Ok(()));
        assert_eq!(
            *noted.lock().unwrap(),
            ["before early 1", "before bad 1", "after early 0", "after bad 0", "after late 0"]
        );
    }
}
