//! Handlers that block their thread, on a limited number of threads.
//!
//! A thread cannot be stopped from outside. So cancelling only sets [`Shard::cancel`], and code that never checks it runs to its end. The
//! shard counts as running until then, even after its timeout. If the lease is lost meanwhile, the shard is fenced at once, but this process
//! does not start it again while the old call still runs.

use std::{
    collections::HashSet,
    panic,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use async_trait::async_trait;
use tokio::sync::{Notify, Semaphore};
use tracing::Span;

use super::{failure::Failure, handler::Handler};
use crate::{
    job::{JobName, Shard},
    runtime::AttachedValue,
};

/// Makes a handler of a function that blocks. At most two shards for each processor run at once, unless
/// [`threads`](Blocking::threads) sets another limit.
///
/// ```
/// use elasticjob::{execution::blocking, job::Shard};
///
/// let handler = blocking(|shard: Shard| {
///     for _part in 0..100 {
///         if shard.cancel().is_cancelled() {
///             break;
///         }
///     }
///     Ok::<_, std::io::Error>(())
/// });
/// # let _ = handler;
/// ```
pub fn blocking<F>(function: F) -> Blocking<F> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Blocking {
        function: Arc::new(function),
        threads: Threads::limited(2 * processors),
        running: Arc::default(),
    }
}

/// A limit on threads for blocking code. Clones share the limit.
#[derive(Debug, Clone)]
pub struct Threads(Arc<Semaphore>);

impl Threads {
    /// At most `limit` threads at once, and at least one.
    pub fn limited(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS))))
    }
}

/// A blocking function as a handler; see [`blocking`].
pub struct Blocking<F> {
    function: Arc<F>,
    threads: Threads,
    running: Arc<RunningShards>,
}

impl<F> Blocking<F> {
    /// Uses these threads, which several jobs may share.
    #[must_use]
    pub fn threads(mut self, threads: &Threads) -> Self {
        self.threads = threads.clone();
        self
    }
}

#[async_trait]
impl<F, E> Handler for Blocking<F>
where
    F: Fn(Shard) -> Result<(), E> + Send + Sync + 'static,
    E: Into<Failure>,
{
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        // A shard that waits here has not started yet, so it can be cancelled.
        let acquired = async {
            let running = Arc::clone(&self.running).enter((shard.job.clone(), shard.item)).await;
            let thread = Arc::clone(&self.threads.0).acquire_owned().await;
            (running, thread)
        };
        let (running, thread) = tokio::select! {
            acquired = acquired => acquired,
            reason = shard.cancel().cancelled() => {
                return Err(Failure::new(format_args!("cancelled before it started: {reason}")));
            }
        };
        let function = Arc::clone(&self.function);
        let (span, carried) = (Span::current(), AttachedValue::current());
        let ended = tokio::task::spawn_blocking(move || {
            // Released when the thread is done, not when the waiting future is dropped.
            let _held = (running, thread);
            carried.during(|| span.in_scope(|| function(shard).map_err(Into::into)))
        });
        match ended.await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(payload) => panic::resume_unwind(payload),
                Err(_) => Err(Failure::new("the runtime shut down before it started")),
            },
        }
    }

    fn ends_when_dropped(&self) -> bool {
        false
    }
}

/// The shards whose code runs on a thread now.
#[derive(Default)]
struct RunningShards {
    shards: Mutex<HashSet<Key>>,
    released: Notify,
}

type Key = (JobName, u32);

impl RunningShards {
    /// Waits until no thread runs this shard, then marks it as running.
    async fn enter(self: Arc<Self>, key: Key) -> RunningShard {
        loop {
            let released = self.released.notified();
            if self.shards.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
                drop(released);
                return RunningShard { running: self, key };
            }
            released.await;
        }
    }
}

/// Marks a shard as running until dropped.
struct RunningShard {
    running: Arc<RunningShards>,
    key: Key,
}

impl Drop for RunningShard {
    fn drop(&mut self) {
        self.running.shards.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        self.running.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;
    use crate::{execution::fixture, runtime::CancelReason};

    #[tokio::test]
    async fn shard_is_not_started_while_its_code_still_runs() {
        let (started, calls) = mpsc::channel();
        let (allow, go) = mpsc::channel::<()>();
        let go = Mutex::new(go);
        let handler = blocking(move |shard: Shard| {
            started.send(shard.attempt.number.get()).unwrap();
            go.lock().unwrap().recv().map_err(|_| "channel closed")
        });
        let shard = fixture::shard("j", 0);
        let mut first = Box::pin(handler.run(shard.clone()));
        assert!(first.as_mut().now_or_never().is_none());
        assert_eq!(calls.recv(), Ok(1));

        drop(first);
        let mut again = Box::pin(
            handler.run(shard.clone().attempt(shard.attempt.next(crate::job::RunReason::Retry))),
        );
        assert!(again.as_mut().now_or_never().is_none());
        assert!(calls.try_recv().is_err(), "the first call still runs");
        allow.send(()).unwrap();
        allow.send(()).unwrap();

        assert_eq!(again.await, Ok(()));
        assert_eq!(calls.recv(), Ok(2));
    }

    #[tokio::test]
    async fn shard_waiting_for_a_thread_can_be_cancelled() {
        let threads = Threads::limited(1);
        let _taken = threads.0.acquire().await;
        let handler = blocking(|_: Shard| Ok::<_, String>(())).threads(&threads);
        let shard = fixture::shard("j", 0);
        let cancel = shard.cancel().clone();
        let mut run = Box::pin(handler.run(shard));
        assert!(run.as_mut().now_or_never().is_none());

        cancel.cancel(CancelReason::Requested);

        assert!(run.await.unwrap_err().to_string().contains("before it started"));
    }
}
