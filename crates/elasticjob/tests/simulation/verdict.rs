//! What has to be true in the end.

use std::{collections::BTreeMap, time::Duration};

use super::{
    book::Execution,
    jobs::{Phase, Plan},
    world::{World, lock, tree_of},
};
use elasticjob::{
    coordination::tree::Part,
    job::{Misfire, Reason},
    registry::{Path, Registry},
};

/// How far clocks may be off: a fire may begin that much before it is due, or after.
const SLACK: Duration = Duration::from_secs(3);
/// How long nothing may have been wrong for a missed fire to have been made up for: as long as the longest run, and a bit.
const MADE_UP_WITHIN: Duration = Duration::from_secs(25);
/// How long a job has to have been as it is, and a node a member, for a fire to count.
const ESTABLISHED: Duration = Duration::from_secs(15);

impl World {
    /// Whether everything came to rest, and every fire of the whole story was looked after.
    pub(super) async fn judge(&mut self) {
        self.judge_tree().await;
        self.judge_last_fires();
        self.judge_all_fires();
        self.judge_asks();
    }

    /// What was asked for ran on every shard, once.
    fn judge_asks(&self) {
        for (number, run) in &self.asked {
            let plan = lock(&self.plans[*number]);
            for shard in 0..plan.job.shards.get() {
                let is_it = |execution: &&Execution| {
                    execution.place.0 == plan.job.name.as_str()
                        && execution.place.1 == shard
                        && execution.run == *run
                        && execution.reason != Reason::Retry
                };
                let count = self.book.lock().executions.iter().filter(is_it).count();
                if count != 1 {
                    self.book.violated(format_args!(
                        "{}/{shard} ran {count} times for what was asked for when nothing was wrong",
                        plan.job.name
                    ));
                }
            }
        }
    }

    /// Nothing is left behind, and every shard has a living owner.
    async fn judge_tree(&self) {
        for plan in &self.plans {
            let (name, total) = {
                let plan = lock(plan);
                (plan.job.name.to_string(), plan.job.shards.get())
            };
            let tree = tree_of(plan);
            let instances = self.children(&tree.instances()).await;
            let running = self.running();
            if instances.len() != running.len() {
                self.book.violated(format_args!(
                    "{name} has instances {instances:?}, and {} nodes run",
                    running.len()
                ));
            }
            for flag in [tree.necessary(), tree.processing()] {
                if self.is_there(&flag).await {
                    self.book.violated(format_args!("{flag} was left behind"));
                }
            }
            for folder in [
                tree.failover_items(),
                tree.triggers(),
                tree.election_latch(),
                tree.failover_latch(),
            ] {
                let left = self.children(&folder).await;
                if !left.is_empty() {
                    self.book
                        .violated(format_args!("{folder} has {left:?}, which was left behind"));
                }
            }
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            for shard in self.children(&tree.sharding()).await {
                let Ok(shard) = shard.parse::<u32>() else { continue };
                if shard >= total {
                    self.book.violated(format_args!(
                        "{name}/{shard} is above {total} shards and still there"
                    ));
                    continue;
                }
                for part in [Part::Running, Part::Failover, Part::Failovering, Part::Misfire] {
                    let path = tree.shard(shard, part);
                    if self.is_there(&path).await {
                        let node = self.observer.get(&path).await.ok().flatten();
                        let data =
                            node.map(|node| String::from_utf8_lossy(&node.data).into_owned());
                        self.book.violated(format_args!("{path} was left behind by {data:?}"));
                    }
                }
                let owner = self.observer.get(&tree.shard(shard, Part::Owner)).await.ok().flatten();
                let owner = owner.map(|node| String::from_utf8_lossy(&node.data).into_owned());
                match owner {
                    Some(owner) if instances.contains(&owner) => {
                        *counts.entry(owner).or_default() += 1;
                    }
                    owner => self.book.violated(format_args!(
                        "{name}/{shard} belongs to {owner:?}, and there are {instances:?}"
                    )),
                }
            }
            let dealt: u32 = counts.values().sum();
            if dealt != total {
                self.book
                    .violated(format_args!("{dealt} of {total} shards of {name} have an owner"));
            }
            let most = counts.values().max().copied().unwrap_or(0);
            if u64::from(most) > u64::from(total).div_ceil(instances.len().max(1) as u64) {
                let leader = self.observer.get(&tree.leader()).await.ok().flatten();
                let leader = leader.map(|node| String::from_utf8_lossy(&node.data).into_owned());
                let mut servers = Vec::new();
                for address in
                    self.observer.children(&tree.servers()).await.ok().flatten().unwrap_or_default()
                {
                    let node = self.observer.get(&tree.server(&address)).await.ok().flatten();
                    let status = node.map(|node| String::from_utf8_lossy(&node.data).into_owned());
                    servers.push((address, status.unwrap_or_default()));
                }
                self.book.violated(format_args!(
                    "the shards of {name} are dealt unevenly: {counts:?}; there are {instances:?} on {servers:?}, and {leader:?} leads"
                ));
            }
        }
    }

