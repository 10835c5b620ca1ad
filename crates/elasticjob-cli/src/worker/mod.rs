//! `elasticjob run`: a node whose jobs come from job files and from the registry.
//!
//! ```text
//!   files ──▶ jobs ──▶ node ── starts, retries while the registry is unreachable ──▶ runs ── SIGTERM ──▶ drains
//!                       │                                                             │
//!                       └ permissions: which stored commands and URLs may run         ├ reconciler: polls files and registry
//!                                                                                     ├ health: /healthz, /readyz, /metrics
//!                                                                                     └ dump: Java ElasticJob's dump service
//! ```
//!
//! With `--observe`, [`observe`](crate::observe) runs instead: it joins nothing and writes nothing.

mod reconcile;
mod registry_jobs;
mod dump;
mod watched_files;
mod health;
mod timed_registry;
mod metrics;
mod permissions;
mod runnable;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    admin::Admin,
    execution::Supervisor,
    history::Recorder,
    job::JobName,
    node::{Node, NodeError, RunningNode},
    registry::RegistryUrl,
    runtime::{SystemClock, Tasks},
};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use self::{
    metrics::Metrics,
    reconcile::{Reconciler, WorkerContext},
    timed_registry::TimedRegistry,
};
pub(crate) use self::{permissions::Permissions, runnable::runnable, watched_files::WatchedFiles};
use crate::error::{Code, Error};
use elasticjob::problem::Problem;
use elasticjob_jobfile::Entry;

/// Pause between attempts to start while the registry is unreachable.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The configuration of a worker, from job files and flags.
pub(crate) struct Worker {
    /// Registry URL.
    pub(crate) registry: String,
    /// Jobs of the files; none of them is a Java class.
    pub(crate) entries: Vec<Entry>,
    /// The files to watch for changes.
    pub(crate) files: Option<WatchedFiles>,
    /// Remove jobs from the registry when they are removed from the files.
    pub(crate) prune: bool,
    pub(crate) permissions: Permissions,
    pub(crate) labels: Option<String>,
    pub(crate) supervisor: Supervisor,
    pub(crate) history: Option<Recorder>,
    /// How long to retry at the start while the registry is unreachable.
    pub(crate) connect_timeout: Duration,
    /// Serves health checks and metrics.
    pub(crate) health: Option<TcpListener>,
    /// Serves Java ElasticJob's dump protocol.
    pub(crate) dump: Option<TcpListener>,
}

/// The node while it runs, `None` before and after; shared with the health and dump endpoints.
type SharedNode = Arc<Mutex<Option<Arc<RunningNode>>>>;

/// The jobs of the node while it runs.
fn running_jobs(shared_node: &SharedNode) -> Vec<JobName> {
    let running = shared_node.lock().unwrap_or_else(PoisonError::into_inner);
    running.as_ref().map(|running| running.jobs()).unwrap_or_default()
}

impl Worker {
    /// Runs until SIGINT or SIGTERM, then drains.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let shared_node = SharedNode::default();
        let mut tasks = Tasks::new();
        let metrics = Arc::new(Metrics::new(Arc::new(SystemClock)));
        self.entries.iter().for_each(|entry| metrics.add(&entry.job.name));
        self.permissions.set_file_jobs(&self.entries);
        let context = WorkerContext {
            permissions: self.permissions.clone(),
            metrics: Arc::clone(&metrics),
            prune: self.prune,
        };
        if let Some(listener) = self.health.take() {
            health::serve(listener, Arc::clone(&shared_node), Arc::clone(&metrics), &mut tasks);
        }
        let mut stop = Stop::new()?;
        let running = tokio::select! {
            running = self.start(&context) => Arc::new(running?),
            () = stop.asked() => return Ok(()),
        };
        tracing::info!(jobs = running.jobs().len(), "node started");
        tasks.spawn(Arc::clone(&metrics).track_session(running.session().states()));
        *shared_node.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&running));
        if let Some(listener) = self.dump.take() {
            let admin = Admin::new(Arc::clone(running.registry()));
            dump::serve(listener, admin, Arc::clone(&shared_node), &mut tasks);
        }

        let mut reconciler =
            Reconciler::new(Arc::clone(&running), context, self.files.take(), self.entries);
        reconciler.run(stop.asked()).await;
        tracing::info!("node stopping, waiting for running shards");
        shared_node.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.begin_stop();
        let stopping = async {
            reconciler.finish().await;
            // The last reference, now that the reconciler has finished.
            if let Some(running) = Arc::into_inner(running) {
                running.stop().await;
            }
        };
        tokio::select! {
            () = stopping => tracing::info!("node stopped"),
            () = stop.asked() => {
                return Err(Error::new(Code::Internal, "stopped by a second signal without waiting for running shards"));
            }
        }
        Ok(())
    }

    /// Joins every job of the files; retries while the registry is unreachable, up to the connect timeout.
    async fn start(&self, context: &WorkerContext) -> Result<RunningNode, Error> {
        let url: RegistryUrl = self.registry.parse()?;
        retry_connect(&url, self.connect_timeout, async || self.node(context).start().await).await
    }

    fn node(&self, context: &WorkerContext) -> Node {
        let metrics = Arc::clone(&context.metrics);
        let mut node = Node::join(&self.registry)
            .supervisor(self.supervisor.clone())
            .wrap_registry(|registry| Arc::new(TimedRegistry { registry, metrics }));
        if let Some(labels) = &self.labels {
            node = node.labels(labels);
        }
        if let Some(history) = &self.history {
            node = node.history(history.clone());
        }
        for job in self.entries.iter().filter_map(|entry| context.file_job(entry)) {
            node = node.with(job);
        }
        node
    }
}

/// Retries `attempt` while the registry is unreachable, up to `connect_timeout`.
pub(crate) async fn retry_connect<T>(
    url: &RegistryUrl,
    connect_timeout: Duration,
    attempt: impl AsyncFn() -> Result<T, NodeError>,
) -> Result<T, Error> {
    let (last_error_sender, last_error) = watch::channel(None);
    let attempts = async {
        loop {
            match attempt().await {
                Err(NodeError::Registry(error)) if error.is_outage() => {
                    let problem = Problem::of(&error);
                    tracing::warn!(registry = %url, error = problem.message, hint = problem.hint, "registry unreachable, retrying");
                    last_error_sender.send_replace(Some(Error::from(error)));
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                started => return started.map_err(Error::from),
            }
        }
    };
    if let Ok(started) = tokio::time::timeout(connect_timeout, attempts).await {
        return started;
    }
    Err(last_error.borrow().clone().unwrap_or_else(|| {
        let text = format!("cannot reach the registry at {url} within {connect_timeout:?}");
        Error::new(Code::Unreachable, text).with_hint("is ZooKeeper listening there?")
    }))
}

/// SIGINT and SIGTERM.
pub(crate) struct Stop {
    interrupted: Signal,
    terminated: Signal,
}

impl Stop {
    pub(crate) fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(NodeError::Signals);
        Ok(Self {
            interrupted: listen(SignalKind::interrupt())?,
            terminated: listen(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
    }
}
