//! A cluster in one process, for tests of jobs.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::paused_clock::{PausedClock, is_paused};
use crate::{
    admin::Admin,
    coordination::trigger::TriggerRequest,
    job::JobName,
    node::{Node, NodeError, RunningNode},
    registry::{
        Error, Registry,
        memory::{MemoryRegistry, MemoryServer},
    },
    runtime::Clock,
    schedule::Zone,
};

const NAMESPACE: &str = "test";

/// A cluster in one process: nodes on a registry in memory, and a clock that stands still unless the test advances it.
///
/// A test neither sleeps nor guesses how long to wait. The runtime's time is paused, so a night takes milliseconds, every fire happens at its own
/// instant, and when [`advance`](Cluster::advance) returns, every task is idle.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use elasticjob::{job::{Job, Shard}, testing::Cluster};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> elasticjob::Result<()> {
/// // In a test: #[tokio::test(start_paused = true)]
/// let settled = Arc::new(Mutex::new(Vec::new()));
/// let list = Arc::clone(&settled);
/// let settle = move |shard: Shard| {
///     let list = Arc::clone(&list);
///     async move {
///         list.lock().unwrap().push(shard.parameter.unwrap_or_default());
///         Ok::<(), std::io::Error>(())
///     }
/// };
/// let nightly = Job::named("settle-orders")?
///     .cron("0 0 2 * * ?")?
///     .shards(3)
///     .items("0=Beijing,1=Shanghai,2=Guangzhou")?;
///
/// let mut cluster = Cluster::at("2026-11-15T00:00:00Z").await;
/// let _node = cluster.node(|node| node.job(nightly, settle)).await?;
///
/// cluster.advance_to("2026-11-15T01:59:59Z").await;
/// assert!(settled.lock().unwrap().is_empty());
///
/// cluster.advance_to("2026-11-15T02:00:00Z").await;
/// settled.lock().unwrap().sort();
/// assert_eq!(*settled.lock().unwrap(), ["Beijing", "Guangzhou", "Shanghai"]);
/// # Ok(())
/// # }
/// ```
///
/// # Limits
///
/// Time advances when every task of the runtime waits: for the clock, for `tokio::time`, for a channel or lock, for
/// [`blocking`](crate::execution::blocking) code. The runtime does not see what happens outside it: while a handler waits for a socket, a child
/// process or its own thread, the runtime looks idle and time advances. Test script and HTTP jobs with a real clock.
///
/// The nodes' addresses determine which shard runs where, so the assignment is the same in every test run. The order in which shards run at one
/// instant is not guaranteed.
#[derive(Debug)]
pub struct Cluster {
    server: MemoryServer,
    clock: PausedClock,
    /// A session of its own, as a console has one.
    observer: Arc<dyn Registry>,
    nodes: u8,
}

impl Cluster {
    /// Creates a cluster without nodes, whose clock shows `now`: `2026-11-15T06:00:00Z`. The default time zone is UTC.
    ///
    /// Panics unless the runtime is single-threaded and its time is paused.
    pub async fn at(now: &str) -> Self {
        assert!(
            Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread && is_paused(),
            "a test cluster needs a single-threaded runtime with paused time; hint: #[tokio::test(start_paused = true)]"
        );
        let clock = PausedClock::at(instant(now));
        let server = MemoryServer::new(Arc::new(clock.clone()));
        let observer =
            Arc::new(join(&server).await.expect("a registry in memory is always reachable"));
        Self { server, clock, observer, nodes: 0 }
    }

    /// Starts a node. When this returns, the node takes part in all its jobs and the shards are assigned. The first node has the address `10.0.0.1`,
    /// the next `10.0.0.2`.
    ///
    /// [`RunningNode::stop`] lets the node leave its jobs. Dropping it simulates a crash: the node and its session end immediately.
    pub async fn node(
        &mut self,
        build: impl FnOnce(Node) -> Node,
    ) -> Result<RunningNode, NodeError> {
        self.nodes += 1;
        let registry = join(&self.server).await?;
        let node = Node::on(Arc::new(registry))
            .address(Ipv4Addr::new(10, 0, 0, self.nodes))
            .clock(Arc::new(self.clock.clone()))
            .zone(Zone::utc());
        let running = build(node).start().await?;
        self.settle().await;
        Ok(running)
    }

    /// Lets time pass. Everything that is due meanwhile happens, each at its own instant; on return, every task is idle. A handler that sleeps for
    /// longer than that finishes when more time passes.
    pub async fn advance(&mut self, span: Duration) {
        self.clock.advance(span).await;
    }

    /// Lets time pass until the clock shows `then`: `2026-11-15T06:00:00Z`. Panics if that is in the past.
    pub async fn advance_to(&mut self, then: &str) {
        let (now, then) = (self.now(), instant(then));
        let span = Duration::try_from(then.duration_since(now)).unwrap_or_else(|_| {
            panic!("cannot advance to {then}, it is already {now}; hint: begin with Cluster::at(\"{then}\")")
        });
        self.advance(span).await;
    }

    /// Waits until every task is idle; no time passes. After a node was dropped, the others have noticed it and its shards are reassigned.
    pub async fn settle(&mut self) {
        self.clock.advance(Duration::ZERO).await;
    }

    /// Triggers a job on all its instances, as the console does. On return, every task is idle. Panics if the job has no instance.
    pub async fn trigger(&mut self, job: &str) {
        let name: JobName = job.parse().unwrap_or_else(|error| panic!("{error}"));
        let admin = self.admin();
        admin
            .trigger(&name, TriggerRequest::default())
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        self.settle().await;
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The queries and changes that a console offers.
    pub fn admin(&self) -> Admin {
        let admin = Admin::new(Arc::clone(&self.observer));
        admin.clock(Arc::new(self.clock.clone())).zone(Zone::utc())
    }

    /// The registry, to read what jobs write there, or to write what another program would. The namespace is `test`.
    pub fn registry(&self) -> &Arc<dyn Registry> {
        &self.observer
    }
}

async fn join(server: &MemoryServer) -> Result<MemoryRegistry, Error> {
    server.join(NAMESPACE.parse().expect("the namespace is valid")).await
}

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| {
        panic!("{text:?} is not an instant: {error}; hint: write it as 2026-11-15T06:00:00Z")
    })
}
