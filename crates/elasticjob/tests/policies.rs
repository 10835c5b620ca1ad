//! The effect of a job's policies, on an in-process cluster with a manual clock.

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
        sharding::{ShardingInput, ShardingStrategy},
        tree::{JobTree, ShardNode},
    },
    execution::{DataflowJob, Execution, Failure, Listener},
    job::{CatchUp, Failover, MaxTimeDiff, Misfire, Monitor, RunReason, Strategy},
    node::RunningNode,
    registry::{ExpectedVersion, memory::MemoryServer},
    runtime::{Clock, Monotonic},
    testing::Cluster,
};
use jiff::Timestamp;

const NOON: &str = "2026-11-15T12:00:00Z";

/// One attempt: due time, server, shard, reason.
type Attempt = (String, String, u32, RunReason);

#[derive(Clone, Default)]
struct RunLog(Arc<Mutex<Vec<Attempt>>>);

impl RunLog {
    /// A handler that records each attempt and then takes this long.
    fn handler_taking(
        &self,
        span: Duration,
    ) -> impl Fn(Shard) -> futures_util::future::BoxFuture<'static, Result<(), std::io::Error>>
    + Send
    + Sync
    + 'static {
        let log = self.clone();
        move |shard| {
            let server = shard.task.instance.server().to_owned();
            let due_at = shard.due_at.to_string();
            log.0.lock().unwrap().push((due_at, server, shard.item, shard.attempt.reason));
            Box::pin(async move {
                tokio::time::sleep(span).await;
                Ok(())
            })
        }
    }

    /// Attempts since the last call, with the due time without its date.
    fn take(&self) -> Vec<Attempt> {
        let mut attempts = std::mem::take(&mut *self.0.lock().unwrap());
        for entry in &mut attempts {
            entry.0 = entry.0.trim_start_matches("2026-11-15T").trim_end_matches('Z').to_owned();
        }
        attempts
    }

    fn due_times(&self) -> Vec<(String, RunReason)> {
        self.take().into_iter().map(|(due, _, _, reason)| (due, reason)).collect()
    }
}

fn every(cron: &str) -> Job {
    Job::named("settle").unwrap().cron(cron).unwrap()
}

fn tree(cluster: &Cluster) -> JobTree {
    JobTree::new(cluster.registry().namespace(), &"settle".parse().unwrap()).unwrap()
}

async fn node(cluster: &mut Cluster, job: Job, log: &RunLog, span: Duration) -> RunningNode {
    cluster.node(|node| node.job(job, log.handler_taking(span))).await.unwrap()
}

async fn configure(cluster: &mut Cluster, job: Job) {
    let path = tree(cluster).config();
    cluster.registry().set(&path, job.to_yaml().into(), ExpectedVersion::Any).await.unwrap();
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn misfires_during_a_run_are_compensated_once_right_after() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let _node = node(&mut cluster, every("0 0/2 * * * ?"), &log, Duration::from_mins(5)).await;

    cluster.advance_to("2026-11-15T12:06:59Z").await;
    assert_eq!(log.due_times(), [("12:02:00".into(), RunReason::Schedule)]);
    cluster.advance_to("2026-11-15T12:07:01Z").await;

    assert_eq!(
        log.due_times(),
        [("12:06:00".into(), RunReason::Misfire)],
        "12:04 and 12:06 are compensated by one run"
    );
}

#[tokio::test(start_paused = true)]
async fn fires_during_a_run_are_skipped_without_misfire() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let job = every("0 0/2 * * * ?").misfire(Misfire::Skip);
    let _node = node(&mut cluster, job, &log, Duration::from_mins(5)).await;

    cluster.advance_to("2026-11-15T12:08:01Z").await;

    assert_eq!(
        log.due_times(),
        [("12:02:00".into(), RunReason::Schedule), ("12:08:00".into(), RunReason::Schedule)]
    );
}

