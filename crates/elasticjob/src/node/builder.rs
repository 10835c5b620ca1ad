//! Builds and starts a node.

use std::{collections::BTreeSet, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    address,
    error::NodeError,
    history_tap::HistoryTap,
    job::NodeJob,
    job_loop::NodeContext,
    running_node::RunningNode,
    schedule_clock::ScheduleClock,
    session::{RegistryWrapper, SessionLimits, SessionMaker},
    session_pool::SessionPool,
    supervision::Supervision,
    timer::Timer,
};
use crate::{
    coordination::{
        flaw::Flaws,
        member::{JobSource, JoinError},
        sharding::{CustomStrategies, ShardingStrategy},
    },
    execution::{
        AlertChannel, AlertChannels, Alerts, Executor, Executors, IntoWork, Outbound, Outgoing,
        Output, Secrets, Supervisor,
    },
    history::Recorder,
    job::{Job, ShardLimit},
    registry::{self, Registry, RegistryUrl, UrlError},
    runtime::{CancelToken, Clock, Randomness, SystemClock, SystemRandomness, Tasks},
    schedule::Zone,
};

/// Default for how long running shards may take to finish when the node stops.
const DEFAULT_DRAIN: Duration = Duration::from_secs(30);

/// Runs jobs in this process. A program can have several nodes.
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
    strategies: CustomStrategies,
    alert_channels: AlertChannels,
    executors: Executors,
    output: Arc<dyn Output>,
    wrap_registry: RegistryWrapper,
    history: Option<Recorder>,
    supervisor: Option<Supervisor>,
    flaws: Flaws,
    shard_limit: ShardLimit,
    waits_if_all_refused: bool,
    session_limits: SessionLimits,
    jobs: Vec<NodeJob>,
    // Reported when the node starts, like an invalid URL.
    declaration_error: Option<NodeError>,
}

enum Source {
    // An invalid URL is reported when the node starts, so that the builder's methods need no `Result`.
    Url(Result<RegistryUrl, UrlError>),
    Connected(RegistryUrl, Arc<dyn Registry>),
    Registry(Arc<dyn Registry>),
}

impl Node {
    /// Creates a node that uses the registry at this URL. An invalid URL is an error when the node starts.
    pub fn join(url: &str) -> Self {
        Self::from(Source::Url(url.parse()))
    }

    /// Creates a node on an existing registry, for tests and for several nodes in one process.
    pub fn on(registry: Arc<dyn Registry>) -> Self {
        Self::from(Source::Registry(registry))
    }

    fn from(source: Source) -> Self {
        Self {
            source,
            address: None,
            labels: None,
            drain: DEFAULT_DRAIN,
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            zone: None,
            strategies: CustomStrategies::default(),
            alert_channels: AlertChannels::default(),
            executors: Executors::default(),
            output: Arc::new(()),
            wrap_registry: Box::new(|registry| registry),
            history: None,
            supervisor: None,
            flaws: Flaws::default(),
            shard_limit: ShardLimit::default(),
            waits_if_all_refused: false,
            session_limits: SessionLimits::default(),
            jobs: Vec::new(),
            declaration_error: None,
        }
    }

    /// Runs `job` with this handler: an async function, a [`SimpleJob`](crate::execution::SimpleJob), a
    /// [`DataflowJob`](crate::execution::DataflowJob), or blocking code.
    #[must_use]
    pub fn job<Kind>(self, job: Job, handler: impl IntoWork<Kind>) -> Self {
        self.with(NodeJob::code(job, handler))
    }

    /// Runs the command line in the job's `script.command.line`, like Java ElasticJob's SCRIPT jobs.
    #[must_use]
    pub fn script(self, job: Job) -> Self {
        self.with(NodeJob::script(job))
    }

