//! A simulated instance of Java ElasticJob, as far as it can be observed through the registry.
//!
//! It joins a job, runs its shards at every fire, and has Java's side effects: whenever it reconnects it deletes and re-creates its instance
//! node, and may delete the `running` nodes of other instances; it flags shards for failover that it then runs itself; and it dies leaving
//! its `running` nodes behind.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use elasticjob::{
    coordination::tree::{JobTree, ShardNode},
    job::{Failover, Instance, InstanceId},
    registry::{
        Create, Error, ExpectedVersion, Kind, Op, Path, Registry, ensure_path, memory::MemoryServer,
    },
    runtime::Clock,
};

use super::{
    jobs::JobPlan,
    oracle::Oracle,
    process::TrueTime,
    rng::Rng,
    world::{NAMESPACE, lock, tree_of},
};

const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

pub(super) struct JavaInstance {
    pub(super) server: MemoryServer,
    pub(super) time: TrueTime,
    pub(super) rng: Rng,
    pub(super) plan: Arc<Mutex<JobPlan>>,
    pub(super) oracle: Arc<Oracle>,
    pub(super) is_fault_free: Arc<AtomicBool>,
    pub(super) number: u32,
}

/// One session, from joining to leaving or dying.
struct JavaSession<'a> {
    instance: &'a JavaInstance,
    registry: elasticjob::registry::memory::MemoryRegistry,
    tree: JobTree,
    id: InstanceId,
}

impl JavaInstance {
    /// Joins, stays for some fires, leaves or dies, and joins again, until the fault phase ends.
    pub(super) async fn run(mut self) {
        self.pause(self.rng.between(3_000, 15_000)).await;
        while !self.is_fault_free.load(Ordering::Relaxed) {
            self.number += 1;
            let namespace = NAMESPACE.parse().expect("valid namespace");
            let Ok(registry) = self.server.join(namespace).await else { return };
            let id = format!("10.0.0.200@-@{}", self.number).parse().expect("valid instance id");
            let session = JavaSession { instance: &self, registry, tree: tree_of(&self.plan), id };
            session.join().await;
            while session.run_next_fire().await {}
            session.end().await;
            self.pause(self.rng.between(1_000, 20_000)).await;
        }
    }

    async fn pause(&self, millis: u64) {
        self.time.sleep_until(self.time.monotonic() + Duration::from_millis(millis)).await;
    }
}

