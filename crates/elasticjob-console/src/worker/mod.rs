//! `elasticjob run`: a node made from files.
//!
//! ```text
//!   files ──▶ jobs ──▶ node ── starts, tries again while the registry is not there ──▶ runs ── SIGTERM ──▶ drains
//!                        │                                                              │
//!                        └ rights: what a registry may make this machine do             └ health: /healthz, /readyz, /metrics
//! ```

mod health;
mod metrics;
mod rights;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    execution::{Listener, Supervisor},
    history::Recorder,
    node::{Node, NodeError, NodeJob, Running},
    registry::RegistryUrl,
    runtime::{SystemClock, Tasks},
};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use self::metrics::Metrics;
pub(crate) use self::rights::Rights;
use crate::{
    error::{Code, Error},
    jobfile::{Entry, Kind},
};

/// How long after a failed start the next one comes.
const PAUSE: Duration = Duration::from_secs(1);

/// A node, as files and flags describe it.
pub(crate) struct Worker {
    /// Where the instances meet.
    pub(crate) registry: String,
    /// What to run; none of them is a Java class.
    pub(crate) entries: Vec<Entry>,
    pub(crate) rights: Rights,
    pub(crate) labels: Option<String>,
    pub(crate) supervisor: Supervisor,
    /// What happens is recorded by this.
    pub(crate) history: Option<Recorder>,
    /// How long the registry may be away at the start.
    pub(crate) patience: Duration,
    /// Where to tell how it goes.
    pub(crate) health: Option<TcpListener>,
}

/// The node while it runs; nothing before and after. Whoever wants to know how it goes looks here.
type Shown = Arc<Mutex<Option<Running>>>;

impl Worker {
    /// Runs until the process is asked to stop, then drains.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let shown = Shown::default();
        let mut tasks = Tasks::new();
        let names = self.entries.iter().map(|entry| &entry.job.name);
        let metrics = Arc::new(Metrics::of(Arc::new(SystemClock), names));
        if let Some(listener) = self.health.take() {
            health::serve(listener, Arc::clone(&shown), Arc::clone(&metrics), &mut tasks);
        }
        let mut stop = Stop::new()?;
        let running = tokio::select! {
            running = self.start(&metrics) => running?,
            () = stop.asked() => return Ok(()),
        };
        tracing::info!(jobs = running.jobs().len(), "the node runs");
        tasks.spawn(Arc::clone(&metrics).follow(running.session().states()));
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);

        stop.asked().await;
        tracing::info!("the node stops: what runs may finish");
        let running = shown.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            tokio::select! {
                () = running.stop() => tracing::info!("the node has stopped"),
                () = stop.asked() => {
                    return Err(Error::new(Code::Internal, "asked twice to stop: what ran was not waited for"));
                }
            }
        }
        Ok(())
    }

    /// Joins every job. While the registry cannot be reached it is tried again, for as long as there is patience.
    async fn start(&self, metrics: &Arc<Metrics>) -> Result<Running, Error> {
        let url: RegistryUrl = self.registry.parse()?;
        let (tell, last) = watch::channel(None);
        let attempts = async {
            loop {
                match self.node(metrics).start().await {
                    Err(NodeError::Registry(error)) if error.is_outage() => {
                        tracing::warn!(registry = %url, %error, "the registry cannot be reached: trying again");
                        tell.send_replace(Some(Error::from(error)));
                        tokio::time::sleep(PAUSE).await;
                    }
                    started => return started.map_err(Error::from),
                }
            }
        };
        if let Ok(started) = tokio::time::timeout(self.patience, attempts).await {
            return started;
        }
        let patience = self.patience;
        Err(last.borrow().clone().unwrap_or_else(|| {
            let text = format!("cannot reach the registry at {url} within {patience:?}; hint: is ZooKeeper listening there?");
            Error::new(Code::Unreachable, text)
        }))
    }

    fn node(&self, metrics: &Arc<Metrics>) -> Node {
        let mut node = Node::join(&self.registry).supervisor(self.supervisor.clone());
        if let Some(labels) = &self.labels {
            node = node.labels(labels);
        }
        if let Some(history) = &self.history {
            node = node.history(history.clone());
        }
        for Entry { job, kind, .. } in &self.entries {
            let permit = self.rights.of(job, kind);
            let job = match kind {
                Kind::Script => NodeJob::script(job.clone()),
                Kind::Http => NodeJob::http(job.clone()),
                Kind::Java(_) => continue,
            };
            let metrics = Arc::clone(metrics) as Arc<dyn Listener>;
            node = node.with(job.only_if(permit).listener(metrics));
        }
        node
    }
}

/// Somebody wants the process to end: a service manager, or a person at the keyboard.
pub(crate) struct Stop {
    interrupted: Signal,
    terminated: Signal,
}

impl Stop {
    pub(crate) fn new() -> Result<Self, Error> {
        let hear = |kind| signal(kind).map_err(NodeError::Signals);
        Ok(Self {
            interrupted: hear(SignalKind::interrupt())?,
            terminated: hear(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
    }
}