    /// After everything has come to rest every shard runs every fire, once.
    fn judge_last_fires(&self) {
        let until = self.time.elapsed().saturating_sub(SLACK);
        let mut wrong = Vec::new();
        for plan in &self.plans {
            let plan = lock(plan);
            for due in fires(plan.every, self.settled_at, until) {
                for shard in 0..plan.job.shards.get() {
                    let count = self.count(&plan, shard, due);
                    if count != 1 {
                        wrong.push(format!("{}/{shard} ran {count} times for the fire of {} s, when nothing was wrong", plan.job.name, due.as_secs()));
                    }
                }
            }
        }
        for wrong in wrong {
            self.book.violated(format_args!("{wrong}"));
        }
    }

    /// Every fire that could be looked after was.
    fn judge_all_fires(&self) {
        let end = self.time.elapsed();
        let mut wrong = Vec::new();
        for plan in &self.plans {
            let plan = lock(plan);
            for (number, (from, phase)) in plan.phases.iter().enumerate() {
                let until = plan.phases.get(number + 1).map_or(end, |(until, _)| *until);
                // What is due more often than it can be made up for is made up for by what is due next.
                if !phase.is_on
                    || phase.misfire == Misfire::Skip
                    || phase.every < 30
                    || plan.has_java
                {
                    continue;
                }
                let every = Duration::from_secs(phase.every);
                for due in fires(phase.every, *from + ESTABLISHED, until) {
                    let next = due + every;
                    if next > until || !self.could_be_made_up_for(phase, due, next) {
                        continue;
                    }
                    for shard in
                        (0..phase.total).filter(|shard| !phase.disabled_shards.contains(shard))
                    {
                        if self.count(&plan, shard, due) == 0 {
                            wrong.push(format!("{}/{shard} never ran for the fire of {} s, and nobody made up for it", plan.job.name, due.as_secs()));
                        }
                    }
                }
            }
        }
        for wrong in wrong {
            self.book.violated(format_args!("{wrong}"));
        }
    }

    /// Whether somebody was there all the time, and nothing was wrong for long enough before the next fire.
    fn could_be_made_up_for(&self, phase: &Phase, due: Duration, next: Duration) -> bool {
        let is_there = self.lives.iter().any(|life| {
            life.from + ESTABLISHED <= due
                && life.until.is_none_or(|until| until >= next)
                && !phase.disabled_servers.contains(&life.slot)
        });
        let book = self.book.lock();
        let now = book.calm_since.map(|since| (since, Duration::MAX));
        let is_calm = book
            .calm
            .iter()
            .copied()
            .chain(now)
            .any(|(since, until)| since + MADE_UP_WITHIN + SLACK <= next && until >= next);
        is_there && is_calm
    }

    fn count(&self, plan: &Plan, shard: u32, due: Duration) -> usize {
        let due_at = self.time.at(due);
        let book = self.book.lock();
        book.executions
            .iter()
            .filter(|execution| {
                execution.place.0 == plan.job.name.as_str()
                    && execution.place.1 == shard
                    && execution.run.is_scheduled()
                    && execution.reason != Reason::Retry
                    && execution.due_at == due_at
            })
            .count()
    }

    async fn children(&self, path: &Path) -> Vec<String> {
        self.observer.children(path).await.ok().flatten().unwrap_or_default()
    }

    async fn is_there(&self, path: &Path) -> bool {
        self.observer.exists(path).await.ok().flatten().is_some()
    }
}

/// The fires of a job that is due this often, from until.
fn fires(every: u64, from: Duration, until: Duration) -> impl Iterator<Item = Duration> {
    let first = from.as_secs().next_multiple_of(every);
    (first..).step_by(every as usize).map(Duration::from_secs).take_while(move |due| *due <= until)
}
