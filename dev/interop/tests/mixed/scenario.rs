//! The fixture of the scenarios: a namespace in a registry, the processes in it, and ways to wait for what they do.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::{Path as Folder, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use elasticjob::{
    admin::Admin,
    coordination::{
        sharding::{Candidate, ShardingInput, ShardingStrategy},
        tree::{JobTree, ShardNode},
    },
    job::{Job, KeySpelling, Strategy},
    registry::{Path, Registry, ZooKeeperSettings, ensure_path, zookeeper::ZooKeeper as Client},
    runtime::{Clock, SystemClock},
};
use testbed::{Proxy, ZooKeeper};
use tinykeeper::server::{Config, Server};

use crate::{
    event_log::{EventLog, TIMEOUT},
    peer::{self, Peer},
};

/// The session timeout, unless a test needs another.
pub(crate) const SESSION: Duration = Duration::from_secs(6);

/// How long a job may stay assigned to the wrong instances, with no resharding requested, before the request counts as lost. Java's
/// listener sets a request within milliseconds.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// Shared by all tests; each uses its own namespace.
static ZOOKEEPER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

/// The server of a scenario: ZooKeeper or tinykeeper.
pub(crate) struct TestRegistry {
    address: SocketAddr,
    _server: Option<Server>,
}

impl TestRegistry {
    pub(crate) fn zookeeper() -> Self {
        let address = tokio::task::block_in_place(|| ZOOKEEPER.address());
        Self { address, _server: None }
    }

    pub(crate) async fn tinykeeper() -> Self {
        let server = Server::start(Config::in_memory()).await.unwrap();
        Self { address: server.address(), _server: Some(server) }
    }
}

pub(crate) struct Scenario {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) events: EventLog,
    address: SocketAddr,
    namespace: String,
    session: Duration,
    logs: PathBuf,
}

