//! A cluster in one process, for tests of jobs.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::held::{HeldClock, is_paused};
use crate::{
    admin::Admin,
    coordination::trigger::Ask,
    job::JobName,
    node::{Node, NodeError, Running},
    registry::{
        Error, Registry,
        memory::{MemoryRegistry, MemoryServer},
    },
    runtime::Clock,
    schedule::Zone,
};

const NAMESPACE: &str = "test";

/// A cluster in one process: nodes on a registry in memory, and a clock that stands still unless the test lets it pass.
///
/// Nothing sleeps and nothing is waited for by guessing. The test's runtime has its time paused, so a night takes milliseconds, every
/// fire happens at its own instant, and when [`advance`](Cluster::advance) returns everybody has come to rest.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use elasticjob::{job::{Job, Shard}, testing::Cluster};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> elasticjob::Result<()> {
/// // In a test: #[tokio::test(start_paused = true)]
/// let settled = Arc::new(Mutex::new(Vec::new()));
/// let book = Arc::clone(&settled);
/// let settle = move |shard: Shard| {
///     let book = Arc::clone(&book);
///     async move {
///         book.lock().unwrap().push(shard.parameter.unwrap_or_default());
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
/// # What is and is not seen
///
/// Time goes on when every task of the runtime waits: for the clock, for `tokio::time`, for a channel or lock, for
/// [`blocking`](crate::execution::blocking) code. What happens outside it is not seen: while a handler waits for a socket, a child
/// process or a thread of its own, the runtime looks idle and time passes it by. Jobs that are scripts or HTTP requests are for
/// tests with a real clock.
///
/// Which shard runs where follows from the nodes' addresses, so it is the same every time; in which order shards run at one
/// instant is not promised.
#[derive(Debug)]
pub struct Cluster {
    server: MemoryServer,
    clock: HeldClock,
    /// Sees and writes what a console would.
    observer: Arc<dyn Registry>,
    nodes: u8,
}

impl Cluster {
    /// A cluster without nodes, whose clock shows this instant: `2026-11-15T06:00:00Z`. It hangs in UTC for jobs that name no zone.
    ///
    /// Panics unless the runtime is one of a single thread with its time paused.
    pub async fn at(now: &str) -> Self {
        assert!(
            Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread && is_paused(),
            "a test cluster needs a runtime of one thread with paused time; hint: #[tokio::test(start_paused = true)]"
        );
        let clock = HeldClock::at(instant(now));
        let server = MemoryServer::new(Arc::new(clock.clone()));
        let observer = Arc::new(join(&server).await.expect("memory is always there"));
        Self { server, clock, observer, nodes: 0 }
    }

    /// Starts a node with these jobs. When this returns it takes part in all of them and the shards are dealt. The first is
    /// `10.0.0.1`, the next `10.0.0.2`.
    ///
    /// [`Running::stop`] lets it leave as a good node does. Dropping it is its death: it ends on the spot and its session with it.
    pub async fn node(&mut self, build: impl FnOnce(Node) -> Node) -> Result<Running, NodeError> {
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

    /// Lets this much time pass. Everything that is due meanwhile happens, each at its own instant; on return everybody has come
    /// to rest. A handler that takes time takes it: what it has not finished by then it finishes when more time passes.
    pub async fn advance(&mut self, span: Duration) {
        self.clock.pass(span).await;
    }

    /// Lets time pass until the clock shows this instant: `2026-11-15T06:00:00Z`. Panics if it is over.
    pub async fn advance_to(&mut self, then: &str) {
        let (now, then) = (self.now(), instant(then));
        let span = Duration::try_from(then.duration_since(now)).unwrap_or_else(|_| {
            panic!("it is {now} already, {then} is over; hint: begin with Cluster::at(\"{then}\")")
        });
        self.advance(span).await;
    }

    /// Lets everybody come to rest; no time passes. After a node was dropped, its death has been noticed and its shards dealt.
    pub async fn settle(&mut self) {
        self.clock.pass(Duration::ZERO).await;
    }

    /// Runs a job now, on all its instances, as the console does. On return everybody has come to rest. Panics if nobody runs it.
    pub async fn trigger(&mut self, job: &str) {
        let name: JobName = job.parse().unwrap_or_else(|error| panic!("{error}"));
        let admin = self.admin();
        admin.trigger(&name, Ask::default()).await.unwrap_or_else(|error| panic!("{error}"));
        self.settle().await;
    }

    /// What the clock shows.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What a console could ask and do.
    pub fn admin(&self) -> Admin {
        let admin = Admin::on(Arc::clone(&self.observer));
        admin.clock(Arc::new(self.clock.clone())).zone(Zone::utc())
    }

    /// The registry, to look at what jobs leave there, or to write what somebody else would. The namespace is `test`.
    pub fn registry(&self) -> &Arc<dyn Registry> {
        &self.observer
    }
}

async fn join(server: &MemoryServer) -> Result<MemoryRegistry, Error> {
    server.join(NAMESPACE.parse().expect("a good namespace")).await
}

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| {
        panic!("{text:?} is no instant: {error}; hint: write it as 2026-11-15T06:00:00Z")
    })
}