impl JavaSession<'_> {
    async fn join(&self) {
        self.instance.oracle.log(format_args!("{} joins", self.id));
        let server = self.tree.server(self.id.server());
        let _ = self.registry.create(Create::persistent(&server, "ENABLED")).await;
        self.create_instance_node().await;
    }

    async fn create_instance_node(&self) {
        let document = Instance::new(self.id.clone()).to_yaml();
        let node = Create::ephemeral(
            &self.tree.instance(&self.id),
            document,
            self.registry.session().id(),
        );
        let _ = self.registry.create(node).await;
    }

    /// Waits for the next fire and runs the own shards. Returns `false` when the session is over.
    async fn run_next_fire(&self) -> bool {
        let instance = self.instance;
        let every = lock(&instance.plan).every;
        let next = (instance.time.elapsed().as_secs() + 1).next_multiple_of(every);
        let wait = Duration::from_secs(next).saturating_sub(instance.time.elapsed());
        instance.pause(wait.as_millis() as u64 + 1).await;
        if instance.is_fault_free.load(Ordering::Relaxed) || instance.rng.percent(10) {
            return false;
        }
        for flag in [self.tree.necessary(), self.tree.processing()] {
            if self.registry.exists(&flag).await.ok().flatten().is_some() {
                return true;
            }
        }
        let (total, failover) = {
            let plan = lock(&instance.plan);
            (plan.job.shards.get(), plan.job.failover)
        };
        let kind = match failover {
            Failover::TakeOver => Kind::Persistent,
            Failover::Wait => Kind::Ephemeral(self.registry.session().id()),
        };
        let mut mine = Vec::new();
        for shard in 0..total {
            let owner =
                self.registry.get(&self.tree.shard(shard, ShardNode::Owner)).await.ok().flatten();
            if owner.is_none_or(|owner| owner.data != self.id.as_str()) {
                continue;
            }
            let running = self.tree.shard(shard, ShardNode::Running);
            let mut ops = vec![Op::Create(Create::new(&running, self.id.to_string(), kind))];
            let _ = ensure_path(&self.registry, &self.tree.failover_items()).await;
            // A surviving Java instance may flag a shard late that it is about to run anyway.
            if failover == Failover::TakeOver && instance.rng.percent(20) {
                ops.insert(0, Op::Create(Create::persistent(&self.tree.failover_item(shard), "")));
            }
            if self.registry.multi(ops).await.is_ok() {
                instance
                    .oracle
                    .java_started(&self.id, &(self.tree.root().name().to_owned(), shard));
                mine.push(shard);
            }
        }
        instance.pause(instance.rng.between(50, 3_000)).await;
        if instance.rng.percent(30) {
            self.reconnect(&mine, total).await;
        }
        instance.pause(instance.rng.between(50, 2_000)).await;
        let dies = instance.rng.percent(10);
        if dies {
            self.die(&mine).await;
            return false;
        }
        for shard in mine {
            let running = self.tree.shard(shard, ShardNode::Running);
            instance.oracle.java_ended(&(self.tree.root().name().to_owned(), shard));
            self.remove(&running).await;
        }
        true
    }

    /// Removes a node as Java does: with what another program has put below it.
    async fn remove(&self, path: &Path) {
        let removed = self.registry.delete(path, ExpectedVersion::Any).await;
        if !matches!(removed, Err(Error::NotEmpty { .. })) {
            return;
        }
        let children = self.registry.children(path).await.ok().flatten().unwrap_or_default();
        for child in children.iter().filter_map(|child| path.join(child).ok()) {
            let _ = self.registry.delete(&child, ExpectedVersion::Any).await;
        }
        let _ = self.registry.delete(path, ExpectedVersion::Any).await;
    }

    /// Reconnects as Java does: the instance node is deleted and re-created, and `running` nodes of other instances may be deleted.
    async fn reconnect(&self, mine: &[u32], total: u32) {
        let instance = self.instance;
        instance.oracle.log(format_args!("{} reconnects", self.id));
        let _ = self.registry.delete(&self.tree.instance(&self.id), ExpectedVersion::Any).await;
        instance.pause(instance.rng.between(10, 300)).await;
        self.create_instance_node().await;
        for shard in (0..total).filter(|shard| !mine.contains(shard)) {
            let running = self.tree.shard(shard, ShardNode::Running);
            if instance.rng.percent(30)
                && self.registry.delete(&running, ExpectedVersion::Any).await.is_ok()
            {
                instance.oracle.java_removed_running(&(self.tree.root().name().to_owned(), shard));
            }
        }
    }

    async fn die(&self, mine: &[u32]) {
        self.instance.oracle.log(format_args!("{} dies", self.id));
        for shard in mine {
            self.instance.oracle.java_ended(&(self.tree.root().name().to_owned(), *shard));
        }
        self.instance.pause(SESSION_TIMEOUT.as_millis() as u64).await;
        for shard in mine {
            self.instance.oracle.java_died(&(self.tree.root().name().to_owned(), *shard));
        }
    }

    /// Leaves without cleaning up; a trigger for this instance arrives afterwards and stays.
    async fn end(&self) {
        self.instance.oracle.log(format_args!("{} is gone", self.id));
        self.registry.close().await;
        let namespace = NAMESPACE.parse().expect("valid namespace");
        if let Ok(console) = self.instance.server.join(namespace).await {
            let _ = ensure_path(&console, &self.tree.triggers()).await;
            let _ = console.create(Create::persistent(&self.tree.trigger(&self.id), "")).await;
        }
    }
}
