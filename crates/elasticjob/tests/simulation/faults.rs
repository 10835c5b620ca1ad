//! What is done to the cluster during the fault phase: random faults, and changes by operators.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use elasticjob::{
    coordination::{floor::Floor, tree::ShardNode},
    job::{Failover, Misfire},
    registry::{Create, ExpectedVersion, Registry, ensure_path},
    runtime::Clock,
};

use super::{
    jobs::{JobPlan, cron},
    network::Connection,
    schedule::Action,
    world::{World, lock, tree_of},
};

impl World {
    fn random_running_node(&self) -> Option<(usize, Arc<Connection>)> {
        let running = self.slots.iter().filter(|slot| slot.running.is_some());
        let nodes: Vec<usize> = running.filter_map(|slot| slot.node).collect();
        if nodes.is_empty() {
            return None;
        }
        let node = self.rng.pick(&nodes);
        Some((node, Arc::clone(self.connections.get(&node)?)))
    }

    pub(super) async fn inject_fault(&mut self) {
        let now = self.time.monotonic();
        if self.second_rng.percent(3) {
            self.begin_rolling_restart();
        }
        if self.fault_profile.sets_registry_clock && self.second_rng.percent(10) {
            self.set_registry_clock();
        }
        if self.second_rng.percent(2) {
            self.begin_maintenance().await;
        }
        let Some((node, connection)) = self.random_running_node() else { return };
        let short = Duration::from_millis(self.rng.between(50, 4_000));
        let long = Duration::from_millis(self.rng.between(4_000, 16_000));
        let span = if self.rng.percent(50) { short } else { long };
        let changes_configuration = self.fault_profile.changes_configuration;
        match self.rng.between(0, if changes_configuration { 99 } else { 69 }) {
            0..14 => {
                self.oracle.log(format_args!("n{node} freezes for {} ms", span.as_millis()));
                connection.freeze();
                self.schedule.add(now + span, Action::Thaw { node });
            }
            14..26 => {
                self.oracle.log(format_args!("n{node} is cut off for {} ms", span.as_millis()));
                connection.cut();
                self.schedule.add(now + span, Action::Heal { node });
            }
            26..31 => {
                self.oracle.log(format_args!("network partition for {} ms", span.as_millis()));
                let connections: Vec<(usize, Arc<Connection>)> = self
                    .connections
                    .iter()
                    .map(|(node, connection)| (*node, Arc::clone(connection)))
                    .collect();
                for (node, connection) in connections {
                    if self.rng.percent(50) {
                        connection.cut();
                        self.schedule.add(now + span, Action::Heal { node });
                    }
                }
            }
            31..40 => {
                self.oracle.log(format_args!("n{node} is killed"));
                connection.kill();
                self.remove_process(node);
            }
            40..47 => self.stop(node % 10),
            47..54 => {
                self.oracle.log(format_args!("n{node} is slow for {} ms", span.as_millis()));
                connection.set_latency(20, self.rng.between(30, 700));
                self.schedule.add(now + span, Action::Recover { node });
            }
            54..62 => {
                self.oracle.log(format_args!(
                    "n{node} receives no notifications for {} ms",
                    short.as_millis()
                ));
                connection.hold_notifications(Some(now + short));
                self.schedule.add(now + short, Action::Recover { node });
            }
            62 => {
                let hours = self.rng.pick(&[1, 24, -1]);
                let slot = node % 10;
                self.oracle.log(format_args!("the clock of n{node} is set to {hours} h ahead"));
                self.slots[slot].clock_offset.store(hours * 3_600_000, Ordering::Relaxed);
                self.schedule.add(now + long, Action::SetClock { slot });
            }
            63..66 => {
                let clock_offset = self.rng.between(0, 5_000) as i64 - 2_500;
                self.oracle
                    .log(format_args!("the clock of n{node} is set to {clock_offset} ms ahead"));
                self.slots[node % 10].clock_offset.store(clock_offset, Ordering::Relaxed);
            }
            66..70 => {
                if self.rng.percent(20) {
                    self.kill_all();
                }
            }
            _ => self.administer(node).await,
        }
    }

    /// Kills a node in the middle of a run, sometimes.
    pub(super) fn kill_in_mid_run(&mut self) {
        let Some(node) = self.oracle.node_in_mid_run() else { return };
        let Some(connection) = self.connections.get(&node) else { return };
        if self.foreign_rng.percent(15) {
            self.oracle.log(format_args!("n{node} is killed in the middle of a run"));
            connection.kill();
            self.remove_process(node);
        }
    }

