//! The environment of the tests: a memory registry, a manual clock, connections that can be cut or delayed, Java instances.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use elasticjob::{
    coordination::tree::{JobTree, ShardNode},
    job::{Fire, Job},
    registry::{
        Committed, Create, Error, Event, ExpectedVersion, Limits, Namespace, Node, Op, Path,
        Registry, Session, Stat, Watch, WatchSource, ensure_path,
        memory::{Link, MemoryRegistry, MemoryServer},
    },
    runtime::Clock,
    testing::ManualClock,
};
use tokio::sync::{oneshot, watch};

/// Seconds after which every member has rechecked the whole state; a member does so about once a minute.
pub(crate) const RECHECK_SECONDS: u64 = 80;

/// More refused writes than this get no answer, so that a loop that never waits ends.
const MAX_REFUSALS: usize = 100;

/// One job in one registry, and the clock that all instances use.
pub(crate) struct Cluster {
    pub(crate) server: MemoryServer,
    pub(crate) clock: ManualClock,
    pub(crate) tree: JobTree,
    observer: MemoryRegistry,
}

/// The connection of one instance to the registry.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) registry: Arc<GatedRegistry>,
    pub(crate) link: Link,
}

pub(crate) fn clock() -> ManualClock {
    ManualClock::at("2026-11-15T06:00:00Z".parse().unwrap())
}

pub(crate) fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap().shards(shards)
}