    /// Sends a request to the job's `http.uri`, like Java ElasticJob's HTTP jobs.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(self, job: Job) -> Self {
        self.with(NodeJob::http(job))
    }

    /// Runs a job that has more than a handler: listeners, a Java class.
    #[must_use]
    pub fn with(mut self, job: NodeJob) -> Self {
        self.jobs.push(job);
        self
    }

    /// Runs every function of the program that has the attribute [`#[elasticjob::job]`](macro@crate::job). An invalid attribute is an error when the
    /// node starts; the error names file, line and function.
    ///
    /// Functions in libraries are found, too, if the library is linked. A library of which nothing else is used has to be named, as in
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
        match super::declaration::all_jobs() {
            Ok(jobs) => {
                if jobs.is_empty() {
                    tracing::warn!(
                        hint = "name the library that declares them: use my_jobs as _;",
                        "no jobs to discover"
                    );
                }
                self.jobs.extend(jobs);
            }
            Err(error) => self.declaration_error = self.declaration_error.or(Some(error)),
        }
        self
    }

    /// Adds a sharding strategy that jobs can name in `elasticjob.strategy`. Every instance of such a job should have it: a leader without it uses
    /// `AVG_ALLOCATION` and logs that.
    #[must_use]
    pub fn strategy(mut self, name: impl AsRef<str>, strategy: Arc<dyn ShardingStrategy>) -> Self {
        self.strategies.insert(name, strategy);
        self
    }

    /// Adds an alert channel that jobs can name in `jobErrorHandlerType`. Failures of such jobs are logged and sent through it.
    #[must_use]
    pub fn alert_channel(
        mut self,
        name: impl Into<String>,
        channel: Arc<dyn AlertChannel>,
    ) -> Self {
        self.alert_channels.named.insert(name.into(), channel);
        self
    }

    /// Adds an executor that jobs can name as their thread pool ([`ThreadPool::Named`](crate::job::ThreadPool::Named)): their shards run there.
    #[must_use]
    pub fn executor(mut self, name: impl AsRef<str>, executor: Arc<dyn Executor>) -> Self {
        self.executors.insert(name.as_ref(), executor);
        self
    }

    /// Sets the address under which other instances know this machine. The default is the one from which it connects to the registry.
    #[must_use]
    pub fn address(mut self, address: Ipv4Addr) -> Self {
        self.address = Some(address);
        self
    }

    /// Sets how many shards a job of this node may have; the default is 10,000. A job with more is not stored, and not joined if it is stored: one
    /// stored number must not end the other jobs. Set the same limit in consoles and workers of the namespace.
    ///
    /// ```
    /// use elasticjob::Node;
    ///
    /// let node = Node::join("zookeeper://127.0.0.1:2181/shop").max_shards("20000".parse()?);
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn max_shards(mut self, limit: ShardLimit) -> Self {
        self.shard_limit = limit;
        self
    }

    /// Starts even if no job can be joined because of what is stored for it, and waits until that is mended: for programs that
    /// [add](RunningNode::add) jobs later, for which such a job is no reason to end.
    #[must_use]
    pub fn wait_if_all_refused(mut self, is_on: bool) -> Self {
        self.waits_if_all_refused = is_on;
        self
    }

    /// Sets the labels of this node's instances: `weight=3,zone=a`.
    #[must_use]
    pub fn labels(mut self, labels: impl Into<String>) -> Self {
        self.labels = Some(labels.into());
        self
    }

    /// Sets how long running shards may take to finish when the node stops. The default is 30 seconds.
    #[must_use]
    pub fn drain(mut self, timeout: Duration) -> Self {
        self.drain = timeout;
        self
    }

    /// Runs all scripts under a supervisor, so that they end when this process is killed or is frozen for longer than its lease. Call
    /// [`supervise_if_requested`](crate::execution::supervise_if_requested) at the top of `main` to get a supervisor.
    #[must_use]
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = Some(supervisor);
        self
    }

    /// Sets the secrets that HTTP jobs and alerts may refer to, as `secret:NAME`.
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.alert_channels.secrets = secrets;
        self
    }

    /// Limits which hosts the requests of HTTP jobs and the alerts of all jobs may reach. `choose` is called with the configuration at that time,
    /// before every run and every alert: everyone with write access to the registry can change the targets, and should not thereby reach every host
    /// that this machine can reach.
    ///
    /// ```
    /// use elasticjob::{Node, execution::Outbound};
    ///
    /// let hosts = Outbound::only(["shop.example", "mail.example:465"]);
    /// let node = Node::join("zookeeper://127.0.0.1:2181/shop").outbound(move |_, _| hosts.clone());
    /// ```
    #[must_use]
    pub fn outbound(
        mut self,
        choose: impl Fn(&Job, Outgoing) -> Outbound + Send + Sync + 'static,
    ) -> Self {
        self.alert_channels.outbound = Some(Arc::new(choose));
        self
    }

    /// Wraps each registry connection of this node, to measure or observe its requests.
    ///
    /// ```
    /// use elasticjob::Node;
    ///
    /// let node = Node::join("zookeeper://127.0.0.1:2181/shop").wrap_registry(|registry| {
    ///     println!("using namespace {}", registry.namespace());
    ///     registry
    /// });
    /// ```
    #[must_use]
    pub fn wrap_registry(
        mut self,
        wrap: impl Fn(Arc<dyn Registry>) -> Arc<dyn Registry> + Send + Sync + 'static,
    ) -> Self {
        self.wrap_registry = Box::new(wrap);
        self
    }

    /// Sets an output that receives the lines that scripts print. They are logged in any case.
    #[must_use]
    pub fn output(mut self, output: Arc<dyn Output>) -> Self {
        self.output = output;
        self
    }

    /// Records history: which shard ran where, for what reason, with which outcome and output. Without a recorder, recording costs nothing.
    #[must_use]
    pub fn history(mut self, recorder: Recorder) -> Self {
        self.history = Some(recorder);
        self
    }

    /// Sets deliberate faults, so that tests can show that the simulation finds them.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn flaws(mut self, flaws: Flaws) -> Self {
        self.flaws = flaws;
        self
    }

    /// Replaces the random numbers, for simulations.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn randomness(mut self, randomness: Arc<dyn Randomness>) -> Self {
        self.randomness = randomness;
        self
    }

    /// Sets how many bytes of ephemeral paths jobs reserve in one session, and from how many on claims wait.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn session_limits(mut self, reserved: usize, claimed: usize) -> Self {
        self.session_limits = SessionLimits { reserved, claimed };
        self
    }

    /// Default time zone for jobs that set none; the system zone if unset.
    #[must_use]
    pub fn zone(mut self, zone: Zone) -> Self {
        self.zone = Some(zone);
        self
    }

    /// Replaces the clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Connects to the registry, which [`start`](Self::start) does otherwise. For programs that wait for a connection only for a limited time, and
    /// let joining take as long as it needs.
    pub async fn connect(mut self) -> Result<Self, NodeError> {
        if let Source::Url(url) = self.source {
            let url = url?;
            let registry = registry::connect(&url).await?;
            self.source = Source::Connected(url, registry);
        }
        Ok(self)
    }

    /// Joins every job. When this returns, the node takes part in all of them, except for jobs that cannot be joined because of what is stored for
    /// them: one job does not keep the others from running. Such a job is [reported](RunningNode::invalid_jobs), and joined once that is mended.
    ///
    /// Fails if the registry is unreachable, if a job of this program is invalid by itself, or if no job at all could be joined, unless the node
    /// [waits](Self::wait_if_all_refused). Only a configuration that cannot be read is waited for in any case.
    pub async fn start(self) -> Result<RunningNode, NodeError> {
        if let Some(error) = self.declaration_error {
            return Err(error);
        }
        for entry in self.jobs.iter().filter(|entry| entry.author == JobSource::Program) {
            entry.job.check(self.shard_limit).map_err(JoinError::from)?;
        }
        let mut names = BTreeSet::new();
        if let Some(duplicate) =
            self.jobs.iter().find(|entry| !names.insert(entry.job.name.clone()))
        {
            let name = &duplicate.job.name;
            let both = self.jobs.iter().filter(|entry| entry.job.name == *name);
            return Err(NodeError::duplicate_job(name, both.filter_map(|entry| entry.place)));
        }
        let (registry, address) = match self.source {
            Source::Url(url) => {
                let url = url?;
                (registry::connect(&url).await?, address::find(self.address, Some(&url))?)
            }
            Source::Connected(url, registry) => {
                (registry, address::find(self.address, Some(&url))?)
            }
            Source::Registry(registry) => (registry, address::find(self.address, None)?),
        };
        let schedule_clock = Arc::new(ScheduleClock::new(self.clock));
        let clock = Arc::clone(&schedule_clock) as Arc<dyn Clock>;
        let maker = SessionMaker {
            wrap: self.wrap_registry,
            schedule_clock: Arc::clone(&schedule_clock),
            address,
            limits: self.session_limits,
        };
        let sessions = Arc::new(SessionPool::new(registry, maker));
        let timer = Timer::new(Arc::clone(&clock));
        let secrets = self.alert_channels.secrets.clone();
        let mut alert_tasks = Tasks::new();
        #[cfg(feature = "http")]
        let (outbound, http_client) =
            (self.alert_channels.outbound.clone(), Arc::clone(&self.alert_channels.http_client));
        let alerts = Alerts::start(self.alert_channels, &mut alert_tasks);
        let mut history_tasks = Tasks::new();
        let mut recording = None;
        let mut history = HistoryTap::default();
        if let Some(recorder) = self.history {
            let (max_output, is_traced) = (recorder.max_output(), recorder.is_traced());
            let started = recorder.start(&clock, &self.randomness, &mut history_tasks);
            history = HistoryTap::new(started.clone(), max_output, is_traced, &clock);
            recording = Some(started);
        }
        let node = Arc::new(NodeContext {
            sessions,
            timer,
            clock,
            schedule_clock,
            randomness: self.randomness,
            labels: self.labels,
            strategies: self.strategies,
            executors: self.executors,
            zone: self.zone.unwrap_or_else(|| Zone::from(jiff::tz::TimeZone::system())),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            drain: self.drain,
            alerts,
            output: history.output(self.output),
            history,
            supervision: Supervision::new(self.supervisor),
            secrets,
            #[cfg(feature = "http")]
            outbound,
            #[cfg(feature = "http")]
            http_client,
            flaws: self.flaws,
            shard_limit: self.shard_limit,
            stop: CancelToken::new(),
        });
        let running =
            RunningNode::start(node, alert_tasks, (recording, history_tasks), self.jobs).await?;
        match running {
            // No other job needs this node, and a first start should say at once what is wrong.
            (_, Some(refusal)) if !self.waits_if_all_refused => Err(refusal.into()),
            (running, _) => Ok(running),
        }
    }

    /// Joins every job and runs until SIGTERM or SIGINT (ctrl-C), then drains.
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
