//! What other programs write into the nodes of a job: it must stop nothing but what it damages.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use elasticjob::{
    admin::Admin,
    coordination::ledger::{LedgerPage, LedgerState},
    coordination::tree::ShardNode,
    registry::{Create, ExpectedVersion, Registry},
    runtime::Clock,
};

use super::{
    schedule::Action,
    world::{World, lock, tree_of},
};

/// Not JSON, so no version of the program can read it.
const UNREADABLE: &str = "not a ledger page";

impl World {
    /// Another program writes into a random job. Draws from a generator of its own, so that the other faults of a seed stay as they are.
    pub(super) async fn write_as_another_program(&mut self) {
        let number = self.foreign_rng.between(0, self.plans.len() as u64 - 1) as usize;
        match self.foreign_rng.between(0, 2) {
            0 => self.empty_server_status(number).await,
            1 => self.add_foreign_node(number).await,
            _ => self.damage_page(number).await,
        }
        let pause = Duration::from_millis(self.foreign_rng.between(3_000, 40_000));
        self.schedule.add(self.time.monotonic() + pause, Action::ForeignWrite);
    }

    /// What the console of ElasticJob 2.x writes for an enabled server must change nothing.
    async fn empty_server_status(&mut self, number: usize) {
        let plan = Arc::clone(&self.plans[number]);
        let slot = self.foreign_rng.between(0, self.slots.len() as u64 - 1) as usize;
        let is_disabled = {
            let plan = lock(&plan);
            plan.job.disabled || plan.disabled_servers.contains(&slot) || plan.has_java
        };
        if is_disabled {
            return;
        }
        let path = tree_of(&plan).server(Ipv4Addr::new(10, 0, 0, slot as u8 + 1));
        self.oracle.log(format_args!("job{number}: the status of slot {slot} is emptied"));
        self.oracle.set_disturbed(true);
        let _ = self.observer.set(&path, "".into(), ExpectedVersion::Any).await;
    }

    /// A node that no version knows, below a shard that may be deleted one day.
    async fn add_foreign_node(&mut self, number: usize) {
        let plan = Arc::clone(&self.plans[number]);
        let total = u64::from(lock(&plan).job.shards.get());
        let shard = self.foreign_rng.between(0, total - 1) as u32;
        let root = tree_of(&plan).shard(shard, ShardNode::Root);
        let Ok(path) = root.join("foreign") else { return };
        self.oracle.log(format_args!("job{number}/{shard} gets a foreign node"));
        let _ = self.observer.create(Create::persistent(&path, "")).await;
    }

    /// The page of a shard that does not run becomes unreadable; it is reset some time later.
    async fn damage_page(&mut self, number: usize) {
        let plan = Arc::clone(&self.plans[number]);
        let total = u64::from(lock(&plan).job.shards.get());
        let shard = self.foreign_rng.between(0, total - 1) as u32;
        let path = tree_of(&plan).ledger_page(shard);
        let Ok(Some(node)) = self.observer.get(&path).await else { return };
        let is_at_rest = LedgerPage::read(&node.data)
            .is_ok_and(|page| !matches!(page.state, LedgerState::Running | LedgerState::Lost));
        if !is_at_rest || lock(&plan).has_java {
            return;
        }
        let expected = ExpectedVersion::Version(node.stat.version);
        if self.observer.set(&path, UNREADABLE.into(), expected).await.is_ok() {
            self.oracle.log(format_args!("the page of job{number}/{shard} becomes unreadable"));
            let mut plan = lock(&plan);
            plan.unreadable_shards.insert(shard);
            plan.begin_phase(self.time.elapsed());
            let later = Duration::from_millis(self.foreign_rng.between(2_000, 40_000));
            self.schedule.add(self.time.monotonic() + later, Action::ResetShards { job: number });
        }
    }

    /// A configuration that must stop nothing but its own job: the instances of that job go on with their last valid configuration, those that start
    /// meanwhile join when it is mended, and every other job is checked as ever.
    pub(super) async fn store_hostile_config(&mut self) {
        let number = self.hostile_rng.between(0, self.plans.len() as u64 - 1) as usize;
        let plan = Arc::clone(&self.plans[number]);
        let name = lock(&plan).job.name.clone();
        if !lock(&plan).has_java && !lock(&plan).is_invalid {
            let document = match self.hostile_rng.between(0, 3) {
                0 => format!("jobName: {name}\nshardingTotalCount: 2147483647\n"),
                1 => format!("jobName: {name}\nshardingTotalCount: 20000\n"),
                2 => {
                    format!("jobName: {name}\nshardingTotalCount: 1\ncron: {}\n", "*".repeat(9_000))
                }
                _ => "[".repeat(1_000),
            };
            self.oracle.log(format_args!("job{number} gets a hostile configuration"));
            let path = tree_of(&plan).config();
            if self.observer.set(&path, document.into(), ExpectedVersion::Any).await.is_ok() {
                let mut plan = lock(&plan);
                plan.is_invalid = true;
                plan.begin_phase(self.time.elapsed());
                let later = Duration::from_millis(self.hostile_rng.between(500, 12_000));
                let then = self.time.monotonic() + later;
                self.schedule.add(then, Action::MendConfig { job: number });
            }
        }
        let pause = Duration::from_millis(self.hostile_rng.between(10_000, 60_000));
        self.schedule.add(self.time.monotonic() + pause, Action::StoreHostileConfig);
    }

    /// Stores the configuration that the job should have, unless an operator has done so.
    pub(super) async fn mend_config(&mut self, number: usize) {
        let plan = Arc::clone(&self.plans[number]);
        if !lock(&plan).is_invalid {
            return;
        }
        let yaml = lock(&plan).job.to_yaml();
        let path = tree_of(&plan).config();
        if self.observer.set(&path, yaml.into(), ExpectedVersion::Any).await.is_ok() {
            self.oracle.log(format_args!("the configuration of job{number} is mended"));
            // Instances that wait for it join now.
            self.oracle.set_disturbed(true);
            let mut plan = lock(&plan);
            plan.is_invalid = false;
            plan.begin_phase(self.time.elapsed());
        }
    }

    /// Resets every unreadable page of a job, as `elasticjob shard reset` does. A shard beyond the shard count stays as it is.
    pub(super) async fn reset_shards(&mut self, number: usize) {
        let plan = Arc::clone(&self.plans[number]);
        let (name, unreadable) = {
            let plan = lock(&plan);
            (plan.job.name.clone(), plan.unreadable_shards.clone())
        };
        let admin =
            Admin::new(Arc::clone(&self.observer) as Arc<dyn Registry>).clock(Arc::new(self.time));
        for shard in unreadable {
            if let Ok(true) = admin.reset_shard(&name, shard).await {
                self.oracle.log(format_args!("job{number}/{shard} is reset"));
                lock(&plan).unreadable_shards.remove(&shard);
            }
        }
        self.oracle.set_disturbed(true);
        lock(&plan).begin_phase(self.time.elapsed());
    }
}
