//! Registries that go away and come back, on memory, with time that passes as fast as it can.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    Job, Node, Shard,
    coordination::tree::{JobTree, Part},
    execution::{Execution, Failure, Listener, Outcome, Ran},
    job::{Failover, Reason},
    node::{NodeJob, Running},
    registry::{
        Registry,
        memory::{Link, MemoryServer},
    },
    runtime::{Clock, Monotonic},
};
use jiff::Timestamp;

const SESSION: Duration = Duration::from_secs(10);

/// Shows noon when the test began; time passes as tokio's does.
#[derive(Debug, Clone, Copy)]
struct Wall(tokio::time::Instant);

impl Wall {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

#[async_trait]
impl Clock for Wall {
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

/// What began and how it ended.
#[derive(Clone, Default)]
struct Book {
    began: Arc<Mutex<Vec<(String, Reason)>>>,
    ended: Arc<Mutex<Vec<Outcome>>>,
}

impl Book {
    fn take(&self) -> Vec<(String, Reason)> {
        std::mem::take(&mut *self.began.lock().unwrap())
    }

    fn ended(&self) -> Vec<Outcome> {
        std::mem::take(&mut *self.ended.lock().unwrap())
    }
}

#[async_trait]
impl Listener for Book {
    async fn after(&self, _: &Execution, ran: &[Ran]) -> Result<(), Failure> {
        self.ended.lock().unwrap().extend(ran.iter().map(|ran| ran.outcome.clone()));
        Ok(())
    }
}

struct Scene {
    clock: Wall,
    server: MemoryServer,
    book: Book,
}

impl Scene {
    fn new() -> Self {
        let clock = Wall::new();
        let server = MemoryServer::new(Arc::new(clock)).session_timeout(SESSION);
        Self { clock, server, book: Book::default() }
    }

    /// A node whose shard takes so long.
    async fn node(&self, job: Job, span: Duration) -> (Running, Link) {
        let registry = self.server.join("test".parse().unwrap()).await.unwrap();
        let (link, began) = (registry.link(), Arc::clone(&self.book.began));
        let handler = move |shard: Shard| {
            let due_at = shard.due_at.to_string().split_off("2026-11-15T".len());
            began.lock().unwrap().push((due_at, shard.attempt.reason));
            async move {
                tokio::time::sleep(span).await;
                Ok::<(), std::io::Error>(())
            }
        };
        let job = NodeJob::code(job, handler).listener(Arc::new(self.book.clone()));
        let node = Node::on(Arc::new(registry)).clock(Arc::new(self.clock)).with(job);
        (node.start().await.unwrap(), link)
    }

    async fn running(&self) -> bool {
        let observer = self.server.join("test".parse().unwrap()).await.unwrap();
        let tree = JobTree::new(observer.namespace(), &"settle".parse().unwrap()).unwrap();
        observer.exists(&tree.shard(0, Part::Running)).await.unwrap().is_some()
    }

    /// Lets time pass until the clock shows this.
    async fn until(&self, time: &str) {
        let then: Timestamp = format!("2026-11-15T{time}Z").parse().unwrap();
        let left = then.duration_since(self.clock.now());
        tokio::time::sleep(left.try_into().expect("it is not over")).await;
    }
}

fn every_minute() -> Job {
    Job::named("settle").unwrap().cron("0 * * * * ?").unwrap().if_node_dies(Failover::TakeOver)
}

fn ran(due_at: &str, reason: Reason) -> (String, Reason) {
    (format!("{due_at}Z"), reason)
}

#[tokio::test(start_paused = true)]
async fn outage_longer_than_the_lease_leaves_no_running_node() {
    let scene = Scene::new();
    let (_node, link) = scene.node(every_minute(), Duration::from_secs(30)).await;
    scene.until("12:01:05").await;
    assert!(scene.running().await);

    // The registry has not ended the session; but nobody can know that here.
    link.cut();
    scene.until("12:01:25").await;
    assert_eq!(scene.book.ended(), [Outcome::Fenced]);
    assert!(scene.running().await, "it cannot be given back now");
    link.heal();
    scene.until("12:01:30").await;

    assert!(!scene.running().await);
    assert_eq!(scene.book.take(), [ran("12:01:00", Reason::Due)]);
    scene.until("12:02:40").await;
    assert_eq!(scene.book.take(), [ran("12:02:00", Reason::Due)]);
    assert_eq!(scene.book.ended(), [Outcome::Done]);
}

#[tokio::test(start_paused = true)]
async fn fire_during_an_outage_is_compensated_afterwards() {
    for ends_session in [false, true] {
        let scene = Scene::new();
        let (node, link) = scene.node(every_minute(), Duration::ZERO).await;
        scene.until("12:01:30").await;
        assert!(node.is_ready());
        scene.book.take();

        link.cut();
        if ends_session {
            link.expire();
        }
        scene.until("12:03:30").await;
        assert!(scene.book.take().is_empty());
        assert!(!node.is_ready(), "nothing can be started");
        link.heal();
        scene.until("12:03:35").await;

        let missed = scene.book.take();
        let dues: Vec<&str> = missed.iter().map(|(due_at, _)| due_at.as_str()).collect();
        // The older one may have been waiting to begin; the newest is never lost, and none runs twice.
        let is_made_up_for = matches!(&dues[..], ["12:03:00Z"] | ["12:02:00Z", "12:03:00Z"]);
        assert!(is_made_up_for, "{dues:?}; session ended: {ends_session}");
        assert!(node.is_ready());
        scene.until("12:04:01").await;
        assert_eq!(scene.book.take(), [ran("12:04:00", Reason::Due)]);
    }
}

#[tokio::test(start_paused = true)]
async fn node_with_a_lost_session_rejoins_and_repeats_its_run() {
    let scene = Scene::new();
    let (_node, link) = scene.node(every_minute(), Duration::from_secs(30)).await;
    scene.until("12:01:05").await;

    link.cut();
    scene.until("12:01:20").await;
    link.expire();
    scene.until("12:01:25").await;
    link.heal();
    scene.until("12:01:59").await;

    let taken_over = [ran("12:01:00", Reason::Due), ran("12:01:00", Reason::Failover)];
    assert_eq!(scene.book.take(), taken_over);
    assert_eq!(scene.book.ended(), [Outcome::Fenced, Outcome::Done]);
    scene.until("12:02:31").await;
    assert_eq!(scene.book.take(), [ran("12:02:00", Reason::Due)]);
}
