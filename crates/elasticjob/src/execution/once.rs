//! Who is called once for every fire, whichever instance that happens on.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    failure::Failure,
    listener::{Execution, called},
};
use crate::runtime::Clock;

/// How long is waited for the others, and how long a call may take, unless the listener says otherwise.
const PATIENCE: Duration = Duration::from_mins(1);

/// Is called once for every fire in the whole cluster: what the ancestor calls a distribute-once listener. Every instance of the
/// job has to have it; on which one it is called is left to chance.
///
/// Instances wait for each other: nobody runs before all are there and `before` has returned, and nobody is through before all
/// have ended and `after` has returned. No wait is without an end. A listener that fails or takes too long, and instances that do not
/// come in time, go to the job's alert; the shards run all the same.
///
/// *Once* holds as long as nobody dies: when the instance that calls dies in the middle of it, another one calls again.
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
    /// Small numbers come first, before as well as after.
    fn order(&self) -> i32 {
        i32::MAX
    }

    /// How long to wait until every shard is about to run, and then again how long [`OnceListener::before`] may take; one minute
    /// unless said otherwise. With several listeners the longest wait counts.
    fn started_timeout(&self) -> Duration {
        PATIENCE
    }

    /// The same until every shard has ended, and for [`OnceListener::after`].
    fn completed_timeout(&self) -> Duration {
        PATIENCE
    }

    /// Every enabled shard is about to run, and none does yet. The execution is that of the instance that calls.
    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        let _ = execution;
        Ok(())
    }

    /// Every shard has ended, one way or the other.
    async fn after(&self, execution: &Execution) -> Result<(), Failure> {
        let _ = execution;
        Ok(())
    }
}

/// A job's once-listeners, in order.
#[derive(Clone, Default)]
pub struct OnceListeners(Vec<Arc<dyn OnceListener>>);

impl OnceListeners {
    /// Puts them in order; those with the same number stay as they are.
    pub fn new(listeners: impl IntoIterator<Item = Arc<dyn OnceListener>>) -> Self {
        let mut listeners: Vec<_> = listeners.into_iter().collect();
        listeners.sort_by_key(|listener| listener.order());
        Self(listeners)
    }

    /// Whether nobody has to meet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How long to wait for all to start: as long as the most patient one would.
    pub fn started_timeout(&self) -> Duration {
        self.0.iter().map(|listener| listener.started_timeout()).max().unwrap_or_default()
    }

    /// The same for the end.
    pub fn completed_timeout(&self) -> Duration {
        self.0.iter().map(|listener| listener.completed_timeout()).max().unwrap_or_default()
    }

    /// Calls them before, all together within [`OnceListeners::started_timeout`]. Those behind one that fails are not called.
    pub async fn before(&self, execution: &Execution, clock: &dyn Clock) -> Result<(), Failure> {
        let all = async {
            for listener in &self.0 {
                called(listener.before(execution)).await?;
            }
            Ok(())
        };
        bounded(all, self.started_timeout(), clock).await
    }

    /// Calls them after; likewise.
    pub async fn after(&self, execution: &Execution, clock: &dyn Clock) -> Result<(), Failure> {
        let all = async {
            for listener in &self.0 {
                called(listener.after(execution)).await?;
            }
            Ok(())
        };
        bounded(all, self.completed_timeout(), clock).await
    }
}

/// The others wait while it is called, so it ends in time.
async fn bounded(
    call: impl Future<Output = Result<(), Failure>>,
    patience: Duration,
    clock: &dyn Clock,
) -> Result<(), Failure> {
    tokio::select! {
        biased;
        result = call => result,
        () = clock.sleep_until(clock.monotonic() + patience) => Err(Failure::new(format_args!(
            "a listener that is called once for every fire took longer than {patience:?} and was dropped; hint: give it more time with started_timeout and completed_timeout"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;

    use super::*;
    use crate::{execution::fixture, testing::ManualClock};

    struct Noting(i32, &'static str, Arc<Mutex<Vec<&'static str>>>);

    #[async_trait]
    impl OnceListener for Noting {
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
    async fn they_are_called_in_order_and_end_in_time() {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let listener = |order, name| {
            Arc::new(Noting(order, name, Arc::clone(&noted))) as Arc<dyn OnceListener>
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

        assert_eq!(*noted.lock().unwrap(), ["early", "stuck"]);
        assert!(failure.to_string().contains("longer than 3s"), "{failure}");
    }
}
