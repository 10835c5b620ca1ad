//! Workers as separate processes that start and stop, with a job that fires every second, on a real ZooKeeper.
//!
//! A worker is this test binary, started again to run only the test [`worker_process`] with [`REGISTRY`] set; it prints its events to stdout.

mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    coordination::{
        sharding::{Candidate, ShardingInput, ShardingStrategy},
        tree::JobTree,
    },
    job::{Job, Strategy},
    node::Node,
    registry::{ExpectedVersion, Registry, ZooKeeperSettings, zookeeper},
};
use testbed::ZooKeeper;
use tokio::sync::mpsc;
use worker::{REGISTRY, ShardEvent, Step, Worker};

const TIMEOUT: Duration = Duration::from_secs(30);
/// How long before a fire an instance must have joined to be sure of a share in it.
const JOIN_NOTICE_MS: i64 = 200;

fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("* * * * * ?").unwrap().shards(shards)
}

/// The entry point of a worker process; without [`REGISTRY`] it does nothing.
#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn worker_process() {
    let Ok(url) = std::env::var(REGISTRY) else { return };
    Node::join(&url).job(job(9), worker::handler).run().await.unwrap();
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn every_shard_runs_once_while_processes_come_and_go() {
    let mut cluster = Cluster::new().await;

    // Nine shards over three instances: three each.
    for _ in 0..3 {
        cluster.start();
    }
    let nine = cluster.wait_for_run(9, 3).await;
    assert_eq!(sizes(&nine), [3, 3, 3]);
    assert_eq!(nine, expected_shares(9, &nine));

    // The shard count changes to eight from outside: the strategy decides.
    cluster.configure(8).await;
    let eight = cluster.wait_for_run(8, 3).await;
    assert_eq!(eight, expected_shares(8, &eight));

    // A fourth instance has its share in its first fire.
    cluster.start();
    let four = cluster.wait_for_run(8, 4).await;
    assert_eq!(four, expected_shares(8, &four));
    cluster.assert_new_instances_took_part_at_once().await;

    // The leader is asked to stop while it runs shards.
    let leader = cluster.leader().await;
    let run =
        cluster.wait_for(|event| event.step == Step::Started && event.instance == leader).await.run;
    let ended = cluster.workers.iter_mut().find(|worker| worker.is(&leader)).unwrap().stop().await;
    assert!(ended.success(), "{ended}");
    cluster.wait_for(|event| event.step == Step::Ended && event.run > run).await;
    let own_events = |event: &&ShardEvent| event.instance == leader;
    let events_of =
        |step| cluster.events.iter().filter(own_events).filter(|event| event.step == step).count();
    assert_eq!(events_of(Step::Started), events_of(Step::Ended), "running shards finish");
    let three = cluster.wait_for_run(8, 3).await;
    assert_eq!(three, expected_shares(8, &three));

    cluster.stop().await;
    cluster.assert_every_shard_of_every_fire_ran_once();
}

/// Which shards each instance ran.
type Shares = BTreeMap<String, BTreeSet<u32>>;

struct Cluster {
    server: ZooKeeper,
    observer: Arc<dyn Registry>,
    tree: JobTree,
    workers: Vec<Worker>,
    /// Events of all workers, in the order of their arrival.
    events: Vec<ShardEvent>,
    sender: mpsc::UnboundedSender<ShardEvent>,
    receiver: mpsc::UnboundedReceiver<ShardEvent>,
    /// Due time of the last run of which all shards were seen.
    last_complete_run: i64,
}

impl Cluster {
    async fn new() -> Self {
        let server = ZooKeeper::start();
        let settings =
            ZooKeeperSettings::new([server.address().into()], "processes".parse().unwrap());
        let observer = zookeeper::ZooKeeper::connect(&settings).await.unwrap();
        let tree = JobTree::new(observer.namespace(), &"settle".parse().unwrap()).unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        let (workers, events) = (Vec::new(), Vec::new());
        Self {
            server,
            observer: Arc::new(observer),
            tree,
            workers,
            events,
            sender,
            receiver,
            last_complete_run: 0,
        }
    }

    fn start(&mut self) {
        let url = format!("zookeeper://{}/processes", self.server.address());
        self.workers.push(Worker::start(&url, self.sender.clone()));
    }

