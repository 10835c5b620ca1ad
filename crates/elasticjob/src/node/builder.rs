//! The front door.

use std::{collections::BTreeSet, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    address,
    error::NodeError,
    timer::Timer,
    worker::{Shared, Worker},
};
use crate::{
    execution::{Alerts, IntoWork, Listener, Listeners, ScriptWork, Ways, Work},
    job::{Handler, Job},
    registry::{self, Registry, RegistryUrl},
    runtime::{Cancel, CancelReason, Clock, Randomness, SystemClock, SystemRandomness, Tasks},
    schedule::Zone,
};

/// How long what runs may take to finish when the node stops, unless told otherwise.
const DRAIN: Duration = Duration::from_secs(30);

/// How long alerts that wait may take to be delivered when the node stops.
const LAST_POST: Duration = Duration::from_secs(10);

/// One process that runs jobs. Several can live in one program.
///
/// ```no_run
/// use elasticjob::{job::{Job, Shard}, node::Node};
///
/// async fn settle(shard: Shard) -> Result<(), std::io::Error> {
///     println!("settling the orders of {:?}", shard.parameter);
///     Ok(())
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let job = Job::named("settle-orders")?
///         .cron("0/5 * * * * ?")?
///         .shards(2)
///         .items("0=Beijing,1=Shanghai")?;
///     Node::join("zookeeper://127.0.0.1:2181/shop")?.job(job, settle).run().await?;
///     Ok(())
/// }
/// ```
pub struct Node {
    source: Source,
    address: Option<Ipv4Addr>,
    labels: Option<String>,
    drain: Duration,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    jobs: Vec<Registered>,
}

enum Source {
    Url(RegistryUrl),
    Registry(Arc<dyn Registry>),
}

struct Registered {
    job: Job,
    handler: Handler,
    work: Arc<dyn Work>,
    listeners: Vec<Arc<dyn Listener>>,
}

impl Node {
    /// A node that meets the others at this URL.
    pub fn join(url: &str) -> Result<Self, NodeError> {
        Ok(Self::from(Source::Url(url.parse()?)))
    }

    /// A node on a registry that is there already: for tests, and for several nodes in one process.
    pub fn on(registry: Arc<dyn Registry>) -> Self {
        Self::from(Source::Registry(registry))
    }

    fn from(source: Source) -> Self {
        Self {
            source,
            address: None,
            labels: None,
            drain: DRAIN,
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            jobs: Vec::new(),
        }
    }

    /// Runs `job` with this handler: an async function, a [`SimpleJob`](crate::execution::SimpleJob), a
    /// [`DataflowJob`](crate::execution::DataflowJob), or blocking code.
    #[must_use]
    pub fn job<Kind>(mut self, job: Job, handler: impl IntoWork<Kind>) -> Self {
        self.jobs.push(Registered {
            job,
            handler: Handler::Code { java_class: None },
            work: handler.into_work(),
            listeners: Vec::new(),
        });
        self
    }

    /// Runs the command line in the job's `script.command.line`, as the ancestor's SCRIPT jobs do.
    #[must_use]
    pub fn script(mut self, job: Job) -> Self {
        self.jobs.push(Registered {
            job,
            handler: Handler::Script,
            work: ScriptWork.into_work(),
            listeners: Vec::new(),
        });
        self
    }

