//! Counts the requests of each instance for each fire, with the counters that a real ZooKeeper keeps for each connection.
//!
//! Many jobs fire every second, so that a few seconds are many fires. The counters are read when nothing runs: before and after the read,
//! every ledger page says that its shard is done with the same fire. All requests between two reads count, pings and syncs too, so the test
//! asserts more than the documents promise.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
    time::Duration,
};

use elasticjob::{
    coordination::{
        ledger::{LedgerPage, LedgerState},
        tree::JobTree,
    },
    job::{Failover, Job, Shard},
    node::{Node, RunningNode},
    registry::{Registry, SessionId, ZooKeeperSettings, zookeeper},
};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use testbed::ZooKeeper;
use tokio::sync::mpsc;

// All tests share one server, each with its own namespace. The server ends with the process.
static ZOOKEEPER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

const TIMEOUT: Duration = Duration::from_secs(30);
const JOBS: u32 = 25;
const SHARDS: u32 = 4;
/// Seconds to count: 75 fires.
const SECONDS: i64 = 3;
const MAX_REQUESTS_PER_FIRE: u64 = 2;

/// Several instances of the same jobs, and an observer.
struct Cluster {
    instances: Vec<(SessionId, RunningNode)>,
    observer: Arc<dyn Registry>,
    pages: Vec<elasticjob::registry::Path>,
    attempts: mpsc::UnboundedReceiver<(u8, String, Timestamp)>,
}

/// A moment between two fires at which nothing runs.
struct IdleMoment {
    /// The last fire of every job.
    due_at: Timestamp,
    /// Requests that each instance has sent so far.
    requests_sent: Vec<u64>,
}

async fn connect(namespace: &str) -> Arc<dyn Registry> {
    let settings = ZooKeeperSettings::new([ZOOKEEPER.address().into()], namespace.parse().unwrap());
    Arc::new(zookeeper::ZooKeeper::connect(&settings).await.unwrap())
}

impl Cluster {
    async fn start(namespace: &str, size: u8, failover: Failover) -> Self {
        let observer = connect(namespace).await;
        let (sender, attempts) = mpsc::unbounded_channel();
        let names: Vec<String> = (0..JOBS).map(|number| format!("job-{number}")).collect();
        let mut instances = Vec::new();
        for host in 1..=size {
            let registry = connect(namespace).await;
            let session = registry.session().id();
            let mut node = Node::on(registry).address([10, 0, 0, host].into());
            for name in &names {
                let job = Job::named(name).unwrap().cron("* * * * * ?").unwrap().shards(SHARDS);
                let sender = sender.clone();
                node = node.job(job.failover(failover), move |shard: Shard| {
                    let result = sender.send((host, shard.run.to_string(), shard.due_at));
                    async move { result.map_err(|_| std::io::Error::other("receiver closed")) }
                });
            }
            instances.push((session, node.start().await.unwrap()));
        }
        let trees = names
            .iter()
            .map(|name| JobTree::new(observer.namespace(), &name.parse().unwrap()).unwrap());
        let pages =
            trees.flat_map(|tree| (0..SHARDS).map(move |shard| tree.ledger_page(shard))).collect();
        Self { instances, observer, pages, attempts }
    }

    /// Waits until nothing runs, every instance had a share of every job, and the last fire was at `earliest` or later.
    async fn wait_until_idle(&self, earliest: Timestamp) -> IdleMoment {
        let waited = tokio::time::timeout(TIMEOUT, async {
            loop {
                if let Some(due_at) =
                    self.last_common_fire().await.filter(|due_at| *due_at >= earliest)
                {
                    let requests_sent = self.requests_sent();
                    if self.last_common_fire().await == Some(due_at) {
                        return IdleMoment { due_at, requests_sent };
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        waited.await.expect("an idle moment within the timeout")
    }

    /// The fire that all shards of all jobs have completed, if it is the same for all and every instance had a share.
    async fn last_common_fire(&self) -> Option<Timestamp> {
        let read = join_all(self.pages.iter().map(|path| self.observer.get(path))).await;
        let mut due = BTreeSet::new();
        let mut owners: Vec<BTreeSet<String>> = Vec::new();
        for (number, node) in read.into_iter().enumerate() {
            let page = LedgerPage::read(&node.unwrap()?.data).unwrap();
            if page.state != LedgerState::Done {
                return None;
            }
            due.insert(page.due_at?);
            if number.is_multiple_of(SHARDS as usize) {
                owners.push(BTreeSet::new());
            }
            owners.last_mut()?.insert(page.holder?.to_string());
        }
        let shared = owners.iter().all(|owners| owners.len() == self.instances.len());
        due.first().copied().filter(|_| shared && due.len() == 1)
    }

    /// Packets the server received from each instance.
    fn requests_sent(&self) -> Vec<u64> {
        let connections = ZOOKEEPER.four_letter("cons");
        let received: BTreeMap<i64, u64> =
            connections.lines().filter_map(parse_connection).collect();
        self.instances.iter().map(|(session, _)| received[&session.0]).collect()
    }
}

/// The session and the packets received, from a line such as ` /127.0.0.1:4[1](queued=0,recved=5,sent=5,sid=0x1,…)`.
fn parse_connection(line: &str) -> Option<(i64, u64)> {
    let field = |name: &str| line.split(['(', ',', ')']).find_map(|part| part.strip_prefix(name));
    let session = u64::from_str_radix(field("sid=0x")?, 16).ok()?;
    Some((session.cast_signed(), field("recved=")?.parse().ok()?))
}

async fn check_requests_per_fire(namespace: &str, size: u8, failover: Failover) {
    let mut cluster = Cluster::start(namespace, size, failover).await;

    let before = cluster.wait_until_idle(Timestamp::UNIX_EPOCH).await;
    let after = cluster.wait_until_idle(before.due_at + SignedDuration::from_secs(SECONDS)).await;
    for (_, instance) in cluster.instances {
        instance.stop().await;
    }

    // On a busy machine a fire may be so late that it is coalesced with the next one, so the runs are counted.
    let mut runs: BTreeMap<u8, BTreeSet<String>> = BTreeMap::new();
    while let Some((host, run, due_at)) = cluster.attempts.recv().await {
        if due_at > before.due_at && due_at <= after.due_at {
            runs.entry(host).or_default().insert(run);
        }
    }
    let fires: Vec<u64> = runs.values().map(|runs| runs.len() as u64).collect();
    assert_eq!(fires.len(), usize::from(size), "every instance ran something: {runs:?}");
    assert!(fires.iter().all(|fires| *fires >= 50), "enough to count: {fires:?}");
    let each: Vec<u64> =
        after.requests_sent.iter().zip(&before.requests_sent).map(|(b, a)| b - a).collect();
    assert!(
        each.iter().zip(&fires).all(|(requests, fires)| *requests <= MAX_REQUESTS_PER_FIRE * fires),
        "{each:?} requests of {size} instances for {fires:?} fires"
    );
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn fire_costs_one_instance_two_requests() {
    check_requests_per_fire("one-waits", 1, Failover::Wait).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn fire_costs_one_instance_two_requests_with_failover() {
    check_requests_per_fire("one-takes-over", 1, Failover::TakeOver).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn fire_costs_each_of_three_instances_two_requests() {
    check_requests_per_fire("three-wait", 3, Failover::Wait).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn fire_costs_each_of_three_instances_two_requests_with_failover() {
    check_requests_per_fire("three-take-over", 3, Failover::TakeOver).await;
}
