//! What runs a shard.

use std::{future::Future, sync::Arc};

use async_trait::async_trait;

use super::failure::Failure;
use crate::job::Shard;

/// Runs shards. One handler runs all shards of a job on an instance, several at once.
///
/// Most programs have no reason to implement it: any `async fn(Shard) -> Result<(), E>` is one, and so is a [`SimpleJob`].
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs a shard to its end, well or not.
    ///
    /// It may be dropped at any `await`: after a timeout, or when it was [told to end](Shard::cancel) and did not.
    async fn run(&self, shard: Shard) -> Result<(), Failure>;

    /// Whether dropping [`run`](Self::run) ends what it does. If not, the shard counts as running until it returns.
    fn ends_when_dropped(&self) -> bool {
        true
    }
}

/// A job whose work is one function, for those that have more to carry along than a closure.
///
/// ```
/// use elasticjob::{execution::SimpleJob, job::Shard};
///
/// struct Settle { limit: u32 }
///
/// impl SimpleJob for Settle {
///     type Error = std::io::Error;
///
///     async fn execute(&self, shard: Shard) -> Result<(), Self::Error> {
///         let _ = (self.limit, shard.item);
///         Ok(())
///     }
/// }
/// ```
pub trait SimpleJob: Send + Sync + 'static {
    /// What can go wrong.
    type Error: Into<Failure>;

    /// Does the work of one shard.
    fn execute(&self, shard: Shard) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Any function from a shard to a future.
pub(super) struct Function<F>(pub(super) F);

#[async_trait]
impl<F, Fut, E> Handler for Function<F>
where
    F: Fn(Shard) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: Into<Failure>,
{
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        (self.0)(shard).await.map_err(Into::into)
    }
}

/// Any simple job.
pub(super) struct Simple<J>(pub(super) J);

#[async_trait]
impl<J: SimpleJob> Handler for Simple<J> {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        self.0.execute(shard).await.map_err(Into::into)
    }
}

#[async_trait]
impl Handler for Arc<dyn Handler> {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        (**self).run(shard).await
    }

    fn ends_when_dropped(&self) -> bool {
        (**self).ends_when_dropped()
    }
}