#[tokio::test(start_paused = true)]
async fn fires_due_while_no_instance_was_up_follow_the_catch_up_policy() {
    let window = Duration::from_mins(5);
    let expected: [(CatchUp, &[&str]); 3] = [
        (CatchUp::None, &[]),
        (CatchUp::Last, &["12:09:00"]),
        (CatchUp::All { window }, &["12:05:00", "12:06:00", "12:07:00", "12:08:00", "12:09:00"]),
    ];
    for (policy, missed) in expected {
        let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
        let job = every("0 * * * * ?").catch_up(policy);
        let first = node(&mut cluster, job.clone(), &log, Duration::ZERO).await;
        cluster.advance_to("2026-11-15T12:02:30Z").await;
        first.stop().await;
        log.take();

        cluster.advance_to("2026-11-15T12:09:45Z").await;
        let _second = node(&mut cluster, job, &log, Duration::ZERO).await;
        cluster.advance(Duration::from_secs(1)).await;

        let missed: Vec<_> =
            missed.iter().map(|due| ((*due).to_owned(), RunReason::CatchUp)).collect();
        assert_eq!(log.due_times(), missed, "{policy}");
        cluster.advance_to("2026-11-15T12:10:01Z").await;
        assert_eq!(log.due_times(), [("12:10:00".into(), RunReason::Schedule)], "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_shard_is_taken_over_at_once_and_only_once() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let job = every("0 0 * * * ?").shards(2).failover(Failover::TakeOver);
    let duration = Duration::from_mins(10);
    let _first = node(&mut cluster, job.clone(), &log, duration).await;
    let second = node(&mut cluster, job, &log, duration).await;
    cluster.advance_to("2026-11-15T13:00:01Z").await;
    let shards: BTreeMap<u32, String> =
        log.take().into_iter().map(|(_, server, item, _)| (item, server)).collect();
    let (lost, _) = shards.iter().find(|(_, server)| *server == "10.0.0.2").unwrap();

    drop(second);
    cluster.settle().await;

    let again = ("13:00:00".into(), "10.0.0.1".into(), *lost, RunReason::Failover);
    assert_eq!(log.take(), [again], "the survivor runs it next to its own shard");
    cluster.advance_to("2026-11-15T13:59:59Z").await;
    assert!(log.take().is_empty());
}

/// A clock that starts at noon plus `ahead` and follows tokio's paused time.
#[derive(Debug, Clone, Copy)]
struct TestClock {
    started: tokio::time::Instant,
    ahead: Duration,
}

impl TestClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn new() -> Self {
        Self { started: tokio::time::Instant::now(), ahead: Duration::ZERO }
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        NOON.parse::<Timestamp>().unwrap() + self.started.elapsed() + self.ahead
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(Duration::from_hours(1) + self.started.elapsed())
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        tokio::time::sleep(deadline.saturating_since(self.monotonic())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn clock_difference_prevents_runs_only_if_the_alert_throws() {
    for (alert, runs) in [("LOG", 1), ("THROW", 0)] {
        let (log, clock) = (RunLog::default(), TestClock::new());
        let server = MemoryServer::new(Arc::new(clock));
        let registry = Arc::new(server.join("test".parse().unwrap()).await.unwrap());
        let job = every("30 * * * * ?").max_time_diff(MaxTimeDiff::seconds(60)).alert(alert);
        let node = Node::on(registry)
            .clock(Arc::new(TestClock { ahead: Duration::from_mins(90), ..clock }))
            .job(job, log.handler_taking(Duration::ZERO))
            .start()
            .await
            .unwrap();

        tokio::time::sleep(Duration::from_secs(45)).await;

        assert_eq!(log.take().len(), runs, "{alert}");
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn single_sharding_balance_moves_the_shard_to_the_next_server() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let job = || every("0 * * * * ?").strategy(&Strategy::SingleShardingBalance);
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node(&mut cluster, job(), &log, Duration::ZERO).await);
    }

    cluster.advance_to("2026-11-15T12:06:30Z").await;

    let servers: Vec<String> = log.take().into_iter().map(|(_, server, _, _)| server).collect();
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

impl ShardingStrategy for AllToTheLast {
    fn assign(&self, situation: &ShardingInput<'_>) -> Vec<String> {
        let last = situation.candidates.iter().map(|candidate| candidate.id.clone()).max();
        vec![last.unwrap_or_default(); situation.total as usize]
    }
}

#[tokio::test(start_paused = true)]
async fn custom_strategy_assigns_the_shards() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let job = every("0 * * * * ?").shards(3).strategy(&Strategy::from("all-to-the-last"));
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let (job, handler) = (job.clone(), log.handler_taking(Duration::ZERO));
        let with =
            |node: Node| node.strategy("ALL-TO-THE-LAST", Arc::new(AllToTheLast)).job(job, handler);
        nodes.push(cluster.node(with).await.unwrap());
    }

    cluster.advance_to("2026-11-15T12:01:01Z").await;

    let servers: Vec<String> = log.take().into_iter().map(|(_, server, _, _)| server).collect();
    assert_eq!(servers, ["10.0.0.2"; 3]);
}

/// A dataflow job that always has data.
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
async fn streaming_run_ends_when_its_shard_is_reassigned() {
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
        let path = tree(&cluster).shard(shard, ShardNode::Owner);
        let owner = cluster.registry().get(&path).await.unwrap().unwrap();
        owners.push(String::from_utf8(owner.data.to_vec()).unwrap()[..8].to_owned());
    }
    owners.sort();
    assert_eq!(
        owners,
        ["10.0.0.1", "10.0.0.2"],
        "shards are reassigned although streams never end"
    );
}

#[tokio::test(start_paused = true)]
async fn configuration_changes_take_effect_without_restart() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let _node = node(&mut cluster, every("0 * * * * ?"), &log, Duration::from_secs(30)).await;
    cluster.advance_to("2026-11-15T12:01:10Z").await;
    let running = tree(&cluster).shard(0, ShardNode::Running);
    assert!(cluster.registry().exists(&running).await.unwrap().is_some());

    configure(&mut cluster, every("0 * * * * ?").monitor(Monitor::Nothing)).await;
    assert_eq!(cluster.registry().exists(&running).await.unwrap(), None);
    assert_eq!(log.due_times(), [("12:01:00".into(), RunReason::Schedule)]);
    configure(&mut cluster, every("0 0/5 * * * ?").shards(2)).await;
    cluster.advance_to("2026-11-15T12:05:40Z").await;
    assert_eq!(
        log.due_times(),
        [("12:05:00".into(), RunReason::Schedule), ("12:05:00".into(), RunReason::Schedule)],
        "past fires of the new schedule were never due"
    );
    // 14:30 in GMT+2 is 12:30 UTC.
    configure(&mut cluster, every("0 30 14 * * ?").zone("GMT+2:00").unwrap()).await;
    cluster.advance_to("2026-11-15T12:30:01Z").await;
    assert_eq!(log.due_times(), [("12:30:00".into(), RunReason::Schedule)]);

    let mut disabled = every("0 * * * * ?");
    disabled.disabled = true;
    configure(&mut cluster, disabled).await;
    cluster.advance_to("2026-11-15T12:40:30Z").await;
    assert!(log.take().is_empty());
    configure(&mut cluster, every("0 * * * * ?")).await;
    cluster.advance_to("2026-11-15T12:41:01Z").await;
    assert_eq!(
        log.due_times(),
        [("12:41:00".into(), RunReason::Schedule)],
        "fires while disabled are not compensated"
    );
}

