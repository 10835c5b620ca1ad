//! The checks at the end of a simulation.

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use jiff::Timestamp;

use super::{
    jobs::{JobPlan, Phase},
    oracle::Execution,
    world::{Membership, World, lock, tree_of},
};
use elasticjob::{
    coordination::{
        ledger::{LedgerPage, LedgerState},
        tree::{JobTree, ShardNode},
    },
    job::{Misfire, RunReason},
    registry::{Path, Registry},
};

/// How wrong clocks may be: a fire may start this much before or after it is due.
pub(super) const CLOCK_TOLERANCE: Duration = Duration::from_secs(3);
/// A misfire must have been compensated after this long without a fault: a bit longer than the longest run.
const COMPENSATED_WITHIN: Duration = Duration::from_secs(25);
/// How long a job must have had its configuration, and a node must have been a member, for a fire to be checked.
pub(super) const STABLE_FOR: Duration = Duration::from_secs(15);
/// A change by an operator is seen by every instance after this long without a fault.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

impl World {
    /// Checks that the cluster has settled and that no fire of the whole simulation vanished.
    pub(super) async fn run_final_checks(&mut self) {
        self.check_registry().await;
        self.check_last_fires();
        self.check_all_fires();
        self.check_catch_up();
        self.check_fire_gaps();
        self.check_coalesced_fires();
        self.check_final_triggers();
        self.check_accepted_triggers().await;
        self.check_closed_triggers().await;
        self.check_cancellations();
    }

    /// Every shard ran once for each trigger that came after the cluster had settled.
    fn check_final_triggers(&self) {
        for (number, run) in &self.final_triggers {
            let plan = lock(&self.plans[*number]);
            for shard in 0..plan.job.shards.get() {
                let is_it = |execution: &&Execution| {
                    execution.key.0 == plan.job.name.as_str()
                        && execution.key.1 == shard
                        && execution.run == *run
                        && execution.reason != RunReason::Retry
                };
                let count = self.oracle.lock().executions.iter().filter(is_it).count();
                if count != 1 {
                    self.oracle.report_violation(format_args!(
                        "{}/{shard} ran {count} times for a trigger although there was no fault",
                        plan.job.name
                    ));
                }
            }
        }
    }

    /// No node is left behind, every shard has a live owner, and shards are assigned evenly.
    async fn check_registry(&self) {
        for plan in &self.plans {
            let (name, total) = {
                let plan = lock(plan);
                (plan.job.name.to_string(), plan.job.shards.get())
            };
            let tree = tree_of(plan);
            let instances = self.children(&tree.instances()).await;
            let running = self.running_slots();
            if instances.len() != running.len() {
                self.oracle.report_violation(format_args!(
                    "{name} has instances {instances:?}, but {} nodes run",
                    running.len()
                ));
            }
            for flag in [tree.necessary(), tree.processing()] {
                if self.exists(&flag).await {
                    self.oracle.report_violation(format_args!("{flag} was left behind"));
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
                    self.oracle
                        .report_violation(format_args!("{left:?} was left behind in {folder}"));
                }
            }
            for slot in running {
                let path = tree.server(Ipv4Addr::new(10, 0, 0, slot as u8 + 1));
                let status = self.observer.get(&path).await.ok().flatten().map(|node| node.data);
                if status.as_deref() != Some(b"ENABLED") {
                    self.oracle.report_violation(format_args!("{path} is {status:?}"));
                }
            }
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            for shard in self.children(&tree.sharding()).await {
                let Ok(shard) = shard.parse::<u32>() else { continue };
                if shard >= total {
                    self.oracle.report_violation(format_args!(
                        "{name}/{shard} still exists, but the job has {total} shards"
                    ));
                    continue;
                }
                for part in [
                    ShardNode::Running,
                    ShardNode::Failover,
                    ShardNode::Failovering,
                    ShardNode::Misfire,
                ] {
                    let path = tree.shard(shard, part);
                    if self.exists(&path).await {
                        let node = self.observer.get(&path).await.ok().flatten();
                        let data =
                            node.map(|node| String::from_utf8_lossy(&node.data).into_owned());
                        self.oracle
                            .report_violation(format_args!("{path} was left behind by {data:?}"));
                    }
                }
                self.check_page(&name, shard, &tree, &instances).await;
                let owner =
                    self.observer.get(&tree.shard(shard, ShardNode::Owner)).await.ok().flatten();
                let owner = owner.map(|node| String::from_utf8_lossy(&node.data).into_owned());
                match owner {
                    Some(owner) if instances.contains(&owner) => {
                        *counts.entry(owner).or_default() += 1;
                    }
                    owner => self.oracle.report_violation(format_args!(
                        "{name}/{shard} is assigned to {owner:?}, instances are {instances:?}"
                    )),
                }
            }
            let assigned: u32 = counts.values().sum();
            if assigned != total {
                self.oracle.report_violation(format_args!(
                    "{assigned} of {total} shards of {name} have an owner"
                ));
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
                self.oracle.report_violation(format_args!(
                    "the shards of {name} are assigned unevenly: {counts:?}; instances {instances:?}, servers {servers:?}, leader {leader:?}"
                ));
            }
        }
    }

