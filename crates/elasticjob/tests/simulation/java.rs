//! A Java instance, as far as it can be told from outside.
//!
//! It enters a job, runs its shards at every fire, and leaves behind what Java leaves behind: it deletes and creates its instance whenever
//! it reconnects, it takes `running` away from others when it does, flags what it then runs itself, and dies with `running` in the tree.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use elasticjob::{
    coordination::tree::{JobTree, Part},
    job::{Failover, Instance, InstanceId},
    registry::{Create, Expected, Kind, Op, Registry, memory::MemoryServer, plant},
    runtime::Clock,
};

use super::{
    book::Book,
    dice::Dice,
    jobs::Plan,
    process::TrueTime,
    world::{NAMESPACE, lock, tree_of},
};

const SESSION: Duration = Duration::from_secs(6);

pub(super) struct Java {
    pub(super) server: MemoryServer,
    pub(super) time: TrueTime,
    pub(super) dice: Dice,
    pub(super) plan: Arc<Mutex<Plan>>,
    pub(super) book: Arc<Book>,
    pub(super) is_calm: Arc<AtomicBool>,
    pub(super) number: u32,
}

/// One life of it.
struct Life<'a> {
    java: &'a Java,
    registry: elasticjob::registry::memory::MemoryRegistry,
    tree: JobTree,
    id: InstanceId,
}

impl Java {
    /// Comes, stays for some fires, goes or dies, and comes again, until faults are over.
    pub(super) async fn live(mut self) {
        self.pause(self.dice.between(3_000, 15_000)).await;
        while !self.is_calm.load(Ordering::Relaxed) {
            self.number += 1;
            let namespace = NAMESPACE.parse().expect("a good namespace");
            let Ok(registry) = self.server.join(namespace).await else { return };
            let id = format!("10.0.0.200@-@{}", self.number).parse().expect("a Java id");
            let life = Life { java: &self, registry, tree: tree_of(&self.plan), id };
            life.enter().await;
            while life.fire().await {}
            life.end().await;
            self.pause(self.dice.between(1_000, 20_000)).await;
        }
    }

    async fn pause(&self, millis: u64) {
        self.time.sleep_until(self.time.monotonic() + Duration::from_millis(millis)).await;
    }
}

impl Life<'_> {
    async fn enter(&self) {
        self.java.book.tell(format_args!("{} enters", self.id));
        let server = self.tree.server(self.id.server());
        let _ = self.registry.create(Create::persistent(&server, "ENABLED")).await;
        self.appear().await;
    }

    async fn appear(&self) {
        let document = Instance::new(self.id.clone()).to_yaml();
        let node = Create::ephemeral(
            &self.tree.instance(&self.id),
            document,
            self.registry.session().id(),
        );
        let _ = self.registry.create(node).await;
    }

    /// Waits for the next fire and runs what is its own; `false` when it is over.
    async fn fire(&self) -> bool {
        let java = self.java;
        let every = lock(&java.plan).every;
        let next = (java.time.elapsed().as_secs() + 1).next_multiple_of(every);
        let wait = Duration::from_secs(next).saturating_sub(java.time.elapsed());
        java.pause(wait.as_millis() as u64 + 1).await;
        if java.is_calm.load(Ordering::Relaxed) || java.dice.percent(10) {
            return false;
        }
        for flag in [self.tree.necessary(), self.tree.processing()] {
            if self.registry.exists(&flag).await.ok().flatten().is_some() {
                return true;
            }
        }
        let (total, failover) = {
            let plan = lock(&java.plan);
            (plan.job.shards.get(), plan.job.failover)
        };
        let kind = match failover {
            Failover::TakeOver => Kind::Persistent,
            Failover::Wait => Kind::Ephemeral(self.registry.session().id()),
        };
        let mut mine = Vec::new();
        for shard in 0..total {
            let owner =
                self.registry.get(&self.tree.shard(shard, Part::Owner)).await.ok().flatten();
            if owner.is_none_or(|owner| owner.data != self.id.as_str()) {
                continue;
            }
            let running = self.tree.shard(shard, Part::Running);
            let mut ops = vec![Op::Create(Create::new(&running, self.id.to_string(), kind))];
            let _ = plant(&self.registry, &self.tree.failover_items()).await;
            // As a survivor flags late what it is about to run anyway.
            if failover == Failover::TakeOver && java.dice.percent(20) {
                ops.insert(0, Op::Create(Create::persistent(&self.tree.failover_item(shard), "")));
            }
            if self.registry.multi(ops).await.is_ok() {
                java.book.java_begins(&self.id, &(self.tree.root().name().to_owned(), shard));
                mine.push(shard);
            }
        }
        java.pause(java.dice.between(50, 3_000)).await;
        if java.dice.percent(30) {
            self.reconnect(&mine, total).await;
        }
        java.pause(java.dice.between(50, 2_000)).await;
        let dies = java.dice.percent(10);
        if dies {
            self.die(&mine).await;
            return false;
        }
        for shard in mine {
            let running = self.tree.shard(shard, Part::Running);
            java.book.java_ended(&(self.tree.root().name().to_owned(), shard));
            let _ = self.registry.delete(&running, Expected::Any).await;
        }
        true
    }

    /// The connection broke and is back: the instance is deleted and created, and `running` of others may go.
    async fn reconnect(&self, mine: &[u32], total: u32) {
        let java = self.java;
        java.book.tell(format_args!("{} reconnects", self.id));
        let _ = self.registry.delete(&self.tree.instance(&self.id), Expected::Any).await;
        java.pause(java.dice.between(10, 300)).await;
        self.appear().await;
        for shard in (0..total).filter(|shard| !mine.contains(shard)) {
            let running = self.tree.shard(shard, Part::Running);
            if java.dice.percent(30) && self.registry.delete(&running, Expected::Any).await.is_ok()
            {
                java.book.robbed(&(self.tree.root().name().to_owned(), shard));
            }
        }
    }

    async fn die(&self, mine: &[u32]) {
        self.java.book.tell(format_args!("{} dies", self.id));
        for shard in mine {
            self.java.book.java_ended(&(self.tree.root().name().to_owned(), *shard));
        }
        self.java.pause(SESSION.as_millis() as u64).await;
        for shard in mine {
            self.java.book.java_died(&(self.tree.root().name().to_owned(), *shard));
        }
    }

    /// Whatever is left is left: a trigger nobody takes, too.
    async fn end(&self) {
        self.java.book.tell(format_args!("{} is gone", self.id));
        self.registry.close().await;
        let namespace = NAMESPACE.parse().expect("a good namespace");
        if let Ok(console) = self.java.server.join(namespace).await {
            let _ = plant(&console, &self.tree.triggers()).await;
            let _ = console.create(Create::persistent(&self.tree.trigger(&self.id), "")).await;
        }
    }
}
