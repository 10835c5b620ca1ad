//! What is done to the cluster: by the world, and by people at a console.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use elasticjob::{
    coordination::{
        tree::Part,
        trigger::{Ask, Trigger},
    },
    job::{Failover, Misfire, RunId},
    registry::{Create, Expected, Registry, plant},
    runtime::Clock,
};

use super::{
    agenda::Act,
    jobs::{Plan, cron},
    line::Shared,
    world::{World, lock, tree_of},
};

impl World {
    /// Somebody who runs.
    fn victim(&self) -> Option<(usize, Arc<Shared>)> {
        let running = self.slots.iter().filter(|slot| slot.running.is_some());
        let nodes: Vec<usize> = running.filter_map(|slot| slot.node).collect();
        if nodes.is_empty() {
            return None;
        }
        let node = self.dice.pick(&nodes);
        Some((node, Arc::clone(self.lines.get(&node)?)))
    }

    pub(super) async fn mischief(&mut self) {
        let now = self.time.monotonic();
        let Some((node, line)) = self.victim() else { return };
        let short = Duration::from_millis(self.dice.between(50, 4_000));
        let long = Duration::from_millis(self.dice.between(4_000, 16_000));
        let span = if self.dice.percent(50) { short } else { long };
        let touches = self.temper.touches_configuration;
        match self.dice.between(0, if touches { 99 } else { 69 }) {
            0..14 => {
                self.book.tell(format_args!("n{node} freezes for {} ms", span.as_millis()));
                line.freeze();
                self.agenda.add(now + span, Act::Thaw { node });
            }
            14..26 => {
                self.book.tell(format_args!("n{node} is cut off for {} ms", span.as_millis()));
                line.cut();
                self.agenda.add(now + span, Act::Heal { node });
            }
            26..31 => {
                self.book.tell(format_args!("a partition for {} ms", span.as_millis()));
                let lines: Vec<(usize, Arc<Shared>)> =
                    self.lines.iter().map(|(node, line)| (*node, Arc::clone(line))).collect();
                for (node, line) in lines {
                    if self.dice.percent(50) {
                        line.cut();
                        self.agenda.add(now + span, Act::Heal { node });
                    }
                }
            }
            31..40 => {
                self.book.tell(format_args!("n{node} is killed"));
                line.kill();
                self.bury(node);
            }
            40..47 => self.stop(node % 10),
            47..54 => {
                self.book.tell(format_args!("n{node} is slow for {} ms", span.as_millis()));
                line.set_travel(20, self.dice.between(30, 700));
                self.agenda.add(now + span, Act::Recover { node });
            }
            54..62 => {
                self.book.tell(format_args!("n{node} hears nothing for {} ms", short.as_millis()));
                line.set_deaf(Some(now + short));
                self.agenda.add(now + short, Act::Recover { node });
            }
            62..66 => {
                let ahead = self.dice.between(0, 5_000) as i64 - 2_500;
                self.book.tell(format_args!("the clock of n{node} is set to {ahead} ms ahead"));
                self.slots[node % 10].ahead.store(ahead, Ordering::Relaxed);
            }
            66..70 => {
                let nodes: Vec<usize> = self.slots.iter().filter_map(|slot| slot.node).collect();
                if self.dice.percent(20) {
                    self.book.tell(format_args!("everybody is killed"));
                    for node in nodes {
                        if let Some(line) = self.lines.get(&node) {
                            line.kill();
                        }
                        self.bury(node);
                    }
                }
            }
            _ => self.administrate(node).await,
        }
    }

