//! The front door.

use std::{collections::BTreeSet, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    address, error::NodeError, job::NodeJob, running::Running, timer::Timer, worker::Shared,
};
use crate::{
    coordination::sharding::{Dealer, Dealers},
    execution::{Alerts, IntoWork, Ways},
    job::Job,
    registry::{self, Registry, RegistryUrl, UrlError},
    runtime::{Cancel, Clock, Randomness, SystemClock, SystemRandomness, Tasks},
    schedule::Zone,
};

/// How long what runs may take to finish when the node stops, unless told otherwise.
const DRAIN: Duration = Duration::from_secs(30);

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
///     Node::join("zookeeper://127.0.0.1:2181/shop").job(job, settle).run().await?;
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
    zone: Option<Zone>,
    dealers: Dealers,
    jobs: Vec<NodeJob>,
}

enum Source {
    // A URL that is wrong is told when the node starts, so that building one does not have to be checked half way.
    Url(Result<RegistryUrl, UrlError>),
    Registry(Arc<dyn Registry>),
}

impl Node {
    /// A node that meets the others at this URL. One that is wrong is an error when the node starts.
    pub fn join(url: &str) -> Self {
        Self::from(Source::Url(url.parse()))
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
            zone: None,
            dealers: Dealers::default(),
            jobs: Vec::new(),
        }
    }

    /// Runs `job` with this handler: an async function, a [`SimpleJob`](crate::execution::SimpleJob), a
    /// [`DataflowJob`](crate::execution::DataflowJob), or blocking code.
    #[must_use]
    pub fn job<Kind>(self, job: Job, handler: impl IntoWork<Kind>) -> Self {
        self.with(NodeJob::code(job, handler))
    }

    /// Runs the command line in the job's `script.command.line`, as the ancestor's SCRIPT jobs do.
    #[must_use]
    pub fn script(self, job: Job) -> Self {
        self.with(NodeJob::script(job))
    }

    /// Asks the job's `http.uri`, as the ancestor's HTTP jobs do.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(self, job: Job) -> Self {
        self.with(NodeJob::http(job))
    }

    /// Runs a job that has more to say than its handler: listeners, a Java class.
    #[must_use]
    pub fn with(mut self, job: NodeJob) -> Self {
        self.jobs.push(job);
        self
    }

    /// Brings a way to deal shards that jobs can name in `elasticjob.strategy`. Every instance of such a job should have it: whoever
    /// leads without it deals as `AVG_ALLOCATION` does, and says so.
    #[must_use]
    pub fn strategy(mut self, name: impl AsRef<str>, dealer: Arc<dyn Dealer>) -> Self {
        self.dealers.insert(name, dealer);
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

    /// Where the clock on the wall hangs for jobs that name no zone; without, where the machine's does.
    #[must_use]
    pub fn zone(mut self, zone: Zone) -> Self {
        self.zone = Some(zone);
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
        let (registry, address) = match self.source {
            Source::Url(url) => {
                let url = url?;
                (registry::connect(&url).await?, address::find(self.address, Some(&url))?)
            }
            Source::Registry(registry) => (registry, address::find(self.address, None)?),
        };
        let timer = Timer::new(Arc::clone(&self.clock));
        let mut posts = Tasks::new();
        let alerts = Alerts::start(Ways::default(), &mut posts);
        let shared = Arc::new(Shared {
            registry,
            timer,
            clock: self.clock,
            randomness: self.randomness,
            address,
            labels: self.labels,
            dealers: self.dealers,
            zone: self.zone.unwrap_or_else(|| Zone::from(jiff::tz::TimeZone::system())),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            drain: self.drain,
            alerts,
            stop: Cancel::new(),
        });
        Running::start(shared, posts, self.jobs).await
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
