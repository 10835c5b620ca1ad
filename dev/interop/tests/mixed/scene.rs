//! A namespace on a ground, who is there, and what can be seen of them.

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
        sharding::{Candidate, Dealer, Situation},
        tree::{JobTree, Part},
    },
    job::{Job, Spelling, Strategy},
    registry::{Path, Registry, ZooKeeperSettings, plant, zookeeper::ZooKeeper as Client},
    runtime::{Clock, SystemClock},
};
use testbed::{Proxy, ZooKeeper};
use tinykeeper::server::{Config, Server};

use crate::{
    peer::{self, Peer},
    record::{PATIENCE, Record},
};

/// How long a session lasts, where a test does not need another.
pub(crate) const SESSION: Duration = Duration::from_secs(6);

/// How long a job may stay assigned to the wrong instances, with no resharding requested, before the request counts as lost. Java's
/// listener sets a request within milliseconds.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// One for all tests; each has a namespace of its own.
static ZOOKEEPER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

/// Where instances meet.
pub(crate) struct Ground {
    address: SocketAddr,
    _server: Option<Server>,
}

impl Ground {
    pub(crate) fn zookeeper() -> Self {
        let address = tokio::task::block_in_place(|| ZOOKEEPER.address());
        Self { address, _server: None }
    }

    pub(crate) async fn tinykeeper() -> Self {
        let server = Server::start(Config::ephemeral()).await.unwrap();
        Self { address: server.address(), _server: Some(server) }
    }
}

pub(crate) struct Scene {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) record: Record,
    address: SocketAddr,
    namespace: String,
    session: Duration,
    logs: PathBuf,
}