/// The nth fire of the job, due shortly after a cluster starts.
pub(crate) fn fire(nth: i64) -> Fire {
    let due_at = clock().now() + jiff::SignedDuration::from_secs(30 + nth);
    Fire::scheduled("settle".parse().unwrap(), due_at)
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        Self::with_job("settle").await
    }

    pub(crate) async fn with_job(job: &str) -> Self {
        let clock = clock();
        Self::on_server(MemoryServer::new(Arc::new(clock.clone())), clock, job).await
    }

    pub(crate) async fn on_server(server: MemoryServer, clock: ManualClock, job: &str) -> Self {
        let observer = server.join("shop".parse().unwrap()).await.unwrap();
        let tree = JobTree::new(observer.namespace(), &job.parse().unwrap()).unwrap();
        Self { server, clock, tree, observer }
    }

    pub(crate) async fn connect(&self) -> Connection {
        let inner = self.server.join("shop".parse().unwrap()).await.unwrap();
        let link = inner.link();
        let is_listing_delayed = Arc::new(watch::Sender::new(false));
        Connection {
            registry: Arc::new(GatedRegistry {
                inner,
                gate: Mutex::new(None),
                is_listing_delayed,
                panic_at: Mutex::new(None),
                panic_on: Mutex::new(None),
                refused: Mutex::new(None),
                refusals: AtomicUsize::new(0),
                throttled: AtomicUsize::new(0),
                reads: AtomicUsize::new(0),
                writes: AtomicUsize::new(0),
            }),
            link,
        }
    }

    /// Waits until all tasks are idle; the clock of the cluster stands still. Tokio's paused time advances only when every task is idle.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Advances the clock in steps, and waits after each until all tasks are idle.
    pub(crate) async fn advance(&self, span: Duration) {
        let step = Duration::from_millis(if span > Duration::from_mins(1) { 1_000 } else { 100 });
        let end = self.clock.monotonic() + span;
        while self.clock.monotonic() < end {
            self.clock.advance(step.min(end.saturating_since(self.clock.monotonic())));
            self.settle().await;
        }
    }

    pub(crate) async fn advance_seconds(&self, seconds: u64) {
        self.advance(Duration::from_secs(seconds)).await;
    }

    /// The data of a node as text; `None` if the node does not exist.
    pub(crate) async fn text(&self, path: &Path) -> Option<String> {
        let node = self.observer.get(path).await.unwrap()?;
        Some(String::from_utf8(node.data.to_vec()).unwrap())
    }

    pub(crate) async fn stat(&self, path: &Path) -> Option<Stat> {
        self.observer.exists(path).await.unwrap()
    }

    pub(crate) async fn exists(&self, path: &Path) -> bool {
        self.stat(path).await.is_some()
    }

    pub(crate) async fn children(&self, path: &Path) -> Vec<String> {
        let mut children = self.observer.children(path).await.unwrap().unwrap_or_default();
        children.sort_unstable();
        children
    }

    pub(crate) async fn running(&self, shard: u32) -> Option<String> {
        self.text(&self.tree.shard(shard, ShardNode::Running)).await
    }

    pub(crate) async fn is_flagged(&self, shard: u32) -> bool {
        self.exists(&self.tree.failover_item(shard)).await
    }

    /// The owner of each shard, in the order of the shards; empty for an unassigned shard.
    pub(crate) async fn owners(&self, total: u32) -> Vec<String> {
        let mut owners = Vec::new();
        for shard in 0..total {
            let owner = self.text(&self.tree.shard(shard, ShardNode::Owner)).await;
            owners.push(owner.unwrap_or_default());
        }
        owners
    }

    /// Writes a node as a console or a Java instance does, parents first.
    pub(crate) async fn write(&self, path: &Path, data: &str) {
        if let Some(parent) = path.parent() {
            ensure_path(&self.observer, &parent).await.unwrap();
        }
        match self.observer.create(Create::persistent(path, data.to_owned())).await {
            Ok(_) => {}
            Err(Error::Exists { .. }) => {
                let data = Bytes::from(data.to_owned());
                self.observer.set(path, data, ExpectedVersion::Any).await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn multi(&self, ops: Vec<Op>) {
        self.observer.multi(ops).await.unwrap();
    }

    /// Deletes a node with its descendants, as a console does.
    pub(crate) async fn remove(&self, path: &Path) {
        for child in self.children(path).await {
            Box::pin(self.remove(&path.join(child).unwrap())).await;
        }
        match self.observer.delete(path, ExpectedVersion::Any).await {
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Registers a Java instance: first its server, then the instance.
    pub(crate) async fn java(&self, id: &'static str) -> JavaInstance {
        let connection = self.connect().await;
        let java = JavaInstance { id, connection };
        let server = id.split('@').next().unwrap();
        self.write(&self.tree.server(server), "ENABLED").await;
        ensure_path(&*java.connection.registry, &self.tree.instances()).await.unwrap();
        java.register(&self.tree).await;
        java
    }

    /// Writes what a Java leader writes when it has assigned the shards: the owners; then it deletes the flags.
    pub(crate) async fn assign_as_java_leader(&self, owners: &[&str]) {
        for (shard, owner) in (0..).zip(owners) {
            self.write(&self.tree.shard(shard, ShardNode::Owner), owner).await;
        }
        self.remove(&self.tree.necessary()).await;
        self.remove(&self.tree.processing()).await;
    }
}

/// A Java instance, represented by its registry writes.
pub(crate) struct JavaInstance {
    pub(crate) id: &'static str,
    pub(crate) connection: Connection,
}

impl JavaInstance {
    async fn register(&self, tree: &JobTree) {
        let server = self.id.split('@').next().unwrap();
        let document = format!("jobInstanceId: {}\nserverIp: {server}\n", self.id);
        self.create_ephemeral(&tree.instance(self.id), &document).await;
    }

    /// Does what Java's `persistEphemeral` does: deletes an existing node, then creates it.
    pub(crate) async fn create_ephemeral(&self, path: &Path, data: &str) {
        let _ = self.connection.registry.delete(path, ExpectedVersion::Any).await;
        let session = self.connection.registry.session().id();
        let create = Create::ephemeral(path, data.to_owned(), session);
        self.connection.registry.create(create).await.unwrap();
    }

    pub(crate) async fn become_leader(&self, tree: &JobTree) {
        ensure_path(&*self.connection.registry, &tree.leader().parent().unwrap()).await.unwrap();
        self.create_ephemeral(&tree.leader(), self.id).await;
    }

    /// Creates the `running` node of a shard; it is persistent because the job has failover.
    pub(crate) async fn mark_running(&self, tree: &JobTree, shard: u32) {
        let path = tree.shard(shard, ShardNode::Running);
        self.connection.registry.create(Create::persistent(&path, self.id)).await.unwrap();
    }

    /// The first half of every reconnect of Java, even if the session is still alive.
    pub(crate) async fn delete_instance_node(&self, tree: &JobTree) {
        self.connection
            .registry
            .delete(&tree.instance(self.id), ExpectedVersion::Any)
            .await
            .unwrap();
    }

    /// The second half of every reconnect of Java.
    pub(crate) async fn recreate_instance_node(&self, tree: &JobTree) {
        self.register(tree).await;
    }

    pub(crate) async fn die(self) {
        self.connection.registry.close().await;
    }
}

type WriteFilter = Box<dyn Fn(&[Op]) -> bool + Send>;

/// A registry that can block its next write of some kind, so that something else happens first, that can delay the listing of its watches, and
/// that can refuse writes or panic.
pub(crate) struct GatedRegistry {
    inner: MemoryRegistry,
    gate: Mutex<Option<Gate>>,
    is_listing_delayed: Arc<watch::Sender<bool>>,
    panic_at: Mutex<Option<Path>>,
    panic_on: Mutex<Option<WriteFilter>>,
    refused: Mutex<Option<WriteFilter>>,
    refusals: AtomicUsize,
    /// How many of the next writes are throttled.
    throttled: AtomicUsize,
    reads: AtomicUsize,
    writes: AtomicUsize,
}

/// How many requests an instance has sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestCount {
    /// Reads and syncs.
    pub(crate) reads: usize,
    pub(crate) writes: usize,
}

impl std::ops::Sub for RequestCount {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { reads: self.reads - earlier.reads, writes: self.writes - earlier.writes }
    }
}

impl std::fmt::Debug for GatedRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "gated {:?}", self.inner)
    }
}