impl Scenario {
    pub(crate) async fn new(server: &TestRegistry, namespace: &str) -> Self {
        let name = namespace.parse().unwrap();
        let settings = ZooKeeperSettings::new([server.address.into()], name)
            .session_timeout(Duration::from_secs(30));
        // One folder per server: the tests on both servers have the same names.
        let logs = Folder::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("interop-{}", server.address.port()))
            .join(namespace);
        std::fs::create_dir_all(&logs).unwrap();
        Self {
            registry: Arc::new(Client::connect(&settings).await.unwrap()),
            events: EventLog::new(),
            address: server.address,
            namespace: namespace.to_owned(),
            session: SESSION,
            logs,
        }
    }

    /// Sets the session timeout.
    pub(crate) fn session(mut self, session: Duration) -> Self {
        self.session = session;
        self
    }

    /// Starts a JVM. All JVMs of a machine have the same address, that of the machine.
    pub(crate) async fn java(&self, name: &str) -> Peer {
        let proxy = Proxy::start(self.address).await;
        let command = peer::java(&proxy.address().to_string(), &self.namespace, self.session);
        self.peer(name, command, proxy).await
    }

    /// Starts a JVM with elastic-job 2.1.5, in another namespace.
    pub(crate) async fn java_2_1_5(&self, namespace: &str) -> Peer {
        let proxy = Proxy::start(self.address).await;
        let command = peer::java_2_1_5(&proxy.address().to_string(), namespace, self.session);
        self.peer("old", command, proxy).await
    }

    /// The registry URL, for the command line.
    pub(crate) fn url(&self) -> String {
        format!("zookeeper://{}/{}", self.address, self.namespace)
    }

    /// Starts a Rust process, with the address 10.0.0.`host`.
    pub(crate) async fn rust(&self, host: u8) -> Peer {
        let (proxy, address) = (Proxy::start(self.address).await, format!("10.0.0.{host}"));
        let server = proxy.address().to_string();
        let command = peer::rust(&server, &self.namespace, self.session, &address);
        self.peer(&format!("rust-{host}"), command, proxy).await
    }

    async fn peer(&self, name: &str, command: tokio::process::Command, proxy: Proxy) -> Peer {
        let log = self.logs.join(format!("{name}.log"));
        Peer::start(name, command, proxy, &self.events, &log).await
    }

    pub(crate) fn admin(&self) -> Admin {
        Admin::new(Arc::clone(&self.registry))
    }

    pub(crate) fn tree(&self, job: &Job) -> JobTree {
        JobTree::new(self.registry.namespace(), &job.name).unwrap()
    }

    pub(crate) async fn text(&self, path: &Path) -> Option<String> {
        let node = self.registry.get(path).await.unwrap()?;
        Some(String::from_utf8(node.data.to_vec()).unwrap())
    }

    pub(crate) async fn children(&self, path: &Path) -> BTreeSet<String> {
        self.registry.children(path).await.unwrap().unwrap_or_default().into_iter().collect()
    }

    pub(crate) async fn exists(&self, path: &Path) -> bool {
        self.registry.exists(path).await.unwrap().is_some()
    }

    pub(crate) async fn leader(&self, job: &Job) -> Option<String> {
        self.text(&self.tree(job).leader()).await
    }

    pub(crate) async fn owners(&self, job: &Job) -> BTreeMap<u32, String> {
        let tree = self.tree(job);
        let mut owners = BTreeMap::new();
        for item in 0..job.shards.get() {
            if let Some(owner) = self.text(&tree.shard(item, ShardNode::Owner)).await {
                owners.insert(item, owner);
            }
        }
        owners
    }

    /// Waits until the shards are assigned to exactly these instances, as the job's strategy assigns them. Returns the owners.
    pub(crate) async fn wait_until_assigned(
        &self,
        job: &Job,
        ids: &[&str],
    ) -> BTreeMap<u32, String> {
        let expected = expected_owners(job, ids);
        let tree = self.tree(job);
        self.until(&format!("{} is assigned as {expected:?}", job.name), async || {
            let is_resharding =
                self.exists(&tree.necessary()).await || self.exists(&tree.processing()).await;
            !is_resharding && self.owners(job).await == expected
        })
        .await;
        expected
    }

    /// Waits until the shards are assigned to exactly these instances, and repeats a resharding request that a Java leader lost.
    ///
    /// This is for the preparation of a test, where a Java instance joins under a Java leader. That leader reads the list of instances
    /// before it reads `necessary`, and deletes `necessary` once it has assigned the shards: an instance that joins in between
    /// never gets shards. No Rust instance is there to notice, so the test does what an operator would do. A test that checks how Rust
    /// joins or leaves uses [`Scenario::wait_until_assigned`], which only waits.
    pub(crate) async fn wait_until_assigned_by_java(
        &self,
        job: &Job,
        ids: &[&str],
    ) -> BTreeMap<u32, String> {
        let expected = expected_owners(job, ids);
        let tree = self.tree(job);
        let mut wrong_since = None;
        self.until(&format!("{} is assigned as {expected:?}", job.name), async || {
            let is_resharding =
                self.exists(&tree.necessary()).await || self.exists(&tree.processing()).await;
            let owners = self.owners(job).await;
            if is_resharding {
                wrong_since = None;
                return false;
            }
            if owners == expected {
                return true;
            }
            let now = SystemClock.monotonic();
            if now.saturating_since(*wrong_since.get_or_insert(now)) > LOST_AFTER {
                eprintln!("{}: Java lost a resharding request: repeated", job.name);
                ensure_path(&*self.registry, &tree.necessary()).await.unwrap();
                wrong_since = None;
            }
            false
        })
        .await;
        expected
    }

    /// Lets instances join a scheduled job one after the other: the next one joins once the shards are assigned to those before it, and a fire has
    /// just started. Java reshards only at the beginning of a fire, so no instance joins during a resharding. Returns the instance ids, in order.
    pub(crate) async fn join_in_turn<const N: usize>(
        &self,
        job: &Job,
        peers: [&mut Peer; N],
        duration: Duration,
    ) -> [String; N] {
        let mut ids: Vec<String> = Vec::new();
        for peer in peers {
            ids.push(peer.join(job, duration).await);
            let present: Vec<&str> = ids.iter().map(String::as_str).collect();
            let owners = self.wait_until_assigned_by_java(job, &present).await;
            self.wait_until_owners_run(job, &owners).await;
        }
        ids.try_into().unwrap()
    }

    /// Lets a Java instance join an idle job as its leader, and waits until its listener has requested a resharding: from then on it
    /// receives notifications of instances and triggers in order. Without this the trigger may come first. Java would then request another resharding
    /// after the one that the trigger caused, and not perform it until the next trigger. Returns the instance id.
    pub(crate) async fn join_java_as_leader(
        &self,
        java: &mut Peer,
        job: &Job,
        duration: Duration,
    ) -> String {
        let id = java.join(job, duration).await;
        let necessary = self.tree(job).necessary();
        self.until("Java requests a resharding", async || self.exists(&necessary).await).await;
        assert_eq!(self.leader(job).await.as_ref(), Some(&id));
        id
    }

    /// Waits until every shard has started again, on its owner.
    pub(crate) async fn wait_until_owners_run(&self, job: &Job, owners: &BTreeMap<u32, String>) {
        let before = self.events.executions(job.name.as_str()).len();
        self.events
            .until(&format!("{} runs on {owners:?}", job.name), job.name.as_str(), |executions| {
                let is_on = |(item, owner): (&u32, &String)| {
                    executions[before..]
                        .iter()
                        .any(|execution| execution.item == *item && execution.instance == *owner)
                };
                owners.iter().all(is_on).then_some(())
            })
            .await;
    }

    /// Waits until no shard runs, none is flagged for failover and no latch is held.
    pub(crate) async fn wait_until_quiescent(&self, job: &Job) {
        let tree = self.tree(job);
        self.until(&format!("{} is quiescent", job.name), async || {
            for item in 0..job.shards.get() {
                for part in [ShardNode::Running, ShardNode::Failover, ShardNode::Failovering] {
                    if self.exists(&tree.shard(item, part)).await {
                        return false;
                    }
                }
            }
            for path in [tree.failover_items(), tree.failover_latch(), tree.election_latch()] {
                if !self.children(&path).await.is_empty() {
                    return false;
                }
            }
            true
        })
        .await;
    }

    pub(crate) async fn until(&self, expectation: &str, mut check: impl AsyncFnMut() -> bool) {
        let waited = tokio::time::timeout(TIMEOUT, async {
            while !check().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        if waited.await.is_err() {
            let events: Vec<String> = self
                .events
                .all()
                .iter()
                .map(|event| format!("{}: {}", event.peer, event.fields))
                .collect();
            let last = events[events.len().saturating_sub(30)..].join("\n");
            panic!(
                "{expectation}: not within {TIMEOUT:?}\n{}\nlast events:\n{last}",
                self.dump_tree().await
            );
        }
    }

    /// All nodes of the namespace, for the report of a failed test.
    async fn dump_tree(&self) -> String {
        let mut lines = Vec::new();
        let mut paths = vec![self.registry.namespace().path().clone()];
        while let Some(path) = paths.pop() {
            let text = self.text(&path).await.unwrap_or_default();
            lines.push(format!("{path} {text:?}"));
            for child in self.children(&path).await {
                paths.push(path.join(child).unwrap());
            }
        }
        lines.sort();
        lines.join("\n")
    }
}

/// The owners that the strategy of the job assigns.
pub(crate) fn expected_owners(job: &Job, ids: &[&str]) -> BTreeMap<u32, String> {
    expected_owners_at(job, ids, 0)
}

/// The owners that the strategy of the job assigns at a time in milliseconds, if it depends on the time.
pub(crate) fn expected_owners_at(job: &Job, ids: &[&str], now_ms: i64) -> BTreeMap<u32, String> {
    let candidates: Vec<Candidate> = ids.iter().map(|id| Candidate::new(*id)).collect();
    let situation = ShardingInput {
        job: job.name.as_str(),
        total: job.shards.get(),
        candidates: &candidates,
        owners: &BTreeMap::new(),
        now_ms,
    };
    (0..).zip(Strategy::of(job).assign(&situation)).collect()
}

/// A job with this schedule, in the spelling that Java ElasticJob 3.0.4 reads.
pub(crate) fn job(name: &str, cron: &str, shards: u32) -> Job {
    let mut job = Job::named(name).unwrap().cron(cron).unwrap().shards(shards);
    job.spelling = KeySpelling::UpTo304;
    job
}

/// A job whose only fire is in 2099, so that it runs only when it is triggered.
pub(crate) fn idle(name: &str, shards: u32) -> Job {
    job(name, "0 0 2 1 1 ? 2099", shards)
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
