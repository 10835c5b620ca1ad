//! Where the tests play: a registry in memory, a clock that stands still, lines that can be cut and held up, Java instances.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use elasticjob::{
    coordination::tree::{JobTree, Part},
    job::{Fire, Job},
    registry::{
        Committed, Create, Error, Event, Expected, Namespace, Node, Op, Path, Registry, Session,
        Stat, Watch, WatchSource,
        memory::{Link, MemoryRegistry, MemoryServer},
        plant,
    },
    runtime::Clock,
    testing::ManualClock,
};
use tokio::sync::{oneshot, watch};

/// Longer than a second look at everything is away, in seconds.
pub(crate) const TICK: u64 = 80;

/// One job in one registry, and the clock everybody goes by.
pub(crate) struct Stage {
    pub(crate) server: MemoryServer,
    pub(crate) clock: ManualClock,
    pub(crate) tree: JobTree,
    observer: MemoryRegistry,
}

/// Somebody's connection to the registry.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) registry: Arc<Gated>,
    pub(crate) link: Link,
}

pub(crate) fn clock() -> ManualClock {
    ManualClock::at("2026-11-15T06:00:00Z".parse().unwrap())
}

pub(crate) fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap().shards(shards)
}

/// The nth fire of the job.
pub(crate) fn fire(nth: i64) -> Fire {
    let due_at = jiff::Timestamp::from_second(1_800_000_000 + nth).unwrap();
    Fire::scheduled("settle".parse().unwrap(), due_at)
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::of("settle").await
    }

    pub(crate) async fn of(job: &str) -> Self {
        let clock = clock();
        Self::on(MemoryServer::new(Arc::new(clock.clone())), clock, job).await
    }

    pub(crate) async fn on(server: MemoryServer, clock: ManualClock, job: &str) -> Self {
        let observer = server.join("shop".parse().unwrap()).await.unwrap();
        let tree = JobTree::new(observer.namespace(), &job.parse().unwrap()).unwrap();
        Self { server, clock, tree, observer }
    }

    pub(crate) async fn line(&self) -> Line {
        let inner = self.server.join("shop".parse().unwrap()).await.unwrap();
        let link = inner.link();
        let is_listing = Arc::new(watch::Sender::new(false));
        Line { registry: Arc::new(Gated { inner, gate: Mutex::new(None), is_listing }), link }
    }

    /// Lets everybody come to rest; no time passes. Tokio's own time is paused: it moves on when nobody has anything to do.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Lets time pass, in steps in which everybody comes to rest.
    pub(crate) async fn pass(&self, span: Duration) {
        let step = Duration::from_millis(if span > Duration::from_mins(1) { 1_000 } else { 100 });
        let end = self.clock.monotonic() + span;
        while self.clock.monotonic() < end {
            self.clock.advance(step.min(end.saturating_since(self.clock.monotonic())));
            self.settle().await;
        }
    }

    pub(crate) async fn pass_seconds(&self, seconds: u64) {
        self.pass(Duration::from_secs(seconds)).await;
    }

    /// What a node says; `None` if there is none.
    pub(crate) async fn text(&self, path: &Path) -> Option<String> {
        let node = self.observer.get(path).await.unwrap()?;
        Some(String::from_utf8(node.data.to_vec()).unwrap())
    }

    pub(crate) async fn stat(&self, path: &Path) -> Option<Stat> {
        self.observer.exists(path).await.unwrap()
    }

    pub(crate) async fn is_there(&self, path: &Path) -> bool {
        self.stat(path).await.is_some()
    }

    pub(crate) async fn children(&self, path: &Path) -> Vec<String> {
        let mut children = self.observer.children(path).await.unwrap().unwrap_or_default();
        children.sort_unstable();
        children
    }

    pub(crate) async fn running(&self, shard: u32) -> Option<String> {
        self.text(&self.tree.shard(shard, Part::Running)).await
    }

    pub(crate) async fn is_flagged(&self, shard: u32) -> bool {
        self.is_there(&self.tree.failover_item(shard)).await
    }

    /// The owner of each shard, in order.
    pub(crate) async fn owners(&self, total: u32) -> Vec<String> {
        let mut owners = Vec::new();
        for shard in 0..total {
            let owner = self.text(&self.tree.shard(shard, Part::Owner)).await;
            owners.push(owner.unwrap_or_default());
        }
        owners
    }

    /// Writes a node as a console or Java would, parents first.
    pub(crate) async fn write(&self, path: &Path, data: &str) {
        if let Some(parent) = path.parent() {
            plant(&self.observer, &parent).await.unwrap();
        }
        match self.observer.create(Create::persistent(path, data.to_owned())).await {
            Ok(_) => {}
            Err(Error::Exists { .. }) => {
                let data = Bytes::from(data.to_owned());
                self.observer.set(path, data, Expected::Any).await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn multi(&self, ops: Vec<Op>) {
        self.observer.multi(ops).await.unwrap();
    }

    /// Deletes a node and all below, as a console does.
    pub(crate) async fn remove(&self, path: &Path) {
        for child in self.children(path).await {
            Box::pin(self.remove(&path.join(child).unwrap())).await;
        }
        match self.observer.delete(path, Expected::Any).await {
            Ok(_) | Err(Error::Absent { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// A Java instance, as far as it writes: its server, then itself.
    pub(crate) async fn java(&self, id: &'static str) -> Java {
        let line = self.line().await;
        let java = Java { id, line };
        let server = id.split('@').next().unwrap();
        self.write(&self.tree.server(server), "ENABLED").await;
        plant(&*java.line.registry, &self.tree.instances()).await.unwrap();
        java.enter(&self.tree).await;
        java
    }

    /// What a Java leader writes when it has dealt: owners, and the flags go.
    pub(crate) async fn java_deals(&self, owners: &[&str]) {
        for (shard, owner) in (0..).zip(owners) {
            self.write(&self.tree.shard(shard, Part::Owner), owner).await;
        }
        self.remove(&self.tree.necessary()).await;
        self.remove(&self.tree.processing()).await;
    }
}

/// A Java instance.
pub(crate) struct Java {
    pub(crate) id: &'static str,
    pub(crate) line: Line,
}

impl Java {
    async fn enter(&self, tree: &JobTree) {
        let server = self.id.split('@').next().unwrap();
        let document = format!("jobInstanceId: {}\nserverIp: {server}\n", self.id);
        self.ephemeral(&tree.instance(self.id), &document).await;
    }

    /// `persistEphemeral`: what is there goes, then it is created.
    pub(crate) async fn ephemeral(&self, path: &Path, data: &str) {
        let _ = self.line.registry.delete(path, Expected::Any).await;
        let session = self.line.registry.session().id();
        let create = Create::ephemeral(path, data.to_owned(), session);
        self.line.registry.create(create).await.unwrap();
    }

    pub(crate) async fn leads(&self, tree: &JobTree) {
        plant(&*self.line.registry, &tree.leader().parent().unwrap()).await.unwrap();
        self.ephemeral(&tree.leader(), self.id).await;
    }

    /// Says that it runs a shard of a job with failover.
    pub(crate) async fn runs(&self, tree: &JobTree, shard: u32) {
        let path = tree.shard(shard, Part::Running);
        self.line.registry.create(Create::persistent(&path, self.id)).await.unwrap();
    }

    /// What it does on every reconnect, also when its session lives.
    pub(crate) async fn vanishes(&self, tree: &JobTree) {
        self.line.registry.delete(&tree.instance(self.id), Expected::Any).await.unwrap();
    }

    pub(crate) async fn returns(&self, tree: &JobTree) {
        self.enter(tree).await;
    }

    pub(crate) async fn dies(self) {
        self.line.registry.close().await;
    }
}

type Wanted = Box<dyn Fn(&[Op]) -> bool + Send>;

/// A registry whose next write of a kind can be held up, so that something else happens first, and whose watches can be.
#[derive(Debug)]
pub(crate) struct Gated {
    inner: MemoryRegistry,
    gate: Mutex<Option<Gate>>,
    is_listing: Arc<watch::Sender<bool>>,
}

/// A watch of which, while listing takes its time, only the beginning of a snapshot is heard.
struct SlowWatch {
    inner: Watch,
    is_listing: watch::Receiver<bool>,
    has_begun: bool,
}

impl SlowWatch {
    fn note(&mut self, event: &Event) {
        match event {
            Event::Init => self.has_begun = true,
            Event::InitDone => self.has_begun = false,
            Event::InitApply { .. } | Event::Apply { .. } | Event::Delete { .. } => {}
        }
    }
}

#[async_trait::async_trait]
impl WatchSource for SlowWatch {
    async fn next(&mut self) -> Option<Event> {
        if self.has_begun {
            let _ = self.is_listing.wait_for(|is_listing| !is_listing).await;
        }
        let event = self.inner.next().await?;
        self.note(&event);
        Some(event)
    }

    fn try_next(&mut self) -> Option<Event> {
        if self.has_begun && *self.is_listing.borrow() {
            return None;
        }
        let event = self.inner.try_next()?;
        self.note(&event);
        Some(event)
    }

    fn is_current(&self) -> bool {
        !self.has_begun && self.inner.is_current()
    }
}

struct Gate {
    wanted: Wanted,
    reached: oneshot::Sender<()>,
    go: oneshot::Receiver<()>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a gate")
    }
}

/// A write that is held up until this is let go.
pub(crate) struct HeldUp {
    reached: oneshot::Receiver<()>,
    go: oneshot::Sender<()>,
}

impl HeldUp {
    /// Waits until the write is about to leave.
    pub(crate) async fn reached(&mut self) {
        (&mut self.reached).await.expect("somebody writes it");
    }

    pub(crate) fn let_go(self) {
        self.go.send(()).expect("it waits");
    }
}

impl Line {
    /// Holds up the next write that is like this.
    pub(crate) fn hold_up(&self, wanted: impl Fn(&[Op]) -> bool + Send + 'static) -> HeldUp {
        let (reached, was_reached) = oneshot::channel();
        let (go, may_go) = oneshot::channel();
        let gate = Gate { wanted: Box::new(wanted), reached, go: may_go };
        *self.registry.gate.lock().unwrap() = Some(gate);
        HeldUp { reached: was_reached, go }
    }

    /// From now on, or no longer, it takes its time to list what is there.
    pub(crate) fn lists(&self, is_listing: bool) {
        self.registry.is_listing.send_replace(is_listing);
    }

    /// Ends the session, as a death does.
    pub(crate) async fn die(&self) {
        self.registry.close().await;
    }
}

/// Whether one of these writes creates something whose name ends so.
pub(crate) fn creates(ops: &[Op], end: &str) -> bool {
    ops.iter().any(|op| matches!(op, Op::Create(create) if create.path.as_str().ends_with(end)))
}

#[async_trait::async_trait]
impl Registry for Gated {
    fn namespace(&self) -> &Namespace {
        self.inner.namespace()
    }

    fn session(&self) -> Session {
        self.inner.session()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let gate = {
            let mut gate = self.gate.lock().unwrap();
            gate.take_if(|gate| (gate.wanted)(&ops))
        };
        if let Some(gate) = gate {
            let _ = gate.reached.send(());
            let _ = gate.go.await;
        }
        self.inner.multi(ops).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.inner.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.inner.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.inner.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.inner.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        let inner = self.inner.watch(prefix).await?;
        let is_listing = self.is_listing.subscribe();
        Ok(Watch::new(SlowWatch { inner, is_listing, has_begun: false }))
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
