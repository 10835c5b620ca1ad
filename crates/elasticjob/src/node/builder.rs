//! The front door.

use std::{collections::BTreeSet, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    address, chronicle::Chronicle, error::NodeError, identity::Identity, job::NodeJob,
    running::Running, supervision::Supervision, timer::Timer, worker::Shared,
};
use crate::{
    coordination::{
        flaw::Flaws,
        sharding::{Dealer, Dealers},
    },
    execution::{Alerts, IntoWork, Output, Supervisor, Transports},
    history::Recorder,
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
    output: Arc<dyn Output>,
    between: Between,
    history: Option<Recorder>,
    supervisor: Option<Supervisor>,
    flaws: Flaws,
    jobs: Vec<NodeJob>,
    // As with the URL: what is wrong with a declared job is told when the node starts.
    mistake: Option<NodeError>,
}

type Between = Box<dyn FnOnce(Arc<dyn Registry>) -> Arc<dyn Registry> + Send>;

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
            output: Arc::new(()),
            between: Box::new(|registry| registry),
            history: None,
            supervisor: None,
            flaws: Flaws::default(),
            jobs: Vec::new(),
            mistake: None,
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

    /// Runs every function of the program that has the attribute [`#[elasticjob::job]`](macro@crate::job). What is wrong with one
    /// of them is an error when the node starts; it names file, line and function.
    ///
    /// The whole program counts, libraries included, if it is linked: a library of which nothing else is used has to be named, as in
    /// `use my_jobs as _;`.
    ///
    /// ```no_run
    /// use elasticjob::{Node, Shard};
    ///
    /// #[elasticjob::job(cron = "0/5 * * * * ?", shards = 3, failover)]
    /// async fn settle_orders(shard: Shard) -> Result<(), std::io::Error> {
    ///     println!("settling shard {}", shard.item);
    ///     Ok(())
    /// }
    ///
    /// #[tokio::main]
    /// async fn main() -> elasticjob::Result<()> {
    ///     Node::join("zookeeper://127.0.0.1:2181/shop").discover().run().await
    /// }
    /// ```
    #[cfg(feature = "macros")]
    #[must_use]
    pub fn discover(mut self) -> Self {
        match super::declared::all() {
            Ok(jobs) => {
                if jobs.is_empty() {
                    tracing::warn!(
                        "the program has no job to discover; hint: name the library that has it: use my_jobs as _;"
                    );
                }
                self.jobs.extend(jobs);
            }
            Err(error) => self.mistake = self.mistake.or(Some(error)),
        }
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

    /// Runs all scripts under a supervisor, so that they end when this process is killed, and when it is frozen for longer than
    /// its lease. Takes what [`supervise_if_asked`](crate::execution::supervise_if_asked) returns, at the top of `main`.
    #[must_use]
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = Some(supervisor);
        self
    }

    /// Puts something between this node and its registry: to measure it, or to watch what it says.
    ///
    /// ```
    /// use elasticjob::Node;
    ///
    /// let node = Node::join("zookeeper://127.0.0.1:2181/shop").through(|registry| {
    ///     println!("meets the others in {}", registry.namespace());
    ///     registry
    /// });
    /// ```
    #[must_use]
    pub fn through(
        mut self,
        between: impl FnOnce(Arc<dyn Registry>) -> Arc<dyn Registry> + Send + 'static,
    ) -> Self {
        self.between = Box::new(between);
        self
    }

    /// Who keeps what scripts print; without, it is only logged.
    #[must_use]
    pub fn output(mut self, output: Arc<dyn Output>) -> Self {
        self.output = output;
        self
    }

    /// Records what happens: which shard ran where, why, how it ended, what it printed. Without, nothing is recorded, and it costs nothing.
    #[must_use]
    pub fn history(mut self, recorder: Recorder) -> Self {
        self.history = Some(recorder);
        self
    }

    /// Leaves precautions out, so that a simulation can be shown to notice.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn flaws(mut self, flaws: Flaws) -> Self {
        self.flaws = flaws;
        self
    }

    /// Other dice, for simulations.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn randomness(mut self, randomness: Arc<dyn Randomness>) -> Self {
        self.randomness = randomness;
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
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = self.jobs.iter().find(|entry| !names.insert(entry.job.name.clone())) {
            let name = &twice.job.name;
            let both = self.jobs.iter().filter(|entry| entry.job.name == *name);
            return Err(NodeError::twice(name, both.filter_map(|entry| entry.place)));
        }
        let (registry, address) = match self.source {
            Source::Url(url) => {
                let url = url?;
                (registry::connect(&url).await?, address::find(self.address, Some(&url))?)
            }
            Source::Registry(registry) => (registry, address::find(self.address, None)?),
        };
        let registry = (self.between)(registry);
        let timer = Timer::new(Arc::clone(&self.clock));
        let mut posts = Tasks::new();
        let alerts = Alerts::start(Transports::default(), &mut posts);
        let mut scribes = Tasks::new();
        let mut recording = None;
        let mut chronicle = Chronicle::default();
        if let Some(recorder) = self.history {
            let (max_output, is_traced) = (recorder.max_output(), recorder.is_traced());
            let started = recorder.start(&self.clock, &self.randomness, &mut scribes);
            chronicle = Chronicle::new(started.clone(), max_output, is_traced, &self.clock);
            recording = Some(started);
        }
        let shared = Arc::new(Shared {
            registry,
            timer,
            clock: self.clock,
            randomness: self.randomness,
            identity: Identity::new(address),
            labels: self.labels,
            dealers: self.dealers,
            zone: self.zone.unwrap_or_else(|| Zone::from(jiff::tz::TimeZone::system())),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            drain: self.drain,
            alerts,
            output: chronicle.output(self.output),
            chronicle,
            supervision: Supervision::new(self.supervisor),
            flaws: self.flaws,
            stop: Cancel::new(),
        });
        Running::start(shared, posts, (recording, scribes), self.jobs).await
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