    /// What people do at a console.
    async fn administrate(&mut self, node: usize) {
        let now = self.time.monotonic();
        let number = self.dice.between(0, self.plans.len() as u64 - 1) as usize;
        let plan = Arc::clone(&self.plans[number]);
        let tree = tree_of(&plan);
        let later = now + Duration::from_millis(self.dice.between(500, 30_000));
        self.book.disturbed(true);
        match self.dice.between(0, 9) {
            0 | 1 => {
                let mut changed = lock(&plan).clone();
                match self.dice.between(0, 3) {
                    0 if !changed.wanders() => {
                        changed.job = changed.job.clone().shards(self.dice.between(1, 6) as u32);
                    }
                    1 => {
                        changed.every = self.dice.pick(&[5, 10, 30, 60]);
                        changed.job =
                            changed.job.clone().cron(&cron(changed.every)).expect("a good cron");
                    }
                    2 => {
                        let policy = self.dice.pick(&[Failover::TakeOver, Failover::Wait]);
                        changed.job = changed.job.clone().if_node_dies(policy);
                    }
                    _ => {
                        let policy = self.dice.pick(&[Misfire::RunOnce, Misfire::Skip]);
                        changed.job = changed.job.clone().if_late(policy);
                    }
                }
                self.book.tell(format_args!(
                    "job{number} is configured anew: every {} s, {} shards, {:?}, {:?}",
                    changed.every,
                    changed.job.shards.get(),
                    changed.job.failover,
                    changed.job.misfire
                ));
                if changed.job.failover == Failover::Wait {
                    self.book.takes_nothing_over(changed.job.name.as_str());
                }
                self.configure(&plan, changed).await;
            }
            2 => {
                let mut changed = lock(&plan).clone();
                changed.job.disabled = true;
                self.book.tell(format_args!("job{number} is disabled"));
                self.configure(&plan, changed).await;
                self.agenda.add(later, Act::Enable { job: number });
            }
            3 => {
                let shard =
                    self.dice.between(0, u64::from(lock(&plan).job.shards.get()) - 1) as u32;
                self.book.tell(format_args!("job{number}/{shard} is disabled"));
                let path = tree.shard(shard, Part::Disabled);
                if self.observer.create(Create::persistent(&path, "")).await.is_ok() {
                    let mut plan = lock(&plan);
                    plan.disabled_shards.insert(shard);
                    plan.begin_phase(self.time.elapsed());
                    self.agenda.add(later, Act::Enable { job: number });
                }
            }
            4 => {
                let slot = node % 10;
                self.book.tell(format_args!("the server of n{node} is disabled for job{number}"));
                let path = tree.server(Ipv4Addr::new(10, 0, 0, slot as u8 + 1));
                if self.observer.set(&path, "DISABLED".into(), Expected::Any).await.is_ok() {
                    let mut plan = lock(&plan);
                    plan.disabled_servers.insert(slot);
                    plan.begin_phase(self.time.elapsed());
                    self.agenda.add(later, Act::Enable { job: number });
                }
            }
            5..8 => {
                self.book.tell(format_args!("job{number} is triggered"));
                let all = self.observer.children(&tree.instances()).await.ok().flatten();
                for id in all.unwrap_or_default() {
                    let _ = plant(&self.observer, &tree.triggers()).await;
                    let _ = self.observer.create(Create::persistent(&tree.trigger(id), "")).await;
                }
            }
            _ => {
                let all = self.observer.children(&tree.instances()).await.ok().flatten();
                let server = format!("10.0.0.{}@", node % 10 + 1);
                let session = self.lines.get(&node).map(|line| line.session_id());
                for id in all.unwrap_or_default().into_iter().filter(|id| id.starts_with(&server)) {
                    let path = tree.instance(&id);
                    let stat = self.observer.exists(&path).await.ok().flatten();
                    if stat.is_some_and(|stat| stat.owner == session) {
                        self.book
                            .tell(format_args!("n{node} is shut down in job{number} from outside"));
                        let _ = self.observer.delete(&path, Expected::Any).await;
                        self.end_life(node);
                        // It is not in the job any more: its process is started anew before long.
                        self.agenda.add(later, Act::Stop { node });
                    }
                }
            }
        }
    }

    /// Somebody asks for a run of every job that can make up for the fire this may be in the way of.
    pub(super) async fn ask_for_all(&mut self) {
        for (number, plan) in self.plans.clone().iter().enumerate() {
            let can_wait = {
                let plan = lock(plan);
                plan.every >= 30 && plan.job.misfire == Misfire::RunOnce && !plan.has_java
            };
            if !can_wait {
                continue;
            }
            let run = RunId::triggered(number as u128 + 1);
            let ask = Trigger::Run(Ask { run: Some(run.clone()), ..Ask::default() }).to_bytes();
            let tree = tree_of(plan);
            let all = self.observer.children(&tree.instances()).await.ok().flatten();
            let _ = plant(&self.observer, &tree.triggers()).await;
            for id in all.unwrap_or_default() {
                let node = Create::persistent(&tree.trigger(id), ask.clone());
                let _ = self.observer.create(node).await;
            }
            self.asked.push((number, run));
        }
    }

    async fn configure(&self, plan: &Arc<Mutex<Plan>>, mut changed: Plan) {
        changed.begin_phase(self.time.elapsed());
        let tree = tree_of(plan);
        let yaml = changed.job.to_yaml();
        if self.observer.set(&tree.config(), yaml.into(), Expected::Any).await.is_ok() {
            *lock(plan) = changed;
        }
    }

    pub(super) async fn enable(&mut self, number: usize) {
        self.book.disturbed(true);
        let plan = Arc::clone(&self.plans[number]);
        let tree = tree_of(&plan);
        let mut changed = lock(&plan).clone();
        self.book.tell(format_args!("job{number} is enabled"));
        for shard in std::mem::take(&mut changed.disabled_shards) {
            let _ = self.observer.delete(&tree.shard(shard, Part::Disabled), Expected::Any).await;
        }
        changed.disabled_servers.clear();
        // All of them: whoever entered while the job was disabled did so with a disabled server.
        let servers = self.observer.children(&tree.servers()).await.ok().flatten();
        for address in servers.unwrap_or_default() {
            let path = tree.server(address);
            let _ = self.observer.set(&path, "ENABLED".into(), Expected::Any).await;
        }
        changed.job.disabled = false;
        self.configure(&plan, changed).await;
    }
}
