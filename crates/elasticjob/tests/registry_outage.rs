//! Outages of the registry, on the memory registry and with paused time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    Job, Node, Shard,
    coordination::tree::{JobTree, ShardNode},
    execution::{Execution, Failure, Listener, Outcome, ShardResult},
    job::{Failover, RunReason},
    node::{NodeJob, RunningNode},
    registry::{
        Registry,
        memory::{Link, MemoryServer},
    },
    runtime::{Clock, Monotonic},
};
use jiff::Timestamp;

const SESSION: Duration = Duration::from_secs(10);

/// A clock that starts at noon and follows tokio's paused time.
#[derive(Debug, Clone, Copy)]
struct TestClock(tokio::time::Instant);

impl TestClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        "2026-11-15T12:00:00Z".parse::<Timestamp>().unwrap() + self.0.elapsed()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(Duration::from_hours(1) + self.0.elapsed())
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        tokio::time::sleep(deadline.saturating_since(self.monotonic())).await;
    }
}

/// The started attempts and the outcomes.
#[derive(Clone, Default)]
struct RunLog {
    started: Arc<Mutex<Vec<(String, RunReason)>>>,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
}

impl RunLog {
    fn take(&self) -> Vec<(String, RunReason)> {
        std::mem::take(&mut *self.started.lock().unwrap())
    }

    fn take_outcomes(&self) -> Vec<Outcome> {
        std::mem::take(&mut *self.outcomes.lock().unwrap())
    }
}

#[async_trait]
impl Listener for RunLog {
    async fn after(&self, _: &Execution, ran: &[ShardResult]) -> Result<(), Failure> {
        self.outcomes.lock().unwrap().extend(ran.iter().map(|ran| ran.outcome));
        Ok(())
    }
}

struct Cluster {
    clock: TestClock,
    server: MemoryServer,
    log: RunLog,
}

impl Cluster {
    fn new() -> Self {
        let clock = TestClock::new();
        let server = MemoryServer::new(Arc::new(clock)).session_timeout(SESSION);
        Self { clock, server, log: RunLog::default() }
    }

    /// Starts a node whose shard takes this long.
    async fn node(&self, job: Job, span: Duration) -> (RunningNode, Link) {
        let registry = self.server.join("test".parse().unwrap()).await.unwrap();
        let (link, started) = (registry.link(), Arc::clone(&self.log.started));
        let handler = move |shard: Shard| {
            let due_at = shard.due_at.to_string().split_off("2026-11-15T".len());
            started.lock().unwrap().push((due_at, shard.attempt.reason));
            async move {
                tokio::time::sleep(span).await;
                Ok::<(), std::io::Error>(())
            }
        };
        let job = NodeJob::code(job, handler).listener(Arc::new(self.log.clone()));
        let node = Node::on(Arc::new(registry)).clock(Arc::new(self.clock)).with(job);
        (node.start().await.unwrap(), link)
    }

    async fn is_running(&self) -> bool {
        let observer = self.server.join("test".parse().unwrap()).await.unwrap();
        let tree = JobTree::new(observer.namespace(), &"settle".parse().unwrap()).unwrap();
        observer.exists(&tree.shard(0, ShardNode::Running)).await.unwrap().is_some()
    }

    /// Advances the clock to this time of day.
    async fn advance_to(&self, time: &str) {
        let then: Timestamp = format!("2026-11-15T{time}Z").parse().unwrap();
        let left = then.duration_since(self.clock.now());
        tokio::time::sleep(left.try_into().expect("the time is in the future")).await;
    }
}

fn every_minute() -> Job {
    Job::named("settle").unwrap().cron("0 * * * * ?").unwrap().failover(Failover::TakeOver)
}

fn attempt(due_at: &str, reason: RunReason) -> (String, RunReason) {
    (format!("{due_at}Z"), reason)
}

#[tokio::test(start_paused = true)]
async fn outage_longer_than_the_lease_leaves_no_running_node() {
    let cluster = Cluster::new();
    let (_node, link) = cluster.node(every_minute(), Duration::from_secs(30)).await;
    cluster.advance_to("12:01:05").await;
    assert!(cluster.is_running().await);

    // The registry has not ended the session, but the node cannot know that.
    link.cut();
    cluster.advance_to("12:01:25").await;
    assert_eq!(cluster.log.take_outcomes(), [Outcome::Fenced]);
    assert!(cluster.is_running().await, "the shard cannot be released during the outage");
    link.heal();
    cluster.advance_to("12:01:30").await;

    assert!(!cluster.is_running().await);
    assert_eq!(cluster.log.take(), [attempt("12:01:00", RunReason::Schedule)]);
    cluster.advance_to("12:02:40").await;
    assert_eq!(cluster.log.take(), [attempt("12:02:00", RunReason::Schedule)]);
    assert_eq!(cluster.log.take_outcomes(), [Outcome::Succeeded]);
}

#[tokio::test(start_paused = true)]
async fn fire_during_an_outage_is_compensated_afterwards() {
    for session_ends in [false, true] {
        let cluster = Cluster::new();
        let (node, link) = cluster.node(every_minute(), Duration::ZERO).await;
        cluster.advance_to("12:01:30").await;
        assert!(node.is_ready());
        cluster.log.take();

        link.cut();
        if session_ends {
            link.expire();
        }
        cluster.advance_to("12:03:30").await;
        assert!(cluster.log.take().is_empty());
        assert!(!node.is_ready(), "the node cannot start runs");
        link.heal();
        cluster.advance_to("12:03:35").await;

        let missed = cluster.log.take();
        let due_times: Vec<&str> = missed.iter().map(|(due_at, _)| due_at.as_str()).collect();
        // The older fire may have been waiting to start; the newest fire is never lost, and none runs twice.
        let is_compensated = matches!(&due_times[..], ["12:03:00Z"] | ["12:02:00Z", "12:03:00Z"]);
        assert!(is_compensated, "{due_times:?}; session ended: {session_ends}");
        assert!(node.is_ready());
        cluster.advance_to("12:04:01").await;
        assert_eq!(cluster.log.take(), [attempt("12:04:00", RunReason::Schedule)]);
    }
}

#[tokio::test(start_paused = true)]
async fn node_with_a_lost_session_rejoins_and_repeats_its_run() {
    let cluster = Cluster::new();
    let (_node, link) = cluster.node(every_minute(), Duration::from_secs(30)).await;
    cluster.advance_to("12:01:05").await;

    link.cut();
    cluster.advance_to("12:01:20").await;
    link.expire();
    cluster.advance_to("12:01:25").await;
    link.heal();
    cluster.advance_to("12:01:59").await;

    let taken_over =
        [attempt("12:01:00", RunReason::Schedule), attempt("12:01:00", RunReason::Failover)];
    assert_eq!(cluster.log.take(), taken_over);
    assert_eq!(cluster.log.take_outcomes(), [Outcome::Fenced, Outcome::Succeeded]);
    cluster.advance_to("12:02:31").await;
    assert_eq!(cluster.log.take(), [attempt("12:02:00", RunReason::Schedule)]);
}
