//! `elasticjob run`: a node made from files, and from what others have defined in the registry.
//!
//! ```text
//!   files ──▶ jobs ──▶ node ── starts, tries again while the registry is not there ──▶ runs ── SIGTERM ──▶ drains
//!                        │                                                              │
//!                        └ rights: what a registry may make this machine do             ├ crew: files and registry are looked at again and again
//!                                                                                       ├ health: /healthz, /readyz, /metrics
//!                                                                                       └ dump: the ancestor's dump service
//! ```
//!
//! [`observe`](crate::observe) is the other way to run: beside others, joining and writing nothing.

mod crew;
mod defined;
mod dump;
mod files;
mod health;
mod latency;
mod metrics;
mod rights;
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
    node::{Node, NodeError, Running},
    registry::RegistryUrl,
    runtime::{SystemClock, Tasks},
};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use self::{
    crew::{Crew, Terms},
    latency::Timed,
    metrics::Metrics,
};
pub(crate) use self::{files::Files, rights::Rights, runnable::runnable};
use crate::error::{Code, Error};
use elasticjob_jobfile::Entry;

/// How long after a failed start the next one comes.
const PAUSE: Duration = Duration::from_secs(1);

/// A node, as files and flags describe it.
pub(crate) struct Worker {
    /// Where the instances meet.
    pub(crate) registry: String,
    /// What to run; none of them is a Java class.
    pub(crate) entries: Vec<Entry>,
    /// Where that is described, to be looked at again.
    pub(crate) files: Option<Files>,
    /// Jobs that vanish from the files are removed from the registry, too.
    pub(crate) prune: bool,
    pub(crate) rights: Rights,
    pub(crate) labels: Option<String>,
    pub(crate) supervisor: Supervisor,
    /// What happens is recorded by this.
    pub(crate) history: Option<Recorder>,
    /// How long the registry may be away at the start.
    pub(crate) patience: Duration,
    /// Where to tell how it goes.
    pub(crate) health: Option<TcpListener>,
    /// Where to answer as the ancestor's dump service does.
    pub(crate) dump: Option<TcpListener>,
}

/// The node while it runs; nothing before and after. Whoever wants to know how it goes looks here.
type Shown = Arc<Mutex<Option<Arc<Running>>>>;

/// The jobs that run.
fn jobs(shown: &Shown) -> Vec<JobName> {
    let running = shown.lock().unwrap_or_else(PoisonError::into_inner);
    running.as_ref().map(|running| running.jobs()).unwrap_or_default()
}

impl Worker {
    /// Runs until the process is asked to stop, then drains.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let shown = Shown::default();
        let mut tasks = Tasks::new();
        let metrics = Arc::new(Metrics::new(Arc::new(SystemClock)));
        self.entries.iter().for_each(|entry| metrics.add(&entry.job.name));
        self.rights.files_say(&self.entries);
        let terms =
            Terms { rights: self.rights.clone(), metrics: Arc::clone(&metrics), prune: self.prune };
        if let Some(listener) = self.health.take() {
            health::serve(listener, Arc::clone(&shown), Arc::clone(&metrics), &mut tasks);
        }
        let mut stop = Stop::new()?;
        let running = tokio::select! {
            running = self.start(&terms) => Arc::new(running?),
            () = stop.asked() => return Ok(()),
        };
        tracing::info!(jobs = running.jobs().len(), "the node runs");
        tasks.spawn(Arc::clone(&metrics).follow(running.session().states()));
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&running));
        if let Some(listener) = self.dump.take() {
            let admin = Admin::on(Arc::clone(running.registry()));
            dump::serve(listener, admin, Arc::clone(&shown), &mut tasks);
        }

        let mut crew = Crew::new(Arc::clone(&running), terms, self.files.take(), self.entries);
        crew.run(stop.asked()).await;
        tracing::info!("the node stops: what runs may finish");
        shown.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.wind_down();
        let stopping = async {
            crew.finish().await;
            // Nobody else has it now.
            if let Some(running) = Arc::into_inner(running) {
                running.stop().await;
            }
        };
        tokio::select! {
            () = stopping => tracing::info!("the node has stopped"),
            () = stop.asked() => {
                return Err(Error::new(Code::Internal, "asked twice to stop: what ran was not waited for"));
            }
        }
        Ok(())
    }

    /// Joins every job. While the registry cannot be reached it is tried again, for as long as there is patience.
    async fn start(&self, terms: &Terms) -> Result<Running, Error> {
        let url: RegistryUrl = self.registry.parse()?;
        patiently(&url, self.patience, async || self.node(terms).start().await).await
    }

    fn node(&self, terms: &Terms) -> Node {
        let metrics = Arc::clone(&terms.metrics);
        let mut node = Node::join(&self.registry)
            .supervisor(self.supervisor.clone())
            .through(|registry| Arc::new(Timed { registry, metrics }));
        if let Some(labels) = &self.labels {
            node = node.labels(labels);
        }
        if let Some(history) = &self.history {
            node = node.history(history.clone());
        }
        for job in self.entries.iter().filter_map(|entry| terms.filed(entry)) {
            node = node.with(job);
        }
        node
    }
}

/// Tries again while the registry cannot be reached, for as long as there is patience.
pub(crate) async fn patiently<T>(
    url: &RegistryUrl,
    patience: Duration,
    attempt: impl AsyncFn() -> Result<T, NodeError>,
) -> Result<T, Error> {
    let (tell, last) = watch::channel(None);
    let attempts = async {
        loop {
            match attempt().await {
                Err(NodeError::Registry(error)) if error.is_outage() => {
                    tracing::warn!(registry = %url, %error, "the registry cannot be reached: trying again");
                    tell.send_replace(Some(Error::from(error)));
                    tokio::time::sleep(PAUSE).await;
                }
                started => return started.map_err(Error::from),
            }
        }
    };
    if let Ok(started) = tokio::time::timeout(patience, attempts).await {
        return started;
    }
    Err(last.borrow().clone().unwrap_or_else(|| {
        let text = format!("cannot reach the registry at {url} within {patience:?}; hint: is ZooKeeper listening there?");
        Error::new(Code::Unreachable, text)
    }))
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