    /// No live instance holds the shard according to the ledger: between two fires nothing runs.
    async fn check_page(&self, name: &str, shard: u32, tree: &JobTree, instances: &[String]) {
        let node = self.observer.get(&tree.ledger_page(shard)).await.ok().flatten();
        let page = node.and_then(|node| LedgerPage::read(&node.data).ok()).unwrap_or_default();
        if let Some(holder) = &page.holder
            && page.state == LedgerState::Running
            && instances.iter().any(|id| id == holder.as_str())
        {
            self.oracle.report_violation(format_args!(
                "the page of {name}/{shard} says that {holder} still runs it"
            ));
        }
    }

    /// After the cluster has settled, every shard runs every fire once. Only a job that skips misfires may skip a fire that is due while one of its
    /// instances leaves: the owner no longer starts it, and for the next owner it is late.
    fn check_last_fires(&self) {
        let until = self.time.elapsed().saturating_sub(CLOCK_TOLERANCE);
        let mut violations = Vec::new();
        for plan in &self.plans {
            let plan = lock(plan);
            for due in fires(plan.every, self.settled_at, until) {
                let leaves = |member: &Membership| {
                    member.until.is_some_and(|at| at.abs_diff(due) <= CLOCK_TOLERANCE)
                };
                let may_skip =
                    plan.job.misfire == Misfire::Skip && self.memberships.iter().any(leaves);
                for shard in 0..plan.job.shards.get() {
                    let count = self.count(&plan, shard, due);
                    if count != 1 && !(count == 0 && may_skip) {
                        violations.push(format!("{}/{shard} ran {count} times for the fire of {} s although there was no fault", plan.job.name, due.as_secs()));
                    }
                }
            }
        }
        for violation in violations {
            self.oracle.report_violation(format_args!("{violation}"));
        }
    }

    /// Every fire that could run has run.
    fn check_all_fires(&self) {
        let end = self.time.elapsed();
        let mut violations = Vec::new();
        for plan in &self.plans {
            let plan = lock(plan);
            for (number, (from, phase)) in plan.phases.iter().enumerate() {
                let until = plan.phases.get(number + 1).map_or(end, |(until, _)| *until);
                // A misfire of a job that fires more often than that may be answered by the next fire.
                if !phase.is_enabled
                    || phase.is_invalid
                    || phase.misfire == Misfire::Skip
                    || phase.every < 30
                    || plan.has_java
                {
                    continue;
                }
                let every = Duration::from_secs(phase.every);
                for due in fires(phase.every, *from + STABLE_FOR, until) {
                    let next = due + every;
                    if next > until || !self.must_have_been_compensated(phase, due, next) {
                        continue;
                    }
                    for shard in (0..phase.total).filter(|shard| phase.can_run(*shard)) {
                        // While a run is stuck, no later fire of its shard can be compensated.
                        let job = plan.job.name.as_str();
                        let compensated_from = next.saturating_sub(COMPENSATED_WITHIN);
                        let was_stuck =
                            self.oracle.lock().was_stuck(job, shard, compensated_from, next);
                        if !was_stuck && self.count(&plan, shard, due) == 0 {
                            violations.push(format!("{}/{shard} never ran for the fire of {} s, and that was not compensated", plan.job.name, due.as_secs()));
                        }
                    }
                }
            }
        }
        for violation in violations {
            self.oracle.report_violation(format_args!("{violation}"));
        }
    }