    /// Asks the job's `http.url`, as the ancestor's HTTP jobs do.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(mut self, job: Job) -> Self {
        let work = crate::execution::HttpWork::new(Arc::default()).into_work();
        self.jobs.push(Registered { job, handler: Handler::Http, work, listeners: Vec::new() });
        self
    }

    /// Tells this listener before and after every run of the job registered last.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        if let Some(job) = self.jobs.last_mut() {
            job.listeners.push(listener);
        }
        self
    }

    /// By which address others know this machine; without, the one from which it talks to the registry.
    #[must_use]
    pub fn address(mut self, address: Ipv4Addr) -> Self {
        self.address = Some(address);
        self
    }

    /// What this node wants to be known by: `weight=3,zone=a`.
    #[must_use]
    pub fn labels(mut self, labels: impl Into<String>) -> Self {
        self.labels = Some(labels.into());
        self
    }

    /// How long what runs may take to finish when the node stops; 30 seconds unless told otherwise.
    #[must_use]
    pub fn drain(mut self, bound: Duration) -> Self {
        self.drain = bound;
        self
    }

    /// Another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Joins every job. When this returns the node takes part in all of them.
    pub async fn start(self) -> Result<Running, NodeError> {
        let mut names = BTreeSet::new();
        if let Some(twice) = self.jobs.iter().find(|entry| !names.insert(entry.job.name.clone())) {
            return Err(NodeError::Twice { job: twice.job.name.to_string() });
        }
        let (registry, address) = match &self.source {
            Source::Url(url) => {
                (registry::connect(url).await?, address::find(self.address, Some(url))?)
            }
            Source::Registry(registry) => {
                (Arc::clone(registry), address::find(self.address, None)?)
            }
        };
        let stop = Cancel::new();
        let timer = Timer::new(Arc::clone(&self.clock));
        let (mut tasks, mut posts) = (Tasks::new(), Tasks::new());
        let alerts = Alerts::start(Ways::default(), &mut posts);
        let shared = Arc::new(Shared {
            registry,
            timer: timer.clone(),
            clock: self.clock,
            randomness: self.randomness,
            address,
            labels: self.labels,
            zone: Zone::from(jiff::tz::TimeZone::system()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            drain: self.drain,
            alerts,
            stop,
        });
        let workers: Vec<Worker> = self
            .jobs
            .into_iter()
            .map(|entry| Worker {
                shared: Arc::clone(&shared),
                local: entry.job,
                handler: entry.handler,
                work: entry.work,
                listeners: Arc::new(Listeners::new(entry.listeners)),
            })
            .collect();
        // All at once: a thousand jobs join in the time of a few round trips.
        let joined = futures_util::future::try_join_all(workers.iter().map(Worker::join)).await?;
        for (worker, member) in workers.into_iter().zip(joined) {
            tasks.spawn(Box::new(worker).run(member));
        }
        let mut clockwork = Tasks::new();
        clockwork.spawn(timer.run());
        Ok(Running { shared, tasks, posts, _clockwork: clockwork })
    }

    /// Joins every job and runs until the process is asked to stop (SIGTERM or ctrl-C); then drains.
    pub async fn run(self) -> Result<(), NodeError> {
        let mut interrupted = signal(SignalKind::interrupt()).map_err(NodeError::Signals)?;
        let mut terminated = signal(SignalKind::terminate()).map_err(NodeError::Signals)?;
        let running = self.start().await?;
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        running.stop().await;
        Ok(())
    }
}

/// A node that runs. Dropping it ends it at once; [`Running::stop`] drains first.
pub struct Running {
    shared: Arc<Shared>,
    tasks: Tasks,
    /// Carries alerts.
    posts: Tasks,
    // After the workers, so that they are told until the end.
    _clockwork: Tasks,
}

impl Running {
    /// Starts nothing new, lets what runs finish, leaves every job, and ends the session.
    pub async fn stop(self) {
        self.shared.stop.cancel(CancelReason::ShuttingDown);
        // A run that was told to end has its own grace; leaving takes a moment.
        let patience = self.shared.drain * 2 + Duration::from_secs(30);
        if !self.tasks.finish(patience).await {
            tracing::error!("some jobs did not end in time and were dropped");
        }
        let registry = Arc::clone(&self.shared.registry);
        // Nobody is left to write alerts: those that wait are delivered.
        drop(self.shared);
        if !self.posts.finish(LAST_POST).await {
            tracing::error!("some alerts could not be delivered in time");
        }
        registry.close().await;
    }
}