    pub(super) fn kill_all(&mut self) {
        self.oracle.log(format_args!("all nodes are killed"));
        let nodes: Vec<usize> = self.slots.iter().filter_map(|slot| slot.node).collect();
        for node in nodes {
            if let Some(connection) = self.connections.get(&node) {
                connection.kill();
            }
            self.remove_process(node);
        }
    }

    /// A job is disabled for a while and enabled again; then all nodes go. The next ones must not catch up on that time.
    async fn begin_maintenance(&mut self) {
        if !self.fault_profile.changes_configuration {
            return;
        }
        let number = self.second_rng.between(0, self.plans.len() as u64 - 1) as usize;
        let plan = Arc::clone(&self.plans[number]);
        let mut changed = lock(&plan).clone();
        changed.job.disabled = true;
        self.oracle.set_disturbed(true);
        self.oracle.log(format_args!("job{number} is disabled for maintenance"));
        self.configure(&plan, changed).await;
        let seconds = |from, to| Duration::from_secs(self.second_rng.between(from, to));
        let enabled_at = self.time.monotonic() + seconds(15, 40);
        self.schedule.add(enabled_at, Action::Enable { job: number });
        self.schedule.add(enabled_at + seconds(6, 10), Action::KillAll);
    }

    /// The registry's leader changes to a server with another time, or the clocks of the registry and of all nodes are set ahead together.
    fn set_registry_clock(&mut self) {
        let hours = self.second_rng.pick(&[1, 24]);
        let is_alone = self.second_rng.percent(50);
        self.oracle.log(format_args!("the registry is {hours} h ahead, alone: {is_alone}"));
        self.oracle.registry_clock_set();
        self.registry_offset.store(hours * 3_600_000, Ordering::Relaxed);
        for slot in self.slots.iter().filter(|_| !is_alone) {
            slot.clock_offset.store(hours * 3_600_000, Ordering::Relaxed);
        }
        let span = Duration::from_millis(self.second_rng.between(2_000, 45_000));
        self.schedule.add(self.time.monotonic() + span, Action::SetAllClocks);
    }

    /// A deployment: every node is replaced, one after the other. Each successor has joined before its predecessor stops, at another address.
    fn begin_rolling_restart(&mut self) {
        let running = self.running_slots();
        let Some(free) = (0..self.slots.len()).find(|slot| self.slots[*slot].node.is_none()) else {
            return;
        };
        self.oracle.log(format_args!("a rolling restart begins"));
        let mut then = self.time.monotonic();
        let mut successor = free;
        for slot in running {
            self.schedule.add(then, Action::Start { slot: successor });
            then = then + Duration::from_millis(self.second_rng.between(16_000, 25_000));
            if let Some(node) = self.slots[slot].node {
                self.schedule.add(then, Action::Stop { node });
            }
            then = then + Duration::from_millis(self.second_rng.between(500, 8_000));
            successor = slot;
        }
    }