impl Scene {
    pub(crate) async fn new(ground: &Ground, namespace: &str) -> Self {
        let name = namespace.parse().unwrap();
        let settings = ZooKeeperSettings::new([ground.address.into()], name)
            .session_timeout(Duration::from_secs(30));
        // One folder for each ground: the tests of both have the same names.
        let logs = Folder::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("interop-{}", ground.address.port()))
            .join(namespace);
        std::fs::create_dir_all(&logs).unwrap();
        Self {
            registry: Arc::new(Client::connect(&settings).await.unwrap()),
            record: Record::new(),
            address: ground.address,
            namespace: namespace.to_owned(),
            session: SESSION,
            logs,
        }
    }

    /// With sessions of another length.
    pub(crate) fn session(mut self, session: Duration) -> Self {
        self.session = session;
        self
    }

    /// One more JVM. All of a machine have one address, that of the machine.
    pub(crate) async fn java(&self, name: &str) -> Peer {
        let line = Proxy::start(self.address).await;
        let command = peer::java(&line.address().to_string(), &self.namespace, self.session);
        self.peer(name, command, line).await
    }

    /// A JVM with 2.1.5, in a namespace of its own.
    pub(crate) async fn old(&self, namespace: &str) -> Peer {
        let line = Proxy::start(self.address).await;
        let command = peer::old(&line.address().to_string(), namespace, self.session);
        self.peer("old", command, line).await
    }

    /// Where the namespace is, for the binary.
    pub(crate) fn url(&self) -> String {
        format!("zookeeper://{}/{}", self.address, self.namespace)
    }

    /// One more Rust process, at 10.0.0.`host`.
    pub(crate) async fn rust(&self, host: u8) -> Peer {
        let (line, address) = (Proxy::start(self.address).await, format!("10.0.0.{host}"));
        let server = line.address().to_string();
        let command = peer::rust(&server, &self.namespace, self.session, &address);
        self.peer(&format!("rust-{host}"), command, line).await
    }

    async fn peer(&self, name: &str, command: tokio::process::Command, line: Proxy) -> Peer {
        let log = self.logs.join(format!("{name}.log"));
        Peer::start(name, command, line, &self.record, &log).await
    }

    pub(crate) fn admin(&self) -> Admin {
        Admin::on(Arc::clone(&self.registry))
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

    pub(crate) async fn is_there(&self, path: &Path) -> bool {
        self.registry.exists(path).await.unwrap().is_some()
    }

    pub(crate) async fn leader(&self, job: &Job) -> Option<String> {
        self.text(&self.tree(job).leader()).await
    }

    pub(crate) async fn owners(&self, job: &Job) -> BTreeMap<u32, String> {
        let tree = self.tree(job);
        let mut owners = BTreeMap::new();
        for item in 0..job.shards.get() {
            if let Some(owner) = self.text(&tree.shard(item, Part::Owner)).await {
                owners.insert(item, owner);
            }
        }
        owners
    }

    /// Waits until the shards are dealt to exactly these, as the job's strategy deals them; who has which.
    pub(crate) async fn dealt(&self, job: &Job, ids: &[&str]) -> BTreeMap<u32, String> {
        let expected = deal(job, ids);
        let tree = self.tree(job);
        self.until(&format!("{} is dealt as {expected:?}", job.name), async || {
            let is_under_way =
                self.is_there(&tree.necessary()).await || self.is_there(&tree.processing()).await;
            !is_under_way && self.owners(job).await == expected
        })
        .await;
        expected
    }

    /// Waits until the shards are assigned to exactly these instances, and repeats a resharding request that a Java leader lost.
    ///
    /// This is for the preparation of a test, where a Java instance joins under a Java leader. That leader reads the list of instances
    /// before it looks at `necessary`, and deletes `necessary` once it has assigned the shards: an instance that joins in between is
    /// left out for good. No Rust instance is there to notice, so the test does what an operator would. A test that checks how Rust
    /// joins or leaves uses [`Scene::dealt`], which only waits.
    pub(crate) async fn assigned(&self, job: &Job, ids: &[&str]) -> BTreeMap<u32, String> {
        let expected = deal(job, ids);
        let tree = self.tree(job);
        let mut wrong_since = None;
        self.until(&format!("{} is assigned as {expected:?}", job.name), async || {
            let is_under_way =
                self.is_there(&tree.necessary()).await || self.is_there(&tree.processing()).await;
            let owners = self.owners(job).await;
            if is_under_way {
                wrong_since = None;
                return false;
            }
            if owners == expected {
                return true;
            }
            let now = SystemClock.monotonic();
            if now.saturating_since(*wrong_since.get_or_insert(now)) > LOST_AFTER {
                eprintln!("{}: Java lost a resharding request: repeated", job.name);
                plant(&*self.registry, &tree.necessary()).await.unwrap();
                wrong_since = None;
            }
            false
        })
        .await;
        expected
    }

    /// Lets instances join a scheduled job one after the other: the next one joins once the shards are assigned to those before it, and
    /// a fire has just begun. Java reshards at the beginning of a fire only, so nobody joins during a resharding. The ids, in order.
    pub(crate) async fn join_in_turn<const N: usize>(
        &self,
        job: &Job,
        peers: [&mut Peer; N],
        lasts: Duration,
    ) -> [String; N] {
        let mut ids: Vec<String> = Vec::new();
        for peer in peers {
            ids.push(peer.joins(job, lasts).await);
            let present: Vec<&str> = ids.iter().map(String::as_str).collect();
            let owners = self.assigned(job, &present).await;
            self.runs_as(job, &owners).await;
        }
        ids.try_into().unwrap()
    }

    /// Lets a Java instance join an idle job as its leader, and waits until its listener has requested a resharding: from then on it
    /// hears of other instances and of triggers in the order in which they come. Without this the trigger may come first. Java would
    /// then request another resharding after the one that the trigger caused, and leave it undone until the next trigger. The id.
    pub(crate) async fn java_leads(&self, java: &mut Peer, job: &Job, lasts: Duration) -> String {
        let id = java.joins(job, lasts).await;
        let necessary = self.tree(job).necessary();
        self.until("Java requests a resharding", async || self.is_there(&necessary).await).await;
        assert_eq!(self.leader(job).await.as_ref(), Some(&id));
        id
    }

    /// Waits until every shard has begun anew, on its owner.
    pub(crate) async fn runs_as(&self, job: &Job, owners: &BTreeMap<u32, String>) {
        let before = self.record.runs(job.name.as_str()).len();
        self.record
            .until(&format!("{} runs on {owners:?}", job.name), job.name.as_str(), |runs| {
                let is_on = |(item, owner): (&u32, &String)| {
                    runs[before..].iter().any(|run| run.item == *item && run.instance == *owner)
                };
                owners.iter().all(is_on).then_some(())
            })
            .await;
    }

    /// Waits until nothing is left of what went wrong: nobody runs, nothing waits to be taken over, no latch is held.
    pub(crate) async fn is_at_peace(&self, job: &Job) {
        let tree = self.tree(job);
        self.until(&format!("{} is at peace", job.name), async || {
            for item in 0..job.shards.get() {
                for part in [Part::Running, Part::Failover, Part::Failovering] {
                    if self.is_there(&tree.shard(item, part)).await {
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

    pub(crate) async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while !is_so().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        if waited.await.is_err() {
            let said: Vec<String> = self
                .record
                .all()
                .iter()
                .map(|said| format!("{}: {}", said.peer, said.words))
                .collect();
            let last = said[said.len().saturating_sub(30)..].join("\n");
            panic!("{what}: not in {PATIENCE:?}\n{}\nlast heard:\n{last}", self.picture().await);
        }
    }

    /// All nodes of the namespace, for whoever reads why a test failed.
    async fn picture(&self) -> String {
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

/// Who gets which shard.
pub(crate) fn deal(job: &Job, ids: &[&str]) -> BTreeMap<u32, String> {
    deal_at(job, ids, 0)
}

/// Who gets which shard at this time, in milliseconds, where a strategy looks at it.
pub(crate) fn deal_at(job: &Job, ids: &[&str], now_ms: i64) -> BTreeMap<u32, String> {
    let candidates: Vec<Candidate> = ids.iter().map(|id| Candidate::new(*id)).collect();
    let situation = Situation {
        job: job.name.as_str(),
        total: job.shards.get(),
        candidates: &candidates,
        owners: &BTreeMap::new(),
        now_ms,
    };
    (0..).zip(Strategy::of(job).deal(&situation)).collect()
}

/// A job with this schedule, in words that Java of this version reads.
pub(crate) fn job(name: &str, cron: &str, shards: u32) -> Job {
    let mut job = Job::named(name).unwrap().cron(cron).unwrap().shards(shards);
    job.spelling = Spelling::UpTo304;
    job
}

/// A job that is due in another life only, so that it runs when somebody asks for it.
pub(crate) fn idle(name: &str, shards: u32) -> Job {
    job(name, "0 0 2 1 1 ? 2099", shards)
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