    async fn configure(&self, shards: u32) {
        let config = self.tree.config();
        self.observer
            .set(&config, job(shards).to_yaml().into(), ExpectedVersion::Any)
            .await
            .unwrap();
    }

    async fn leader(&self) -> String {
        let leader =
            self.observer.get(&self.tree.leader()).await.unwrap().expect("there is a leader");
        String::from_utf8(leader.data.to_vec()).unwrap()
    }

    /// Waits for the next event that matches.
    async fn wait_for(&mut self, matches: impl Fn(&ShardEvent) -> bool) -> ShardEvent {
        let waited = tokio::time::timeout(TIMEOUT, async {
            loop {
                let event = self.receiver.recv().await.expect("the cluster keeps a sender");
                self.events.push(event.clone());
                if matches(&event) {
                    return event;
                }
            }
        });
        waited.await.unwrap_or_else(|_| panic!("timed out; last event: {:?}", self.events.last()))
    }

    /// Waits for the end of the first run of `total` shards over this many instances; returns which instance ran which shards.
    async fn wait_for_run(&mut self, total: u32, instances: usize) -> Shares {
        loop {
            let run = self.wait_for(|event| event.step == Step::Ended).await.run;
            let events_of = |step: Step| {
                self.events.iter().filter(move |event| event.run == run && event.step == step)
            };
            let mut shares = Shares::new();
            for event in events_of(Step::Started).filter(|event| event.total == total) {
                shares.entry(event.instance.clone()).or_default().insert(event.item);
            }
            if events_of(Step::Ended).count() == total as usize && shares.len() == instances {
                self.last_complete_run = run;
                return shares;
            }
        }
    }

    /// Every current instance had a share in the first fire after it joined, except for fires within the time that sharding takes.
    async fn assert_new_instances_took_part_at_once(&self) {
        for instance in self.observer.children(&self.tree.instances()).await.unwrap().unwrap() {
            let node = self.tree.instance(&instance);
            let joined = self.observer.get(&node).await.unwrap().unwrap().stat.changed_at_ms;
            let after_join = |event: &&ShardEvent| event.run >= joined + JOIN_NOTICE_MS;
            let first = self.events.iter().filter(after_join).map(|event| event.run).min();
            let own_events =
                self.events.iter().filter(after_join).filter(|event| event.instance == instance);
            assert_eq!(
                own_events.map(|event| event.run).min(),
                first,
                "{instance} joined at {joined}"
            );
        }
    }

    /// Asks all workers to stop, right after a run so that the last run is complete.
    async fn stop(&mut self) {
        for worker in &mut self.workers {
            let ended = worker.stop().await;
            assert!(ended.success(), "{ended}");
        }
        while let Ok(event) = self.receiver.try_recv() {
            self.events.push(event);
        }
    }

    fn assert_every_shard_of_every_fire_ran_once(&self) {
        let started = || self.events.iter().filter(|event| event.step == Step::Started);
        let mut runs: BTreeMap<i64, (u32, BTreeSet<u32>)> = BTreeMap::new();
        for event in started() {
            let (_, items) = runs.entry(event.run).or_insert((event.total, BTreeSet::new()));
            assert!(items.insert(event.item), "shard {} of {} ran twice", event.item, event.run);
        }
        let first = *runs.keys().next().unwrap();
        for due_at in (first..=self.last_complete_run).step_by(1_000) {
            let (total, items) = runs.get(&due_at).unwrap_or_else(|| panic!("{due_at} missed"));
            assert!(items.iter().copied().eq(0..*total), "{due_at}: {items:?} of {total}");
        }
    }
}

fn sizes(shares: &Shares) -> Vec<usize> {
    shares.values().map(BTreeSet::len).collect()
}

/// The shards that the strategy assigns to each of these instances.
fn expected_shares(total: u32, instances: &Shares) -> Shares {
    let candidates: Vec<Candidate> = instances.keys().map(Candidate::new).collect();
    let owners = BTreeMap::new();
    let situation =
        ShardingInput { job: "settle", total, candidates: &candidates, owners: &owners, now_ms: 0 };
    let mut shares = Shares::new();
    for (item, owner) in (0..total).zip(Strategy::of(&job(total)).assign(&situation)) {
        shares.entry(owner).or_default().insert(item);
    }
    shares
}