    /// A random change as an operator makes it in the console.
    async fn administer(&mut self, node: usize) {
        let now = self.time.monotonic();
        let number = self.rng.between(0, self.plans.len() as u64 - 1) as usize;
        let plan = Arc::clone(&self.plans[number]);
        let tree = tree_of(&plan);
        let later = now + Duration::from_millis(self.rng.between(500, 30_000));
        self.oracle.set_disturbed(true);
        match self.rng.between(0, 9) {
            0 | 1 => {
                let mut changed = lock(&plan).clone();
                match self.rng.between(0, 3) {
                    0 if !changed.is_rotating() => {
                        changed.job = changed.job.clone().shards(self.rng.between(1, 6) as u32);
                    }
                    1 => {
                        changed.every = self.rng.pick(&[5, 10, 30, 60]);
                        changed.job =
                            changed.job.clone().cron(&cron(changed.every)).expect("valid cron");
                    }
                    2 => {
                        let policy = self.rng.pick(&[Failover::TakeOver, Failover::Wait]);
                        changed.job = changed.job.clone().failover(policy);
                    }
                    _ => {
                        let policy = self.rng.pick(&[Misfire::RunOnce, Misfire::Skip]);
                        changed.job = changed.job.clone().misfire(policy);
                    }
                }
                self.oracle.log(format_args!(
                    "job{number} is reconfigured: every {} s, {} shards, {:?}, {:?}",
                    changed.every,
                    changed.job.shards.get(),
                    changed.job.failover,
                    changed.job.misfire
                ));
                if changed.job.failover == Failover::Wait {
                    self.oracle.failover_disabled(changed.job.name.as_str());
                }
                self.configure(&plan, changed).await;
            }
            2 => {
                let mut changed = lock(&plan).clone();
                changed.job.disabled = true;
                self.oracle.log(format_args!("job{number} is disabled"));
                self.configure(&plan, changed).await;
                self.schedule.add(later, Action::Enable { job: number });
            }
            3 => {
                let shard = self.rng.between(0, u64::from(lock(&plan).job.shards.get()) - 1) as u32;
                self.oracle.log(format_args!("job{number}/{shard} is disabled"));
                let path = tree.shard(shard, ShardNode::Disabled);
                if self.observer.create(Create::persistent(&path, "")).await.is_ok() {
                    let mut plan = lock(&plan);
                    plan.disabled_shards.insert(shard);
                    plan.begin_phase(self.time.elapsed());
                    self.schedule.add(later, Action::Enable { job: number });
                }
            }
            4 => {
                let slot = node % 10;
                self.oracle.log(format_args!("the server of n{node} is disabled for job{number}"));
                let path = tree.server(Ipv4Addr::new(10, 0, 0, slot as u8 + 1));
                if self.observer.set(&path, "DISABLED".into(), ExpectedVersion::Any).await.is_ok() {
                    let mut plan = lock(&plan);
                    plan.disabled_servers.insert(slot);
                    plan.begin_phase(self.time.elapsed());
                    self.schedule.add(later, Action::Enable { job: number });
                }
            }
            5..8 => {
                self.oracle.log(format_args!("job{number} is triggered"));
                let all = self.observer.children(&tree.instances()).await.ok().flatten();
                for id in all.unwrap_or_default() {
                    let _ = ensure_path(&*self.observer, &tree.triggers()).await;
                    let _ = self.observer.create(Create::persistent(&tree.trigger(id), "")).await;
                }
            }
            _ => {
                let all = self.observer.children(&tree.instances()).await.ok().flatten();
                let server = format!("10.0.0.{}@", node % 10 + 1);
                let session = self.connections.get(&node).map(|connection| connection.session_id());
                for id in all.unwrap_or_default().into_iter().filter(|id| id.starts_with(&server)) {
                    let path = tree.instance(&id);
                    let stat = self.observer.exists(&path).await.ok().flatten();
                    if stat.is_some_and(|stat| stat.owner == session) {
                        self.oracle.log(format_args!(
                            "n{node} is shut down in job{number} by an operator"
                        ));
                        let _ = self.observer.delete(&path, ExpectedVersion::Any).await;
                        self.end_membership(node);
                        // The node has left the job, so its process is restarted before long.
                        self.schedule.add(later, Action::Stop { node });
                    }
                }
            }
        }
    }

    async fn configure(&self, plan: &Arc<Mutex<JobPlan>>, mut changed: JobPlan) {
        changed.has_stored_floor &= !changed.job.disabled;
        changed.is_invalid = false;
        changed.begin_phase(self.time.elapsed());
        let tree = tree_of(plan);
        let yaml = changed.job.to_yaml();
        if self.observer.set(&tree.config(), yaml.into(), ExpectedVersion::Any).await.is_ok() {
            *lock(plan) = changed;
        }
    }

    pub(super) async fn enable(&mut self, number: usize) {
        self.oracle.set_disturbed(true);
        let plan = Arc::clone(&self.plans[number]);
        let tree = tree_of(&plan);
        let mut changed = lock(&plan).clone();
        self.oracle.log(format_args!("job{number} is enabled"));
        for shard in std::mem::take(&mut changed.disabled_shards) {
            let _ = self
                .observer
                .delete(&tree.shard(shard, ShardNode::Disabled), ExpectedVersion::Any)
                .await;
        }
        changed.disabled_servers.clear();
        // All servers: an instance that joined while the job was disabled has a disabled server.
        let servers = self.observer.children(&tree.servers()).await.ok().flatten();
        for address in servers.unwrap_or_default() {
            let path = tree.server(address);
            let status = self.observer.get(&path).await.ok().flatten();
            // An empty status is for the instances to replace.
            if status.is_some_and(|node| !node.data.is_empty()) {
                let _ = self.observer.set(&path, "ENABLED".into(), ExpectedVersion::Any).await;
            }
        }
        changed.job.disabled = false;
        // Our console stores since when the job is enabled, Java's does not.
        changed.has_stored_floor = self.second_rng.percent(50);
        if changed.has_stored_floor {
            let floor = self.observer.get(&tree.floor()).await.ok().flatten();
            let enabled = Floor::of_job(self.time.at(self.time.elapsed()));
            if let Ok(Some(op)) = Floor::store(&tree, floor.as_ref(), &enabled) {
                changed.has_stored_floor = self.observer.multi(vec![op]).await.is_ok();
            }
        }
        self.configure(&plan, changed).await;
    }
}