/// A watch that, while listing is delayed, delivers only the beginning of a snapshot.
struct SlowWatch {
    inner: Watch,
    is_listing_delayed: watch::Receiver<bool>,
    is_in_snapshot: bool,
}

impl SlowWatch {
    fn track(&mut self, event: &Event) {
        match event {
            Event::Init => self.is_in_snapshot = true,
            Event::InitDone => self.is_in_snapshot = false,
            Event::InitApply { .. } | Event::Apply { .. } | Event::Delete { .. } => {}
        }
    }
}

#[async_trait::async_trait]
impl WatchSource for SlowWatch {
    async fn next(&mut self) -> Option<Event> {
        if self.is_in_snapshot {
            let _ =
                self.is_listing_delayed.wait_for(|is_listing_delayed| !is_listing_delayed).await;
        }
        let event = self.inner.next().await?;
        self.track(&event);
        Some(event)
    }

    fn try_next(&mut self) -> Option<Event> {
        if self.is_in_snapshot && *self.is_listing_delayed.borrow() {
            return None;
        }
        let event = self.inner.try_next()?;
        self.track(&event);
        Some(event)
    }

    fn is_current(&self) -> bool {
        !self.is_in_snapshot && self.inner.is_current()
    }
}

struct Gate {
    filter: WriteFilter,
    reached: oneshot::Sender<()>,
    go: oneshot::Receiver<()>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gate")
    }
}

/// A write that is blocked until [`unblock`](Self::unblock) is called.
pub(crate) struct BlockedWrite {
    reached: oneshot::Receiver<()>,
    go: oneshot::Sender<()>,
}

impl BlockedWrite {
    /// Waits until the write is about to be sent.
    pub(crate) async fn reached(&mut self) {
        (&mut self.reached).await.expect("the blocked write is attempted");
    }

    pub(crate) fn unblock(self) {
        self.go.send(()).expect("the blocked write waits");
    }
}

impl Connection {
    /// Blocks the next write that matches the filter.
    pub(crate) fn block_next(
        &self,
        filter: impl Fn(&[Op]) -> bool + Send + 'static,
    ) -> BlockedWrite {
        let (reached, was_reached) = oneshot::channel();
        let (go, may_go) = oneshot::channel();
        let gate = Gate { filter: Box::new(filter), reached, go: may_go };
        *self.registry.gate.lock().unwrap() = Some(gate);
        BlockedWrite { reached: was_reached, go }
    }