struct FailingListener;

#[async_trait]
impl Listener for FailingListener {
    async fn before(&self, _: &Execution) -> Result<(), Failure> {
        Err(Failure::new("not today"))
    }
}

#[tokio::test(start_paused = true)]
async fn failing_listener_prevents_runs_only_if_the_alert_throws() {
    for (alert, runs) in [("IGNORE", 1), ("THROW", 0)] {
        let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
        let job =
            NodeJob::code(every("0 * * * * ?").alert(alert), log.handler_taking(Duration::ZERO))
                .listener(Arc::new(FailingListener));
        let _node = cluster.node(|node| node.with(job)).await.unwrap();

        cluster.advance_to("2026-11-15T12:01:01Z").await;

        assert_eq!(log.take().len(), runs, "{alert}");
    }
}

#[tokio::test(start_paused = true)]
async fn trigger_during_a_triggered_run_runs_the_job_once_more() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let job = Job::named("settle").unwrap().shards(2);
    let _node = node(&mut cluster, job, &log, Duration::from_mins(1)).await;

    cluster.trigger("settle").await;
    cluster.trigger("settle").await;
    assert_eq!(log.take().len(), 2, "two shards, one run");
    cluster.advance(Duration::from_secs(61)).await;

    assert_eq!(log.take().len(), 2);
    cluster.advance(Duration::from_hours(1)).await;
    assert!(log.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn orphaned_shards_are_all_taken_over_even_without_misfire() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let job = every("0 0 * * * ?").shards(4).failover(Failover::TakeOver).misfire(Misfire::Skip);
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node(&mut cluster, job.clone(), &log, Duration::from_mins(10)).await);
    }
    cluster.advance_to("2026-11-15T13:00:01Z").await;
    let began = log.take();
    assert_eq!(began.len(), 4);
    let lost = began.into_iter().filter(|(_, server, _, _)| server != "10.0.0.1");
    let mut lost: Vec<u32> = lost.map(|(_, _, shard, _)| shard).collect();
    lost.sort_unstable();

    // Two instances die while running; the third takes over their shards when it is idle, one after the other.
    drop(nodes.pop());
    drop(nodes.pop());
    cluster.advance_to("2026-11-15T13:55:00Z").await;

    let again = log.take();
    assert!(
        again
            .iter()
            .all(|(_, server, _, reason)| server == "10.0.0.1" && *reason == RunReason::Failover)
    );
    let mut shards: Vec<u32> = again.into_iter().map(|(_, _, shard, _)| shard).collect();
    shards.sort_unstable();
    assert_eq!(shards, lost, "each of them once");
}

#[tokio::test(start_paused = true)]
async fn misfire_of_a_moving_shard_is_compensated_by_its_next_owner() {
    let (log, mut cluster) = (RunLog::default(), Cluster::at(NOON).await);
    let job = || every("0 0/10 * * * ?").strategy(&Strategy::SingleShardingBalance);
    let mut nodes = Vec::new();
    for _ in 0..2 {
        nodes.push(node(&mut cluster, job(), &log, Duration::from_mins(11)).await);
    }

    cluster.advance_to("2026-11-15T12:22:00Z").await;

    let due_times: Vec<(String, RunReason)> = log.due_times();
    assert_eq!(
        due_times,
        [("12:10:00".into(), RunReason::Schedule), ("12:20:00".into(), RunReason::Misfire)]
    );
}
