//! The work that a program registers for a job, and how it becomes the handler of a run.
//!
//! A job's configuration can change while the program runs: a script's command line, an HTTP job's address, whether a dataflow
//! streams. So a program registers [`Work`], and the [`Handler`] of each run is made from it and the configuration at that time.

use std::{future::Future, sync::Arc};

use super::{
    dataflow::{DataflowJob, DataflowWork},
    failure::Failure,
    handler::{Function, Handler, Simple, SimpleJob},
    lease::Lease,
    output::Output,
    secrets::Secrets,
};
use crate::job::{Job, Shard};

/// Makes the handler of a run from the configuration at that time.
pub trait Work: Send + Sync + 'static {
    /// The handler for all shards of one run. If this fails, every shard of the run fails with this failure.
    fn prepare(&self, setting: &RunSettings<'_>) -> Result<Arc<dyn Handler>, Failure>;
}

/// The configuration and environment of one run.
#[derive(Clone)]
pub struct RunSettings<'a> {
    pub job: &'a Job,
    /// Whether shards are about to be reassigned, so that streams should end.
    pub resharding: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Receives the lines that scripts print.
    pub output: Arc<dyn Output>,
    /// How long work outside this process may continue.
    pub lease: Lease,
    /// The secrets that the job may refer to.
    pub secrets: Secrets,
    /// Whether scripts inherit the variables of this process that lead to registry and history.
    pub inherits_environment: bool,
}

impl<'a> RunSettings<'a> {
    /// Settings without resharding, output recording, lease, secrets and inherited variables.
    pub fn of(job: &'a Job) -> Self {
        Self {
            job,
            resharding: Arc::new(|| false),
            output: Arc::new(()),
            lease: Lease::none(),
            secrets: Secrets::default(),
            inherits_environment: false,
        }
    }
}

/// Can be registered for a job: an async function, a [`SimpleJob`], a [`DataflowJob`], [`blocking`](super::blocking) code, any other
/// [`Handler`], any [`Work`]. `Kind` distinguishes them and is always inferred.
pub trait IntoWork<Kind> {
    fn into_work(self) -> Arc<dyn Work>;
}

/// Work that uses the same handler for every run.
struct FixedHandler(Arc<dyn Handler>);

impl Work for FixedHandler {
    fn prepare(&self, _: &RunSettings<'_>) -> Result<Arc<dyn Handler>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// Markers for the `Kind` of [`IntoWork`].
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
        Arc::new(FixedHandler(Arc::new(Function(self))))
    }
}

impl<J: SimpleJob> IntoWork<kind::Simple> for J {
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(FixedHandler(Arc::new(Simple(self))))
    }
}

impl<J: DataflowJob> IntoWork<kind::Dataflow> for J {
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(DataflowWork::new(self))
    }
}

impl<H: Handler> IntoWork<kind::Handler> for H {
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(FixedHandler(Arc::new(self)))
    }
}

impl<W: Work> IntoWork<kind::Work> for W {
    fn into_work(self) -> Arc<dyn Work> {
        Arc::new(self)
    }
}

impl Work for Arc<dyn Work> {
    fn prepare(&self, setting: &RunSettings<'_>) -> Result<Arc<dyn Handler>, Failure> {
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
    async fn functions_structs_closures_and_blocking_code_become_work() {
        let greeting = "closure";
        let registered = [
            settle.into_work(),
            Settle.into_work(),
            (move |shard: Shard| async move { Err::<(), _>(format!("{greeting} {}", shard.item)) })
                .into_work(),
            blocking(|shard: Shard| Err::<(), _>(format!("blocking {}", shard.item))).into_work(),
        ];

        let mut messages = Vec::new();
        for work in registered {
            let handler = work.prepare(&RunSettings::of(&fixture::job("j"))).unwrap();
            messages.push(handler.run(fixture::shard("j", 3)).await.unwrap_err().to_string());
        }

        let error = std::fmt::Error.to_string();
        assert_eq!(messages, [error.as_str(), "simple 3", "closure 3", "blocking 3"]);
    }
}