    /// Delays the listing of watched nodes from now on, or ends the delay.
    pub(crate) fn delay_listing(&self, is_listing_delayed: bool) {
        self.registry.is_listing_delayed.send_replace(is_listing_delayed);
    }

    /// Panics when the children of this node are listed next.
    pub(crate) fn panic_at_children_of(&self, path: Path) {
        *self.registry.panic_at.lock().unwrap() = Some(path);
    }

    /// Panics at the next write that matches the filter.
    pub(crate) fn panic_on_next(&self, filter: impl Fn(&[Op]) -> bool + Send + 'static) {
        *self.registry.panic_on.lock().unwrap() = Some(Box::new(filter));
    }

    /// Refuses every write that matches the filter.
    pub(crate) fn refuse(&self, filter: impl Fn(&[Op]) -> bool + Send + 'static) {
        *self.registry.refused.lock().unwrap() = Some(Box::new(filter));
    }

    /// Throttles this many of the next writes.
    pub(crate) fn throttle(&self, writes: usize) {
        self.registry.throttled.store(writes, Ordering::Relaxed);
    }

    /// How many writes were refused.
    pub(crate) fn refusals(&self) -> usize {
        self.registry.refusals.load(Ordering::Relaxed)
    }

    /// How many requests were sent so far.
    pub(crate) fn requests(&self) -> RequestCount {
        RequestCount {
            reads: self.registry.reads.load(Ordering::Relaxed),
            writes: self.registry.writes.load(Ordering::Relaxed),
        }
    }

    /// Ends the session, as the death of the process does.
    pub(crate) async fn die(&self) {
        self.registry.close().await;
    }
}

/// Whether one of the operations creates a node whose path ends with `end`.
pub(crate) fn creates(ops: &[Op], end: &str) -> bool {
    ops.iter().any(|op| matches!(op, Op::Create(create) if create.path.as_str().ends_with(end)))
}

/// Whether one of the operations creates a node below `parent`.
pub(crate) fn creates_below(ops: &[Op], parent: &Path) -> bool {
    ops.iter()
        .any(|op| matches!(op, Op::Create(create) if create.path.parent().as_ref() == Some(parent)))
}

impl GatedRegistry {
    async fn count_refusal(&self) {
        if self.refusals.fetch_add(1, Ordering::Relaxed) > MAX_REFUSALS {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait::async_trait]
impl Registry for GatedRegistry {
    fn namespace(&self) -> &Namespace {
        self.inner.namespace()
    }

    fn session(&self) -> Session {
        self.inner.session()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let gate = {
            let mut gate = self.gate.lock().unwrap();
            gate.take_if(|gate| (gate.filter)(&ops))
        };
        if let Some(gate) = gate {
            let _ = gate.reached.send(());
            let _ = gate.go.await;
        }
        let throttled = self.throttled.load(Ordering::Relaxed);
        if throttled > 0 {
            self.throttled.store(throttled - 1, Ordering::Relaxed);
            let path = self.namespace().path().clone();
            return Err(Error::Throttled { path, reason: "throttled".to_owned() });
        }
        let is_refused = self.refused.lock().unwrap().as_ref().is_some_and(|filter| filter(&ops));
        if is_refused {
            self.count_refusal().await;
            let path = self.namespace().path().clone();
            return Err(Error::Invalid { path, reason: "refused".to_owned() });
        }
        let panics = self.panic_on.lock().unwrap().take_if(|filter| filter(&ops)).is_some();
        assert!(!panics, "this write panics");
        let answer = self.inner.multi(ops).await;
        if matches!(answer, Err(Error::Operation { .. })) {
            self.count_refusal().await;
        }
        answer
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let panics = self.panic_at.lock().unwrap().take_if(|at| at == path).is_some();
        assert!(!panics, "the children of {path} were listed");
        self.inner.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        let inner = self.inner.watch(prefix).await?;
        let is_listing_delayed = self.is_listing_delayed.subscribe();
        Ok(Watch::new(SlowWatch { inner, is_listing_delayed, is_in_snapshot: false }))
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
