//! Handlers: the code that runs a shard.

use std::{future::Future, sync::Arc};

use async_trait::async_trait;

use super::failure::Failure;
use crate::job::Shard;

/// Runs shards. One handler runs all shards of a job on an instance, several at the same time.
///
/// Most programs need not implement it: any `async fn(Shard) -> Result<(), E>` is a handler, and so is a [`SimpleJob`].
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt of a shard.
    ///
    /// The future may be dropped at any `await`: after a timeout, or if it does not return in time after it was [cancelled](Shard::cancel).
    async fn run(&self, shard: Shard) -> Result<(), Failure>;

    /// Whether dropping [`run`](Self::run) stops the work. If not, the shard counts as running until `run` returns.
    fn ends_when_dropped(&self) -> bool {
        true
    }
}

/// A job implemented by one method, for work that needs more state than a closure.
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
    type Error: Into<Failure>;

    fn execute(&self, shard: Shard) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Adapts a function from a shard to a future.
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

/// Adapts a [`SimpleJob`].
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
