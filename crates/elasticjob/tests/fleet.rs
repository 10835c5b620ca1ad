//! Many instances of many jobs, restarted one after the other: what each membership change costs the registry.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use elasticjob::{
    job::{Job, Shard},
    node::{Node, RunningNode},
    registry::{
        ChildrenWatch, Committed, Create, Error, Limits, Namespace, Node as RegistryNode, Op, Path,
        Registry, Session, Stat, Watch,
    },
    testing::Cluster,
};

const NODES: usize = 10;
const JOBS: usize = 20;
const SHARDS: usize = 10;

/// What was sent to the registry, by all nodes.
#[derive(Debug, Default, Clone)]
struct Requests {
    reads: usize,
    writes: usize,
    watches: usize,
    /// Entries in the latches of elections, refused ones too.
    latch_entries: usize,
    /// Assignments that were begun, by job.
    assignments: BTreeMap<String, usize>,
}

impl Requests {
    fn total(&self) -> usize {
        self.reads + self.writes + self.watches
    }
}

#[derive(Clone, Default)]
struct Counter(Arc<Mutex<Requests>>);

impl Counter {
    fn count(&self, note: impl FnOnce(&mut Requests)) {
        note(&mut self.0.lock().unwrap());
    }

    fn take(&self) -> Requests {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct CountingRegistry {
    registry: Arc<dyn Registry>,
    counter: Counter,
}

impl fmt::Debug for CountingRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.registry.fmt(f)
    }
}

fn note_write(requests: &mut Requests, ops: &[Op]) {
    requests.writes += 1;
    for op in ops {
        let Op::Create(Create { path, .. }) = op else { continue };
        let text = path.as_str();
        requests.latch_entries += usize::from(text.contains("/leader/election/latch/"));
        // The first instance of a job assigns its shards in joining, without this node.
        if let Some(job) = text.strip_suffix("/leader/sharding/processing") {
            *requests.assignments.entry(job.to_owned()).or_default() += 1;
        }
    }
}

#[async_trait]
impl Registry for CountingRegistry {
    fn namespace(&self) -> &Namespace {
        self.registry.namespace()
    }

    fn session(&self) -> Session {
        self.registry.session()
    }

    fn limits(&self) -> Limits {
        self.registry.limits()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.counter.count(|requests| note_write(requests, &ops));
        self.registry.multi(ops).await
    }

    async fn get(&self, path: &Path) -> Result<Option<RegistryNode>, Error> {
        self.counter.count(|requests| requests.reads += 1);
        self.registry.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.counter.count(|requests| requests.reads += 1);
        self.registry.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.counter.count(|requests| requests.reads += 1);
        self.registry.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.counter.count(|requests| requests.reads += 1);
        self.registry.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        self.counter.count(|requests| requests.watches += 1);
        self.registry.watch(prefix).await
    }

    async fn watch_children(&self, parent: &Path) -> Result<ChildrenWatch, Error> {
        self.counter.count(|requests| requests.watches += 1);
        self.registry.watch_children(parent).await
    }

    async fn close(&self) {
        self.registry.close().await;
    }
}

struct Fleet {
    cluster: Cluster,
    counter: Counter,
    nodes: Vec<Option<RunningNode>>,
    /// Requests of each membership change.
    changes: Vec<Requests>,
}

impl Fleet {
    async fn start() -> Self {
        let cluster = Cluster::at("2026-11-15T06:00:00Z").await;
        let mut fleet =
            Self { cluster, counter: Counter::default(), nodes: Vec::new(), changes: Vec::new() };
        for _ in 0..NODES {
            let node = fleet.node().await;
            fleet.nodes.push(Some(node));
        }
        fleet
    }

    async fn node(&mut self) -> RunningNode {
        let counter = self.counter.clone();
        let build = |node: Node| {
            let node = node.wrap_registry(move |registry| {
                Arc::new(CountingRegistry { registry, counter: counter.clone() })
            });
            (0..JOBS).fold(node, |node, number| {
                let job =
                    Job::named(&format!("job-{number}")).unwrap().cron("0 0 3 1 1 ?").unwrap();
                node.job(job.shards(SHARDS as u32), |_: Shard| async {
                    Ok::<(), std::io::Error>(())
                })
            })
        };
        self.cluster.node(build).await.unwrap()
    }

    async fn settle(&mut self) {
        self.cluster.settle().await;
        self.changes.push(self.counter.take());
    }

    /// Every job assigns its shards at most once for a membership change, and each instance sends a limited number of requests for each job.
    fn check(&self) {
        for requests in &self.changes {
            let most = requests.assignments.values().max().copied().unwrap_or(0);
            assert!(most <= 1, "{most} assignments of a job after one change: {requests:?}");
            // One candidate for each job; its first entry is refused if there is no latch yet.
            assert!(requests.latch_entries <= 2 * JOBS, "{requests:?}");
            // Each instance reads the leader, the owner of each shard that has moved and, if it may have missed a fire, its page; it lists the
            // triggers if it owns more shards.
            let each = requests.total().div_ceil(NODES * JOBS);
            assert!(each <= 2 * SHARDS + 4, "{each} requests: {requests:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rolling_restart_assigns_once_for_each_job_and_membership_change() {
    let mut fleet = Fleet::start().await;
    fleet.counter.take();

    for number in 0..NODES {
        fleet.nodes[number].take().unwrap().stop().await;
        fleet.settle().await;
        let node = fleet.node().await;
        fleet.nodes[number] = Some(node);
        fleet.settle().await;
    }

    fleet.check();
}

#[tokio::test(start_paused = true)]
async fn crashes_one_after_the_other_assign_once_for_each_job_and_change() {
    let mut fleet = Fleet::start().await;
    fleet.counter.take();

    for number in 0..NODES {
        drop(fleet.nodes[number].take());
        fleet.settle().await;
        let node = fleet.node().await;
        fleet.nodes[number] = Some(node);
        fleet.settle().await;
    }

    fleet.check();
}
