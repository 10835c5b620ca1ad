//! Executors that a program brings: where the shards of a job run, and how many at once.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures_util::{
    FutureExt,
    future::{AbortHandle, Abortable, BoxFuture},
};
use tokio::{runtime::Handle, sync::oneshot};

use crate::job::{Job, ThreadPool};

/// Runs the shards of jobs whose thread pool has its name: a custom counterpart of Java ElasticJob's executor services and thread pool size
/// providers. Register it with [`Node::executor`](crate::Node::executor).
///
/// Timeouts, retries and the lease are handled inside the future, so an executor only has to poll it. The future needs a tokio runtime.
pub trait Executor: Send + Sync + 'static {
    /// How many shards of one job run at once on this instance, at least one.
    fn limit(&self) -> usize;

    /// Runs a shard to its end. A shard whose future is dropped before counts as failed.
    fn spawn(&self, shard: BoxFuture<'static, ()>);
}

/// Runs shards on a tokio runtime of their own, apart from the rest of the program.
///
/// ```
/// use std::sync::Arc;
///
/// use elasticjob::{Job, Node, extension::RuntimeExecutor, job::ThreadPool};
///
/// let reports = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
/// let executor = RuntimeExecutor::new(reports.handle().clone(), 8);
/// let node = Node::join("zookeeper://127.0.0.1:2181/shop").executor("REPORTS", Arc::new(executor));
///
/// let job = Job::named("monthly-report")?.threads(&ThreadPool::from("REPORTS"));
/// # let _ = (node, job);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RuntimeExecutor {
    runtime: Handle,
    limit: usize,
}

impl RuntimeExecutor {
    /// Runs up to `limit` shards of each job at once.
    pub fn new(runtime: Handle, limit: usize) -> Self {
        Self { runtime, limit }
    }
}

impl Executor for RuntimeExecutor {
    fn limit(&self) -> usize {
        self.limit
    }

    fn spawn(&self, shard: BoxFuture<'static, ()>) {
        self.runtime.spawn(shard);
    }
}

/// The executors of a program, by name. As in Java ElasticJob, names are compared without regard to case.
#[derive(Clone, Default)]
pub(crate) struct Executors(BTreeMap<String, Arc<dyn Executor>>);

impl Executors {
    pub(crate) fn insert(&mut self, name: &str, executor: Arc<dyn Executor>) {
        if !matches!(ThreadPool::from(name), ThreadPool::Named(_)) {
            tracing::warn!(
                executor = name,
                "executor has the name of a built-in thread pool and is never used"
            );
        }
        self.0.insert(name.to_uppercase(), executor);
    }

    /// The executor that the job's thread pool names, if the program has one.
    pub(crate) fn of(&self, job: &Job) -> Option<Arc<dyn Executor>> {
        let ThreadPool::Named(name) = ThreadPool::of(job) else { return None };
        let known = self.0.get(&name.as_str().to_uppercase()).cloned();
        if known.is_none() {
            tracing::warn!(
                job = %job.name, executor = name.as_str(), hint = "register it with Node::executor",
                "unknown executor, using CPU"
            );
        }
        known
    }
}

/// Starts a task on the executor. Returns its result, or `None` if the executor dropped the task or panicked. Dropping the returned future ends the
/// task at its next await point.
pub(super) fn spawn_on<T: Send + 'static>(
    executor: &dyn Executor,
    task: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Option<T>> + Send + 'static {
    let (sender, receiver) = oneshot::channel();
    let (abort, registration) = AbortHandle::new_pair();
    let task = async move {
        // The receiver is gone only if the task was aborted.
        let _ = sender.send(task.await);
    };
    let task = Abortable::new(task, registration).map(drop).boxed();
    let spawned = catch_unwind(AssertUnwindSafe(|| executor.spawn(task)));
    let abort = AbortOnDrop(abort);
    async move {
        let result = receiver.await.ok();
        drop(abort);
        spawned.ok().and(result)
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drops the first shard and panics at the second.
    #[derive(Default)]
    struct Broken(std::sync::atomic::AtomicUsize);

    impl Executor for Broken {
        fn limit(&self) -> usize {
            1
        }

        fn spawn(&self, shard: BoxFuture<'static, ()>) {
            drop(shard);
            let before = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(before, 0, "no thread left");
        }
    }

    #[tokio::test]
    async fn task_dropped_by_a_broken_executor_has_no_result() {
        let executor = Broken::default();

        assert_eq!(spawn_on(&executor, async { 1 }).await, None);
        assert_eq!(spawn_on(&executor, async { 2 }).await, None);
    }

    #[tokio::test]
    async fn dropping_the_result_ends_the_task() {
        let (started, is_started) = oneshot::channel();
        let (alive, is_dropped) = oneshot::channel::<()>();
        let executor = RuntimeExecutor::new(Handle::current(), 1);
        let result = spawn_on(&executor, async move {
            let _alive = alive;
            started.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        is_started.await.unwrap();

        drop(result);

        assert!(is_dropped.await.is_err(), "the task is gone");
    }
}
