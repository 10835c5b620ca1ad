//! Workers as they are in the world: processes of their own that come and go, on a real ZooKeeper, every second.
//!
//! A worker is this test binary, started again for the one test [`work`] with [`REGISTRY`] set; it tells on stdout what it does.

mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    coordination::{
        sharding::{Candidate, Dealer, Situation},
        tree::JobTree,
    },
    job::{Job, Strategy},
    node::Node,
    registry::{Expected, Registry, ZooKeeperSettings, zookeeper},
};
use testbed::ZooKeeper;
use tokio::sync::mpsc;
use worker::{REGISTRY, Said, Step, Worker};

const PATIENCE: Duration = Duration::from_secs(30);
/// How long before a fire somebody has to have joined to be sure of a share in it.
const NOTICE_MS: i64 = 200;

fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("* * * * * ?").unwrap().shards(shards)
}

/// What a worker does; a test only by name.
#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn work() {
    let Ok(url) = std::env::var(REGISTRY) else { return };
    Node::join(&url).job(job(9), worker::handler).run().await.unwrap();
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn every_shard_runs_once_while_processes_come_and_go() {
    let mut cluster = Cluster::new().await;

    // Nine shards over three: three each.
    for _ in 0..3 {
        cluster.start();
    }
    let nine = cluster.run_over(9, 3).await;
    assert_eq!(sizes(&nine), [3, 3, 3]);
    assert_eq!(nine, dealt(9, &nine));

    // Eight, said by somebody else: as the strategy says.
    cluster.configure(8).await;
    let eight = cluster.run_over(8, 3).await;
    assert_eq!(eight, dealt(8, &eight));

    // A fourth has its share in its first fire.
    cluster.start();
    let four = cluster.run_over(8, 4).await;
    assert_eq!(four, dealt(8, &four));
    cluster.assert_nobody_waited_for_a_share().await;

    // One is asked to stop while it runs something, and it is the one who leads.
    let leader = cluster.leader().await;
    let run = cluster.hear(|said| said.step == Step::Started && said.instance == leader).await.run;
    let ended = cluster.workers.iter_mut().find(|worker| worker.is(&leader)).unwrap().stop().await;
    assert!(ended.success(), "{ended}");
    cluster.hear(|said| said.step == Step::Ended && said.run > run).await;
    let mine = |said: &&Said| said.instance == leader;
    let of = |step| cluster.said.iter().filter(mine).filter(|said| said.step == step).count();
    assert_eq!(of(Step::Started), of(Step::Ended), "what ran was let finish");
    let three = cluster.run_over(8, 3).await;
    assert_eq!(three, dealt(8, &three));

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
    /// Everything any worker said, in the order it was heard.
    said: Vec<Said>,
    tell: mpsc::UnboundedSender<Said>,
    told: mpsc::UnboundedReceiver<Said>,
    /// The last run that was seen whole.
    whole: i64,
}

impl Cluster {
    async fn new() -> Self {
        let server = ZooKeeper::start();
        let settings =
            ZooKeeperSettings::new([server.address().into()], "processes".parse().unwrap());
        let observer = zookeeper::ZooKeeper::connect(&settings).await.unwrap();
        let tree = JobTree::new(observer.namespace(), &"settle".parse().unwrap()).unwrap();
        let (tell, told) = mpsc::unbounded_channel();
        let (workers, said) = (Vec::new(), Vec::new());
        Self { server, observer: Arc::new(observer), tree, workers, said, tell, told, whole: 0 }
    }

    fn start(&mut self) {
        let url = format!("zookeeper://{}/processes", self.server.address());
        self.workers.push(Worker::start(&url, self.tell.clone()));
    }

    async fn configure(&self, shards: u32) {
        let config = self.tree.config();
        self.observer.set(&config, job(shards).to_yaml().into(), Expected::Any).await.unwrap();
    }

    async fn leader(&self) -> String {
        let leader = self.observer.get(&self.tree.leader()).await.unwrap().expect("somebody leads");
        String::from_utf8(leader.data.to_vec()).unwrap()
    }

    /// The next thing said that is like this.
    async fn hear(&mut self, like: impl Fn(&Said) -> bool) -> Said {
        let heard = tokio::time::timeout(PATIENCE, async {
            loop {
                let said = self.told.recv().await.expect("the cluster holds an end itself");
                self.said.push(said.clone());
                if like(&said) {
                    return said;
                }
            }
        });
        heard.await.unwrap_or_else(|_| panic!("not heard in time; last: {:?}", self.said.last()))
    }

    /// Waits for the end of the first run of `total` shards over this many instances; who ran what.
    async fn run_over(&mut self, total: u32, instances: usize) -> Shares {
        loop {
            let run = self.hear(|said| said.step == Step::Ended).await.run;
            let of = |step: Step| {
                self.said.iter().filter(move |said| said.run == run && said.step == step)
            };
            let mut shares = Shares::new();
            for said in of(Step::Started).filter(|said| said.total == total) {
                shares.entry(said.instance.clone()).or_default().insert(said.item);
            }
            if of(Step::Ended).count() == total as usize && shares.len() == instances {
                self.whole = run;
                return shares;
            }
        }
    }

    /// Everybody who is there had a share in every fire since, but for the moment it takes to deal.
    async fn assert_nobody_waited_for_a_share(&self) {
        for instance in self.observer.children(&self.tree.instances()).await.unwrap().unwrap() {
            let node = self.tree.instance(&instance);
            let joined = self.observer.get(&node).await.unwrap().unwrap().stat.changed_at_ms;
            let after = |said: &&Said| said.run >= joined + NOTICE_MS;
            let first = self.said.iter().filter(after).map(|said| said.run).min();
            let mine = self.said.iter().filter(after).filter(|said| said.instance == instance);
            assert_eq!(mine.map(|said| said.run).min(), first, "{instance} joined at {joined}");
        }
    }

    /// Asks all to stop, right after a fire so that the last one is whole.
    async fn stop(&mut self) {
        for worker in &mut self.workers {
            let ended = worker.stop().await;
            assert!(ended.success(), "{ended}");
        }
        while let Ok(said) = self.told.try_recv() {
            self.said.push(said);
        }
    }

    fn assert_every_shard_of_every_fire_ran_once(&self) {
        let started = || self.said.iter().filter(|said| said.step == Step::Started);
        let mut runs: BTreeMap<i64, (u32, BTreeSet<u32>)> = BTreeMap::new();
        for said in started() {
            let (_, items) = runs.entry(said.run).or_insert((said.total, BTreeSet::new()));
            assert!(items.insert(said.item), "shard {} of {} ran twice", said.item, said.run);
        }
        let first = *runs.keys().next().unwrap();
        for due_at in (first..=self.whole).step_by(1_000) {
            let (total, items) = runs.get(&due_at).unwrap_or_else(|| panic!("{due_at} missed"));
            assert!(items.iter().copied().eq(0..*total), "{due_at}: {items:?} of {total}");
        }
    }
}

fn sizes(shares: &Shares) -> Vec<usize> {
    shares.values().map(BTreeSet::len).collect()
}

/// What the strategy gives to each of these instances.
fn dealt(total: u32, instances: &Shares) -> Shares {
    let candidates: Vec<Candidate> = instances.keys().map(Candidate::new).collect();
    let owners = BTreeMap::new();
    let situation =
        Situation { job: "settle", total, candidates: &candidates, owners: &owners, now_ms: 0 };
    let mut shares = Shares::new();
    for (item, owner) in (0..total).zip(Strategy::of(&job(total)).deal(&situation)) {
        shares.entry(owner).or_default().insert(item);
    }
    shares
}
