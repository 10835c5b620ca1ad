//! What a program registered for a job, and how it becomes the handler of a run.
//!
//! A job's configuration can change while the program runs: a script's command line, an HTTP job's address, whether a dataflow
//! streams. So what is registered is [`Work`], and the [`Handler`] of a run is made from it and the configuration as it is then.

use std::{future::Future, sync::Arc};

use super::{
    dataflow::{DataflowJob, DataflowWork},
    failure::Failure,
    handler::{Function, Handler, Simple, SimpleJob},
    lease::Lease,
    output::Output,
};
use crate::job::{Job, Shard};

/// Makes the handler of a run out of the configuration as it is then.
pub trait Work: Send + Sync + 'static {
    /// The handler for all shards of one run. If there is none, every one of them fails with what this says.
    fn prepare(&self, setting: &Setting<'_>) -> Result<Arc<dyn Handler>, Failure>;
}

/// What a run finds when it starts.
#[derive(Clone)]
pub struct Setting<'a> {
    /// The configuration as it is now.
    pub job: &'a Job,
    /// Whether shards are about to be dealt again, so that streams should end.
    pub resharding: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Who keeps what scripts print.
    pub output: Arc<dyn Output>,
    /// How long what the run has outside this process may go on.
    pub lease: Lease,
}

impl<'a> Setting<'a> {
    /// No resharding in sight, what scripts print is only logged, and no lease ends them.
    pub fn of(job: &'a Job) -> Self {
        Self { job, resharding: Arc::new(|| false), output: Arc::new(()), lease: Lease::none() }
    }
}

/// What can be registered for a job: an async function, a [`SimpleJob`], a [`DataflowJob`], [`blocking`](super::blocking) code,
/// any other [`Handler`], any [`Work`]. `Kind` tells them apart and is always inferred.
pub trait IntoWork<Kind> {
    /// What is registered.
    fn into_work(self) -> Arc<dyn Work>;
}

/// The same handler for every run.
struct Always(Arc<dyn Handler>);

impl Work for Always {
    fn prepare(&self, _: &Setting<'_>) -> Result<Arc<dyn Handler>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// Which kind of thing is registered.
pub mod kind {
    /// An async function.
    pub enum Function {}
    /// A [`SimpleJob`](super::SimpleJob).
    pub enum Simple {}
    /// A [`DataflowJob`](super::DataflowJob).
    pub enum Dataflow {}
    /// A [`Handler`](super::Handler).
    pub enum Handler {}
    /// A [`Work`](super::Work).
    pub enum Work {}
}

impl<F, Fut, E> IntoWork<kind::Function> for F
where
    F: Fn(Shard) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: Into<Failure>,
{
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(Always(Arc::new(Function(self))))
    }
}

impl<J: SimpleJob> IntoWork<kind::Simple> for J {
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(Always(Arc::new(Simple(self))))
    }
}

impl<J: DataflowJob> IntoWork<kind::Dataflow> for J {
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(DataflowWork::new(self))
    }
}

impl<H: Handler> IntoWork<kind::Handler> for H {
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(Always(Arc::new(self)))
    }
}

impl<W: Work> IntoWork<kind::Work> for W {
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(self)
    }
}

impl Work for Arc<dyn Work> {
    fn prepare(&self, setting: &Setting<'_>) -> Result<Arc<dyn Handler>, Failure> {
        (**self).prepare(setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{blocking, fixture};

    struct Settle;

    impl SimpleJob for Settle {
        type Error = String;

        async fn execute(&self, shard: Shard) -> Result<(), String> {
            Err(format!("simple {}", shard.item))
        }
    }

    async fn settle(shard: Shard) -> Result<(), std::fmt::Error> {
        let _ = shard;
        Err(std::fmt::Error)
    }

    #[tokio::test]
    async fn functions_structs_closures_and_blocking_code_can_all_be_registered() {
        let greeting = "closure";
        let registered = [
            settle.into_work(),
            Settle.into_work(),
            (move |shard: Shard| async move { Err::<(), _>(format!("{greeting} {}", shard.item)) })
                .into_work(),
            blocking(|shard: Shard| Err::<(), _>(format!("blocking {}", shard.item))).into_work(),
        ];

        let mut said = Vec::new();
        for work in registered {
            let handler = work.prepare(&Setting::of(&fixture::job("j"))).unwrap();
            said.push(handler.run(fixture::shard("j", 3)).await.unwrap_err().to_string());
        }

        let error = std::fmt::Error.to_string();
        assert_eq!(said, [error.as_str(), "simple 3", "closure 3", "blocking 3"]);
    }
}
