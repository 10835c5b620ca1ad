//! What a job's settings do, on a cluster in process whose time passes when told to.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    Job, Node, NodeJob, Shard,
    coordination::{
        sharding::{Dealer, Situation},
        tree::{JobTree, Part},
    },
    execution::{DataflowJob, Execution, Failure, Listener},
    job::{CatchUp, Failover, MaxTimeDiff, Misfire, Monitor, Reason, Strategy},
    node::Running,
    registry::{Expected, memory::MemoryServer},
    runtime::{Clock, Monotonic},
    testing::Cluster,
};
use jiff::Timestamp;

const NOON: &str = "2026-11-15T12:00:00Z";

/// What ran: when it was due, where, which shard, why.
type Ran = (String, String, u32, Reason);

#[derive(Clone, Default)]
struct Book(Arc<Mutex<Vec<Ran>>>);

impl Book {
    /// A handler that notes what it is given and takes so long.
    fn taking(
        &self,
        span: Duration,
    ) -> impl Fn(Shard) -> futures_util::future::BoxFuture<'static, Result<(), std::io::Error>>
    + Send
    + Sync
    + 'static {
        let book = self.clone();
        move |shard| {
            let server = shard.task.instance.server().to_owned();
            let due_at = shard.due_at.to_string();
            book.0.lock().unwrap().push((due_at, server, shard.item, shard.attempt.reason));
            Box::pin(async move {
                tokio::time::sleep(span).await;
                Ok(())
            })
        }
    }

    /// What ran since the last look: due (without the date), server, shard, why.
    fn take(&self) -> Vec<Ran> {
        let mut ran = std::mem::take(&mut *self.0.lock().unwrap());
        for entry in &mut ran {
            entry.0 = entry.0.trim_start_matches("2026-11-15T").trim_end_matches('Z').to_owned();
        }
        ran
    }

    fn dues(&self) -> Vec<(String, Reason)> {
        self.take().into_iter().map(|(due, _, _, reason)| (due, reason)).collect()
    }
}

fn every(cron: &str) -> Job {
    Job::named("settle").unwrap().cron(cron).unwrap()
}

fn tree(cluster: &Cluster) -> JobTree {
    JobTree::new(cluster.registry().namespace(), &"settle".parse().unwrap()).unwrap()
}

async fn node(cluster: &mut Cluster, job: Job, book: &Book, span: Duration) -> Running {
    cluster.node(|node| node.job(job, book.taking(span))).await.unwrap()
}

async fn configure(cluster: &mut Cluster, job: Job) {
    let path = tree(cluster).config();
    cluster.registry().set(&path, job.to_yaml().into(), Expected::Any).await.unwrap();
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_made_up_for_right_after_and_once() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let _node = node(&mut cluster, every("0 0/2 * * * ?"), &book, Duration::from_mins(5)).await;

    cluster.advance_to("2026-11-15T12:06:59Z").await;
    assert_eq!(book.dues(), [("12:02:00".into(), Reason::Due)]);
    cluster.advance_to("2026-11-15T12:07:01Z").await;

    assert_eq!(book.dues(), [("12:06:00".into(), Reason::Misfire)], "12:04 and 12:06 are one");
}