    /// No fire of a time when its job or shard was disabled was caught up, if the enabling was stored or an instance saw it.
    fn check_catch_up(&self) {
        let mut violations = Vec::new();
        for plan in &self.plans {
            let plan = lock(plan);
            let is_caught_up = |execution: &&Execution| {
                execution.key.0 == plan.job.name.as_str() && execution.reason == RunReason::CatchUp
            };
            let caught_up: Vec<(usize, u32, Timestamp)> = {
                let oracle = self.oracle.lock();
                let executions = oracle.executions.iter().filter(is_caught_up);
                executions
                    .map(|execution| (execution.node, execution.key.1, execution.due_at))
                    .collect()
            };
            for (node, shard, due_at) in caught_up {
                let due = self.time.since_epoch(due_at).unsigned_abs();
                // An instance may have seen a change before or after another one did, or by another clock.
                let around = [due.saturating_sub(SEEN_WITHIN), due + SEEN_WITHIN];
                let [Some(before), Some((at, phase))] =
                    around.map(|at| plan.enabled_after(shard, at))
                else {
                    continue;
                };
                if before.0 == *at && (phase.has_stored_floor || self.was_seen(*at)) {
                    violations.push(format!(
                        "n{node} caught up {}/{shard} for the fire of {} s, when it was disabled",
                        plan.job.name,
                        due.as_secs()
                    ));
                }
            }
        }
        for violation in violations {
            self.oracle.report_violation(format_args!("{violation}"));
        }
    }

    /// Whether a node was a member when something changed at `at`, and stayed one without any fault until it must have seen that.
    fn was_seen(&self, at: Duration) -> bool {
        let until = at + SEEN_WITHIN;
        let is_undisturbed = {
            let oracle = self.oracle.lock();
            let now = oracle.undisturbed_since.map(|since| (since, Duration::MAX));
            let mut periods = oracle.undisturbed_periods.iter().copied().chain(now);
            periods.any(|(since, end)| since <= at && end >= until)
        };
        is_undisturbed
            && self.memberships.iter().any(|membership| {
                membership.from + STABLE_FOR <= at
                    && membership.until.is_none_or(|end| end >= until)
            })
    }

    /// Whether there was a member all the time, and there was no fault for long enough before the next fire. A member may hand over to one that
    /// joined early enough.
    fn must_have_been_compensated(&self, phase: &Phase, due: Duration, next: Duration) -> bool {
        let enabled = |member: &&Membership| !phase.disabled_servers.contains(&member.slot);
        let mut members: Vec<&Membership> = self.memberships.iter().filter(enabled).collect();
        members.sort_by_key(|member| member.from);
        // Until when there was a member.
        let mut until = due;
        for member in members {
            if member.from + STABLE_FOR <= until {
                until = until.max(member.until.unwrap_or(Duration::MAX));
            }
        }
        let has_member = until >= next;
        let oracle = self.oracle.lock();
        let now = oracle.undisturbed_since.map(|since| (since, Duration::MAX));
        let is_undisturbed =
            oracle.undisturbed_periods.iter().copied().chain(now).any(|(since, until)| {
                since + COMPENSATED_WITHIN + CLOCK_TOLERANCE <= next && until >= next
            });
        has_member && is_undisturbed
    }

    fn count(&self, plan: &JobPlan, shard: u32, due: Duration) -> usize {
        let due_at = self.time.at(due);
        let oracle = self.oracle.lock();
        oracle
            .executions
            .iter()
            .filter(|execution| {
                execution.key.0 == plan.job.name.as_str()
                    && execution.key.1 == shard
                    && execution.run.is_scheduled()
                    && execution.reason != RunReason::Retry
                    && execution.due_at == due_at
            })
            .count()
    }

    pub(super) async fn children(&self, path: &Path) -> Vec<String> {
        self.observer.children(path).await.ok().flatten().unwrap_or_default()
    }

    pub(super) async fn exists(&self, path: &Path) -> bool {
        self.observer.exists(path).await.ok().flatten().is_some()
    }
}

/// The fires of a job that fires every `every` seconds, in this period.
pub(super) fn fires(every: u64, from: Duration, until: Duration) -> impl Iterator<Item = Duration> {
    let first = from.as_secs().next_multiple_of(every);
    (first..).step_by(every as usize).map(Duration::from_secs).take_while(move |due| *due <= until)
}
