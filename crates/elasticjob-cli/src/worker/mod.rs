//! `elasticjob run`: a node whose jobs come from job files and from the registry.
//!
//! ```text
//!   files ──▶ jobs ──▶ node ── starts, retries while the registry is unreachable ──▶ runs ── SIGTERM ──▶ drains
//!                       │                                                             │
//!                       └ permissions: which stored commands and targets are allowed  ├ reconciler: polls files, watches the registry
//!                                                                                     ├ health: /healthz, /readyz, /metrics
//!                                                                                     └ dump: Java ElasticJob's dump service
//! ```
//!
//! With `--observe`, [`observe`](crate::observe) runs instead: it joins nothing and writes nothing.

mod connect;
mod dump;
mod health;
mod metrics;
mod namespace_changes;
mod outgoing_properties;
mod permissions;
mod reconcile;
mod registry_jobs;
mod runnable;
mod secret_rights;
mod shared_node;
mod timed_registry;
mod watched_files;

use std::{sync::Arc, time::Duration};

use elasticjob::{
    admin::Admin,
    execution::{Secrets, Supervisor},
    history::Recorder,
    job::ShardLimit,
    node::{Node, RunningNode},
    registry::RegistryUrl,
    runtime::{SystemClock, Tasks},
};
use elasticjob_jobfile::Entry;
use tokio::net::TcpListener;

pub(crate) use self::{
    connect::retry_connect,
    permissions::Permissions,
    runnable::runnable,
    secret_rights::{SecretGrant, secrets},
    watched_files::WatchedFiles,
};
use self::{
    connect::start_connected,
    metrics::Metrics,
    reconcile::{Reconciler, WorkerContext},
    shared_node::SharedNode,
    timed_registry::TimedRegistry,
};
use crate::{
    error::{Code, Error},
    stop_signals::StopSignals,
};

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
    /// The secrets that jobs may refer to.
    pub(crate) secrets: Secrets,
    pub(crate) labels: Option<String>,
    pub(crate) supervisor: Supervisor,
    pub(crate) history: Option<Recorder>,
    /// How long to retry at the start while the registry is unreachable.
    pub(crate) connect_timeout: Duration,
    /// How many shards a job may have.
    pub(crate) max_shards: ShardLimit,
    /// Serves health checks and metrics.
    pub(crate) health: Option<TcpListener>,
    /// Serves Java ElasticJob's dump protocol.
    pub(crate) dump: Option<TcpListener>,
}

impl Worker {
    /// Runs until SIGINT or SIGTERM, then drains; a second signal ends the drain.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let context = self.context();
        let (shared_node, mut endpoints) = (SharedNode::default(), Tasks::new());
        if let Some(listener) = self.health.take() {
            let metrics = Arc::clone(&context.metrics);
            health::serve(listener, shared_node.clone(), metrics, &mut endpoints);
        }
        let mut stop = StopSignals::new()?;
        let running = tokio::select! {
            running = self.start(&context) => Arc::new(running?),
            () = stop.next() => return Ok(()),
        };
        tracing::info!(jobs = running.jobs().len(), "node started");
        shared_node.set(&running);
        self.serve_started(&running, &shared_node, &mut endpoints);

        let mut reconciler =
            Reconciler::new(Arc::clone(&running), context, self.files.take(), self.entries);
        reconciler.run(stop.next()).await;
        tracing::info!("node stopping, waiting for running shards");
        shared_node.clear();
        running.begin_stop();
        tokio::select! {
            () = drain(running, reconciler) => tracing::info!("node stopped"),
            () = stop.next() => {
                return Err(Error::new(Code::Internal, "stopped by a second signal without waiting for running shards"));
            }
        }
        Ok(())
    }

    /// Metrics and permissions that know the jobs of the files.
    fn context(&self) -> WorkerContext {
        let metrics = Arc::new(Metrics::new(Arc::new(SystemClock)));
        self.entries.iter().for_each(|entry| metrics.add(&entry.job.name));
        self.permissions.set_file_jobs(&self.entries);
        WorkerContext {
            permissions: self.permissions.clone(),
            metrics,
            prune: self.prune,
            max_shards: self.max_shards,
        }
    }

    /// Starts what needs the session of the node: the dump service.
    fn serve_started(
        &mut self,
        running: &RunningNode,
        shared_node: &SharedNode,
        endpoints: &mut Tasks,
    ) {
        if let Some(listener) = self.dump.take() {
            let admin = Admin::new(Arc::clone(running.registry())).max_shards(self.max_shards);
            dump::serve(listener, admin, shared_node.clone(), endpoints);
        }
    }

    /// Joins every job of the files; retries while the registry is unreachable, up to the connect timeout. Joining takes as long as it needs.
    async fn start(&self, context: &WorkerContext) -> Result<RunningNode, Error> {
        let url: RegistryUrl = self.registry.parse()?;
        let connect = async || self.node(context).connect().await;
        start_connected(&url, self.connect_timeout, connect, Node::start).await
    }

    fn node(&self, context: &WorkerContext) -> Node {
        let metrics = Arc::clone(&context.metrics);
        let permissions = context.permissions.clone();
        let mut node = Node::join(&self.registry)
            .supervisor(self.supervisor.clone())
            .max_shards(self.max_shards)
            // Jobs of the registry run without those of the files.
            .wait_if_all_refused(context.permissions.allows_registry_jobs())
            .secrets(self.secrets.clone())
            .outbound(move |job, outgoing| permissions.outbound(job, outgoing))
            .wrap_registry(move |registry| {
                Arc::new(TimedRegistry { registry, metrics: Arc::clone(&metrics) })
            });
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

/// Waits for operations of the reconciler, then for running shards.
async fn drain(running: Arc<RunningNode>, reconciler: Reconciler) {
    reconciler.finish().await;
    // The last reference, now that the reconciler has finished.
    if let Some(running) = Arc::into_inner(running) {
        running.stop().await;
    }
}
