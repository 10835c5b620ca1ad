//! Listeners that are called once per fire in the whole cluster.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    failure::Failure,
    listener::{Execution, call_listener},
};
use crate::problem::Problem;
use crate::runtime::Clock;

/// Default limit for waiting for other instances, and for a call.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// Called once for every fire in the whole cluster: Java ElasticJob's distribute-once listener. Every instance of the job needs to register
/// it; any of them may be the one that calls it.
///
/// Instances wait for each other: no shard runs before all instances are ready and `before` has returned, and no instance finishes before
/// all shards have ended and `after` has returned. Every wait has a limit. If a listener fails or takes too long, or instances do not arrive
/// in time, the job's alert reports that; the shards run all the same.
///
/// *Once* holds as long as no instance dies: if the calling instance dies during the call, another instance calls again.
///
/// ```
/// use elasticjob::execution::{Execution, Failure, OnceListener};
///
/// struct Merge;
///
/// #[async_trait::async_trait]
/// impl OnceListener for Merge {
///     async fn before(&self, execution: &Execution) -> Result<(), Failure> {
///         println!("{}: empty the table that the shards fill", execution.run);
///         Ok(())
///     }
///
///     async fn after(&self, execution: &Execution) -> Result<(), Failure> {
///         println!("{}: all shards have ended, merge what they left", execution.run);
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait OnceListener: Send + Sync + 'static {
    /// Listeners with smaller numbers are called first, both before and after.
    fn order(&self) -> i32 {
        i32::MAX
    }

    /// Limit for waiting until every shard is about to run, and again for [`OnceListener::before`]. The default is one minute. With several
    /// listeners the longest limit applies.
    fn started_timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// The same for waiting until every shard has ended, and for [`OnceListener::after`].
    fn completed_timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// Called when every enabled shard is about to run and none runs yet. `execution` is that of the calling instance.
    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        let _ = execution;
        Ok(())
    }

    /// Called when every shard has ended, whatever its outcome.
    async fn after(&self, execution: &Execution) -> Result<(), Failure> {
        let _ = execution;
        Ok(())
    }
}

/// A job's once-listeners in their order.
#[derive(Clone, Default)]
pub struct OnceListeners(Vec<Arc<dyn OnceListener>>);

impl OnceListeners {
    /// Sorts listeners by their order; listeners with the same number keep theirs.
    pub fn new(listeners: impl IntoIterator<Item = Arc<dyn OnceListener>>) -> Self {
        let mut listeners: Vec<_> = listeners.into_iter().collect();
        listeners.sort_by_key(|listener| listener.order());
        Self(listeners)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Limit for waiting until all shards are about to run: the longest of all listeners.
    pub fn started_timeout(&self) -> Duration {
        self.0.iter().map(|listener| listener.started_timeout()).max().unwrap_or_default()
    }

    /// The same for waiting until all shards have ended.
    pub fn completed_timeout(&self) -> Duration {
        self.0.iter().map(|listener| listener.completed_timeout()).max().unwrap_or_default()
    }

    /// Calls `before` of each, all of them within [`OnceListeners::started_timeout`]. Listeners behind one that fails are not called.
    pub async fn before(&self, execution: &Execution, clock: &dyn Clock) -> Result<(), Failure> {
        let all = async {
            for listener in &self.0 {
                call_listener(listener.before(execution)).await?;
            }
            Ok(())
        };
        with_limit(all, self.started_timeout(), clock).await
    }

    /// Calls `after` of each; likewise.
    pub async fn after(&self, execution: &Execution, clock: &dyn Clock) -> Result<(), Failure> {
        let all = async {
            for listener in &self.0 {
                call_listener(listener.after(execution)).await?;
            }
            Ok(())
        };
        with_limit(all, self.completed_timeout(), clock).await
    }
}

/// Limits a call, because other instances wait for it.
async fn with_limit(
    call: impl Future<Output = Result<(), Failure>>,
    limit: Duration,
    clock: &dyn Clock,
) -> Result<(), Failure> {
    tokio::select! {
        biased;
        result = call => result,
        () = clock.sleep_until(clock.monotonic() + limit) => {
            let problem = format!("a once-listener took longer than {limit:?} and was dropped");
            let hint = "raise its started_timeout and completed_timeout";
            Err(Failure::new(Problem::new(problem).with_hint(hint)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;

    use super::*;
    use crate::{execution::fixture, testing::ManualClock};

    struct RecordingListener(i32, &'static str, Arc<Mutex<Vec<&'static str>>>);

    #[async_trait]
    impl OnceListener for RecordingListener {
        fn order(&self) -> i32 {
            self.0
        }

        fn started_timeout(&self) -> Duration {
            Duration::from_secs(u64::from(self.0.unsigned_abs()))
        }

        async fn before(&self, _: &Execution) -> Result<(), Failure> {
            self.2.lock().unwrap().push(self.1);
            if self.1 == "stuck" { std::future::pending().await } else { Ok(()) }
        }
    }

    #[tokio::test]
    async fn listeners_run_in_order_within_the_limit() {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let listener = |order, name| {
            Arc::new(RecordingListener(order, name, Arc::clone(&calls))) as Arc<dyn OnceListener>
        };
        let listeners =
            OnceListeners::new([listener(3, "late"), listener(2, "stuck"), listener(1, "early")]);
        let shard = fixture::shard("j", 0);
        let execution = Execution::new(shard.task.clone(), shard.run.clone(), vec![shard]);
        let clock = ManualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let mut calling = Box::pin(listeners.before(&execution, &clock));

        assert!((&mut calling).now_or_never().is_none());
        clock.advance(Duration::from_secs(3));
        let failure = calling.await.unwrap_err();

        assert_eq!(*calls.lock().unwrap(), ["early", "stuck"]);
        assert!(failure.to_string().contains("longer than 3s"), "{failure}");
    }
}