#[tokio::test(start_paused = true)]
async fn without_misfire_what_was_due_during_a_run_is_left_out() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let job = every("0 0/2 * * * ?").if_late(Misfire::Skip);
    let _node = node(&mut cluster, job, &book, Duration::from_mins(5)).await;

    cluster.advance_to("2026-11-15T12:08:01Z").await;

    assert_eq!(book.dues(), [("12:02:00".into(), Reason::Due), ("12:08:00".into(), Reason::Due)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_due_while_nobody_was_there_is_caught_up_with_as_the_job_says() {
    let window = Duration::from_mins(5);
    let expected: [(CatchUp, &[&str]); 3] = [
        (CatchUp::None, &[]),
        (CatchUp::Last, &["12:09:00"]),
        (CatchUp::All { window }, &["12:05:00", "12:06:00", "12:07:00", "12:08:00", "12:09:00"]),
    ];
    for (policy, missed) in expected {
        let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
        let job = every("0 * * * * ?").if_nobody_was_there(policy);
        let first = node(&mut cluster, job.clone(), &book, Duration::ZERO).await;
        cluster.advance_to("2026-11-15T12:02:30Z").await;
        first.stop().await;
        book.take();

        cluster.advance_to("2026-11-15T12:09:45Z").await;
        let _second = node(&mut cluster, job, &book, Duration::ZERO).await;
        cluster.advance(Duration::from_secs(1)).await;

        let missed: Vec<_> =
            missed.iter().map(|due| ((*due).to_owned(), Reason::CatchUp)).collect();
        assert_eq!(book.dues(), missed, "{policy}");
        cluster.advance_to("2026-11-15T12:10:01Z").await;
        assert_eq!(book.dues(), [("12:10:00".into(), Reason::Due)], "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_node_ran_another_runs_again_at_once_and_only_once() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let job = every("0 0 * * * ?").shards(2).if_node_dies(Failover::TakeOver);
    let long = Duration::from_mins(10);
    let _first = node(&mut cluster, job.clone(), &book, long).await;
    let second = node(&mut cluster, job, &book, long).await;
    cluster.advance_to("2026-11-15T13:00:01Z").await;
    let shards: BTreeMap<u32, String> =
        book.take().into_iter().map(|(_, server, item, _)| (item, server)).collect();
    let (lost, _) = shards.iter().find(|(_, server)| *server == "10.0.0.2").unwrap();

    drop(second);
    cluster.settle().await;

    let again = ("13:00:00".into(), "10.0.0.1".into(), *lost, Reason::Failover);
    assert_eq!(book.take(), [again], "the survivor is still at its own shard, and runs it beside");
    cluster.advance_to("2026-11-15T13:59:59Z").await;
    assert!(book.take().is_empty());
}

/// Shows noon when the test began, and so much more; time passes as tokio's does.
#[derive(Debug, Clone, Copy)]
struct Wall {
    began: tokio::time::Instant,
    ahead: Duration,
}

impl Wall {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn new() -> Self {
        Self { began: tokio::time::Instant::now(), ahead: Duration::ZERO }
    }
}

#[async_trait]
impl Clock for Wall {
    fn now(&self) -> Timestamp {
        NOON.parse::<Timestamp>().unwrap() + self.began.elapsed() + self.ahead
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(Duration::from_hours(1) + self.began.elapsed())
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        tokio::time::sleep(deadline.saturating_since(self.monotonic())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_off_is_no_reason_not_to_run_unless_the_alert_throws() {
    for (alert, runs) in [("LOG", 1), ("THROW", 0)] {
        let (book, clock) = (Book::default(), Wall::new());
        let server = MemoryServer::new(Arc::new(clock));
        let registry = Arc::new(server.join("test".parse().unwrap()).await.unwrap());
        let job = every("30 * * * * ?").max_time_diff(MaxTimeDiff::seconds(60)).alert(alert);
        let node = Node::on(registry)
            .clock(Arc::new(Wall { ahead: Duration::from_mins(90), ..clock }))
            .job(job, book.taking(Duration::ZERO))
            .start()
            .await
            .unwrap();

        tokio::time::sleep(Duration::from_secs(45)).await;

        assert_eq!(book.take().len(), runs, "{alert}");
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wandering_shard_goes_from_server_to_server() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let job = || every("0 * * * * ?").strategy(&Strategy::SingleShardingBalance);
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node(&mut cluster, job(), &book, Duration::ZERO).await);
    }

    cluster.advance_to("2026-11-15T12:06:30Z").await;

    let servers: Vec<String> = book.take().into_iter().map(|(_, server, _, _)| server).collect();
    assert_eq!(servers.len(), 6, "one run for each fire: {servers:?}");
    let next = |server: &str| match server {
        "10.0.0.1" => "10.0.0.3",
        "10.0.0.2" => "10.0.0.1",
        _ => "10.0.0.2",
    };
    assert!(servers.windows(2).all(|pair| pair[1] == next(&pair[0])), "{servers:?}");
}

#[derive(Debug)]
struct AllToTheLast;

impl Dealer for AllToTheLast {
    fn deal(&self, situation: &Situation<'_>) -> Vec<String> {
        let last = situation.candidates.iter().map(|candidate| candidate.id.clone()).max();
        vec![last.unwrap_or_default(); situation.total as usize]
    }
}

#[tokio::test(start_paused = true)]
async fn a_strategy_of_the_program_deals_the_shards() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let job = every("0 * * * * ?").shards(3).strategy(&Strategy::from("all-to-the-last"));
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let (job, handler) = (job.clone(), book.taking(Duration::ZERO));
        let with =
            |node: Node| node.strategy("ALL-TO-THE-LAST", Arc::new(AllToTheLast)).job(job, handler);
        nodes.push(cluster.node(with).await.unwrap());
    }

    cluster.advance_to("2026-11-15T12:01:01Z").await;

    let servers: Vec<String> = book.take().into_iter().map(|(_, server, _, _)| server).collect();
    assert_eq!(servers, ["10.0.0.2"; 3]);
}

/// Always has something to do.
struct Endless(Arc<AtomicUsize>);

impl DataflowJob for Endless {
    type Item = ();
    type Error = std::io::Error;

    async fn fetch(&self, _: &Shard) -> Result<Vec<()>, std::io::Error> {
        Ok(vec![()])
    }

    async fn process(&self, _: &Shard, _: Vec<()>) -> Result<(), std::io::Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_shard_is_to_move() {
    let mut cluster = Cluster::at(NOON).await;
    let job = every("0 0/10 * * * ?").shards(2).prop("streaming.process", "true").unwrap();
    let batches = Arc::new(AtomicUsize::new(0));
    let first = job.clone();
    let endless = Endless(Arc::clone(&batches));
    let _first = cluster.node(|node| node.job(first, endless)).await.unwrap();
    cluster.advance_to("2026-11-15T12:10:30Z").await;
    assert!(batches.load(Ordering::Relaxed) > 50, "two shards, thirty seconds");

    let _second = cluster.node(|node| node.job(job, Endless(Arc::clone(&batches)))).await.unwrap();
    cluster.advance(Duration::from_secs(2)).await;

    let mut owners = Vec::new();
    for shard in 0..2 {
        let path = tree(&cluster).shard(shard, Part::Owner);
        let owner = cluster.registry().get(&path).await.unwrap().unwrap();
        owners.push(String::from_utf8(owner.data.to_vec()).unwrap()[..8].to_owned());
    }
    owners.sort();
    assert_eq!(owners, ["10.0.0.1", "10.0.0.2"], "each has its share although streams never end");
}

#[tokio::test(start_paused = true)]
async fn changes_of_schedule_total_and_monitoring_take_effect_without_restart() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let _node = node(&mut cluster, every("0 * * * * ?"), &book, Duration::from_secs(30)).await;
    cluster.advance_to("2026-11-15T12:01:10Z").await;
    let running = tree(&cluster).shard(0, Part::Running);
    assert!(cluster.registry().exists(&running).await.unwrap().is_some());

    configure(&mut cluster, every("0 * * * * ?").monitor(Monitor::Nothing)).await;
    assert_eq!(cluster.registry().exists(&running).await.unwrap(), None);
    assert_eq!(book.dues(), [("12:01:00".into(), Reason::Due)]);
    configure(&mut cluster, every("0 0/5 * * * ?").shards(2)).await;
    cluster.advance_to("2026-11-15T12:05:40Z").await;
    assert_eq!(
        book.dues(),
        [("12:05:00".into(), Reason::Due), ("12:05:00".into(), Reason::Due)],
        "what the new schedule says of the past was never due"
    );
    // The same clock face, an hour further east.
    configure(&mut cluster, every("0 30 14 * * ?").zone("GMT+2:00").unwrap()).await;
    cluster.advance_to("2026-11-15T12:30:01Z").await;
    assert_eq!(book.dues(), [("12:30:00".into(), Reason::Due)]);

    let mut disabled = every("0 * * * * ?");
    disabled.disabled = true;
    configure(&mut cluster, disabled).await;
    cluster.advance_to("2026-11-15T12:40:30Z").await;
    assert!(book.take().is_empty());
    configure(&mut cluster, every("0 * * * * ?")).await;
    cluster.advance_to("2026-11-15T12:41:01Z").await;
    assert_eq!(book.dues(), [("12:41:00".into(), Reason::Due)], "nothing is made up for");
}

struct Refusing;

#[async_trait]
impl Listener for Refusing {
    async fn before(&self, _: &Execution) -> Result<(), Failure> {
        Err(Failure::new("not today"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_fails_keeps_the_shards_from_running_only_if_the_alert_throws() {
    for (alert, runs) in [("IGNORE", 1), ("THROW", 0)] {
        let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
        let job = NodeJob::code(every("0 * * * * ?").alert(alert), book.taking(Duration::ZERO))
            .listener(Arc::new(Refusing));
        let _node = cluster.node(|node| node.with(job)).await.unwrap();

        cluster.advance_to("2026-11-15T12:01:01Z").await;

        assert_eq!(book.take().len(), runs, "{alert}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_without_a_schedule_runs_when_asked_and_once_more_if_asked_while_it_runs() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let job = Job::named("settle").unwrap().shards(2);
    let _node = node(&mut cluster, job, &book, Duration::from_mins(1)).await;

    cluster.trigger("settle").await;
    cluster.trigger("settle").await;
    assert_eq!(book.take().len(), 2, "two shards, one run");
    cluster.advance(Duration::from_secs(61)).await;

    assert_eq!(book.take().len(), 2);
    cluster.advance(Duration::from_hours(1)).await;
    assert!(book.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_orphan_is_taken_over_one_after_the_other_also_if_nothing_is_made_up_for() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let job =
        every("0 0 * * * ?").shards(4).if_node_dies(Failover::TakeOver).if_late(Misfire::Skip);
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node(&mut cluster, job.clone(), &book, Duration::from_mins(10)).await);
    }
    cluster.advance_to("2026-11-15T13:00:01Z").await;
    let began = book.take();
    assert_eq!(began.len(), 4);
    let lost = began.into_iter().filter(|(_, server, _, _)| server != "10.0.0.1");
    let mut lost: Vec<u32> = lost.map(|(_, _, shard, _)| shard).collect();
    lost.sort_unstable();

    // Two of them die with what they ran; the third takes it over when it is idle, share by share.
    drop(nodes.pop());
    drop(nodes.pop());
    cluster.advance_to("2026-11-15T13:55:00Z").await;

    let again = book.take();
    assert!(
        again.iter().all(|(_, server, _, why)| server == "10.0.0.1" && *why == Reason::Failover)
    );
    let mut shards: Vec<u32> = again.into_iter().map(|(_, _, shard, _)| shard).collect();
    shards.sort_unstable();
    assert_eq!(shards, lost, "each of them once");
}

#[tokio::test(start_paused = true)]
async fn what_a_wandering_shard_missed_is_made_up_for_by_whose_turn_it_is() {
    let (book, mut cluster) = (Book::default(), Cluster::at(NOON).await);
    let job = || every("0 0/10 * * * ?").strategy(&Strategy::SingleShardingBalance);
    let mut nodes = Vec::new();
    for _ in 0..2 {
        nodes.push(node(&mut cluster, job(), &book, Duration::from_mins(11)).await);
    }

    cluster.advance_to("2026-11-15T12:22:00Z").await;

    let dues: Vec<(String, Reason)> = book.dues();
    assert_eq!(dues, [("12:10:00".into(), Reason::Due), ("12:20:00".into(), Reason::Misfire)]);
}
