//! Dataflow jobs: fetch data and process it.

use std::{future::Future, sync::Arc};

use async_trait::async_trait;

use super::{
    failure::Failure,
    handler::Handler,
    work::{RunSettings, Work},
};
use crate::job::Shard;

/// Java ElasticJob's property: whether to fetch again until there is no data left.
const STREAMING: &str = "streaming.process";

/// A job that fetches data and processes it: once, or, with the property `streaming.process`, repeatedly until there is nothing to fetch,
/// shards are about to be reassigned, or the shard is cancelled.
///
/// ```
/// use elasticjob::{execution::DataflowJob, job::Shard};
///
/// struct Settle;
///
/// impl DataflowJob for Settle {
///     type Item = u64;
///     type Error = std::io::Error;
///
///     async fn fetch(&self, shard: &Shard) -> Result<Vec<u64>, Self::Error> {
///         Ok(vec![u64::from(shard.item)]) // select … where id % {total} = {item} and not settled
///     }
///
///     async fn process(&self, _: &Shard, orders: Vec<u64>) -> Result<(), Self::Error> {
///         drop(orders);
///         Ok(())
///     }
/// }
/// ```
pub trait DataflowJob: Send + Sync + 'static {
    type Item: Send;
    type Error: Into<Failure>;

    /// Fetches the data to process next; empty if there is none left.
    fn fetch(
        &self,
        shard: &Shard,
    ) -> impl Future<Output = Result<Vec<Self::Item>, Self::Error>> + Send;

    /// Processes the fetched data.
    fn process(
        &self,
        shard: &Shard,
        data: Vec<Self::Item>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A registered dataflow job.
pub(super) struct DataflowWork<J>(Arc<J>);

impl<J> DataflowWork<J> {
    pub(super) fn new(job: J) -> Self {
        Self(Arc::new(job))
    }
}

impl<J: DataflowJob> Work for DataflowWork<J> {
    fn prepare(&self, setting: &RunSettings<'_>) -> Result<Arc<dyn Handler>, Failure> {
        let streaming = setting.job.props.get(STREAMING);
        Ok(Arc::new(Dataflow {
            job: Arc::clone(&self.0),
            streaming: streaming.is_some_and(|value| value.eq_ignore_ascii_case("true")),
            resharding: Arc::clone(&setting.resharding),
        }))
    }
}

/// The handler of one run of a dataflow job.
struct Dataflow<J> {
    job: Arc<J>,
    streaming: bool,
    resharding: Arc<dyn Fn() -> bool + Send + Sync>,
}

#[async_trait]
impl<J: DataflowJob> Handler for Dataflow<J> {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        loop {
            let data = self.job.fetch(&shard).await.map_err(Into::into)?;
            if data.is_empty() {
                return Ok(());
            }
            self.job.process(&shard, data).await.map_err(Into::into)?;
            // Checked after processing, as in Java ElasticJob, so that fetched data is always processed.
            if !self.streaming || (self.resharding)() || shard.cancel().is_cancelled() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::{execution::fixture, runtime::CancelReason};

    /// Returns `left` batches and records which ones it processed.
    #[derive(Default)]
    struct Batches {
        left: AtomicUsize,
        processed: Arc<Mutex<Vec<usize>>>,
        cancel_at: Option<usize>,
    }

    impl DataflowJob for Batches {
        type Item = usize;
        type Error = String;

        async fn fetch(&self, _: &Shard) -> Result<Vec<usize>, String> {
            let left = self.left.load(Ordering::SeqCst);
            self.left.store(left.saturating_sub(1), Ordering::SeqCst);
            Ok(if left == 0 { Vec::new() } else { vec![left] })
        }

        async fn process(&self, shard: &Shard, data: Vec<usize>) -> Result<(), String> {
            if self.cancel_at.is_some_and(|batch| data.contains(&batch)) {
                shard.cancel().cancel(CancelReason::Requested);
            }
            self.processed.lock().unwrap().extend(data);
            Ok(())
        }
    }

    async fn processed(
        streaming: &str,
        cancel_at: Option<usize>,
        resharding_after: usize,
    ) -> Vec<usize> {
        let job = fixture::job("j").prop(STREAMING, streaming).unwrap();
        let batches = Batches { left: 3.into(), cancel_at, ..Batches::default() };
        let processed = Arc::clone(&batches.processed);
        let seen = Arc::clone(&processed);
        let setting = RunSettings {
            resharding: Arc::new(move || seen.lock().unwrap().len() >= resharding_after),
            ..RunSettings::of(&job)
        };

        let handler = DataflowWork::new(batches).prepare(&setting).unwrap();
        handler.run(fixture::shard("j", 0)).await.unwrap();

        let processed = processed.lock().unwrap();
        processed.clone()
    }

    #[tokio::test]
    async fn streaming_job_fetches_until_empty_and_others_once() {
        assert_eq!(processed("True", None, 99).await, [3, 2, 1]);
        assert_eq!(processed("false", None, 99).await, [3]);
    }

    #[tokio::test]
    async fn stream_ends_on_resharding_or_cancellation() {
        assert_eq!(processed("true", None, 2).await, [3, 2]);
        assert_eq!(processed("true", Some(3), 99).await, [3]);
    }
}
