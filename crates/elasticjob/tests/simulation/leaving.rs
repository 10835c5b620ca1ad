//! Nodes leave a job and join it again while their process lives on. Some are cut off at that moment, and in some a run never ends.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    execution::{Execution, Failure, Listener, ShardResult},
    registry::Registry,
    runtime::Clock,
};
use tokio::task::AbortHandle;

use super::{
    jobs::HandlerContext,
    rng::Rng,
    schedule::Action,
    world::{Membership, NodeEvent, World, lock, tree_of},
};

/// After this long without a fault nothing of a node may be left in a job that it has left.
const LEFT_WITHIN: Duration = Duration::from_secs(20);
/// How often that is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Pause between two attempts to join a job again.
const REJOIN_PAUSE: Duration = Duration::from_secs(1);

/// A job that a running node has left.
pub(super) struct LeftJob {
    pub(super) job: usize,
    since: Duration,
    /// Joining the job again has begun.
    is_rejoining: bool,
    /// The task that leaves or joins, while there is one.
    task: Option<AbortHandle>,
}

impl Drop for LeftJob {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Has its own random numbers, so that seeds in which no job is left stay what they are.
pub(super) fn rng_of(seed: u64) -> Rng {
    Rng::new(seed ^ 0x6c65_6176_696e_6721)
}

impl World {
    pub(super) fn schedule_leaving(&mut self) {
        if self.leaving_rng.percent(30) {
            let pause = Duration::from_millis(self.leaving_rng.between(8_000, 30_000));
            self.schedule.add(self.time.monotonic() + pause, Action::LeaveJob);
        }
    }

    /// A random node leaves a random job, and joins it again after a while.
    pub(super) fn leave_job(&mut self) {
        if self.is_fault_free.load(Ordering::Relaxed) {
            return;
        }
        let now = self.time.monotonic();
        let again = Duration::from_millis(self.leaving_rng.between(15_000, 45_000));
        self.schedule.add(now + again, Action::LeaveJob);
        let slots = self.slots.iter().filter(|slot| slot.left.is_none());
        let nodes: Vec<usize> =
            slots.filter(|slot| slot.running.is_some()).filter_map(|slot| slot.node).collect();
        // One node at least takes part all the time.
        if nodes.len() < 2 {
            return;
        }
        let node = self.leaving_rng.pick(&nodes);
        let job = self.leaving_rng.between(0, self.plans.len() as u64 - 1) as usize;
        let is_cut = self.leaving_rng.percent(40);
        let sticks = self.leaving_rng.percent(40);
        let cut = Duration::from_millis(self.leaving_rng.between(500, 5_000));
        self.oracle
            .log(format_args!("n{node} leaves job{job}, cut off: {is_cut}, stuck: {sticks}"));
        if is_cut && let Some(connection) = self.connections.get(&node) {
            connection.cut();
            self.schedule.add(now + cut, Action::Heal { node });
        }
        self.end_membership(node);
        let slot = &mut self.slots[node % 10];
        slot.jobs[job].sticks.store(sticks, Ordering::Relaxed);
        let Some(running) = slot.running.clone() else { return };
        let name = lock(&self.plans[job]).job.name.clone();
        let task = self.tasks.spawn(async move {
            running.remove(&name).await;
            NodeEvent::Left(node)
        });
        let since = self.time.elapsed();
        slot.left = Some(LeftJob { job, since, is_rejoining: false, task: Some(task) });
        self.schedule.add(now + CHECK_INTERVAL, Action::CheckLeft { node });
    }

    pub(super) fn has_left(&mut self, node: usize) {
        let slot = &mut self.slots[node % 10];
        let Some(left) = slot.left.as_mut().filter(|_| slot.node == Some(node)) else { return };
        left.task = None;
        self.oracle.log(format_args!("n{node} has left job{}", left.job));
        let pause = if self.leaving_rng.percent(50) {
            self.leaving_rng.between(1_000, 5_000)
        } else {
            self.leaving_rng.between(40_000, 60_000)
        };
        let pause = Duration::from_millis(pause);
        self.schedule.add(self.time.monotonic() + pause, Action::Rejoin { node });
    }

    pub(super) fn rejoin(&mut self, node: usize) {
        let slot = &mut self.slots[node % 10];
        let is_current = slot.node == Some(node);
        let (Some(left), Some(running)) =
            (slot.left.as_mut().filter(|_| is_current), slot.running.clone())
        else {
            return;
        };
        if left.task.is_some() {
            return;
        }
        left.is_rejoining = true;
        slot.jobs[left.job].sticks.store(false, Ordering::Relaxed);
        let job = slot.jobs[left.job].node_job();
        // Some callers do not wait for the end: then the node must not have joined.
        let patience = if self.leaving_rng.percent(25) {
            Duration::from_millis(self.leaving_rng.between(5, 80))
        } else {
            Duration::MAX
        };
        let joining = async move {
            let joined = tokio::time::timeout(patience, running.add(job)).await;
            NodeEvent::Rejoined(
                node,
                joined
                    .map_err(|_| "given up".to_owned())
                    .and_then(|joined| joined.map_err(|error| error.to_string())),
            )
        };
        left.task = Some(self.tasks.spawn(joining));
    }

    pub(super) fn has_rejoined(&mut self, node: usize, result: Result<(), String>) {
        let slot = &mut self.slots[node % 10];
        let Some(left) = slot.left.as_mut().filter(|_| slot.node == Some(node)) else { return };
        left.task = None;
        if let Err(error) = result {
            left.is_rejoining = false;
            // What it has written is deleted from now on.
            if !error.contains("still leaving") {
                left.since = self.time.elapsed();
            }
            self.oracle.log(format_args!("n{node} did not join job{} again: {error}", left.job));
            self.schedule.add(self.time.monotonic() + REJOIN_PAUSE, Action::Rejoin { node });
            return;
        }
        self.oracle.log(format_args!("n{node} has joined job{} again", left.job));
        slot.left = None;
        let from = self.time.elapsed();
        self.memberships.push(Membership { node, slot: node % 10, from, until: None });
    }

    /// The fault phase ends: every node joins the jobs that it has left.
    pub(super) fn rejoin_all(&mut self) {
        let nodes: Vec<usize> = self.slots.iter().filter_map(|slot| slot.node).collect();
        for node in nodes {
            self.rejoin(node);
        }
    }

    /// Nothing of a node is left in a job that it has left, unless a run of it goes on beside Java.
    pub(super) async fn check_left(&mut self, node: usize) {
        let slot = &self.slots[node % 10];
        let Some(left) = slot.left.as_ref().filter(|_| slot.node == Some(node)) else { return };
        self.schedule.add(self.time.monotonic() + CHECK_INTERVAL, Action::CheckLeft { node });
        if left.is_rejoining || lock(&self.plans[left.job]).has_java {
            return;
        }
        let now = self.time.elapsed();
        let is_quiet = self
            .oracle
            .lock()
            .undisturbed_since
            .is_some_and(|since| now >= since.max(left.since) + LEFT_WITHIN);
        let Some(connection) = self.connections.get(&node).filter(|_| is_quiet) else { return };
        let (tree, session) = (tree_of(&self.plans[left.job]), connection.session_id());
        let ids = self.observer.children(&tree.instances()).await.ok().flatten();
        let instances = ids.unwrap_or_default().into_iter().map(|id| tree.instance(id));
        for path in instances.chain([tree.leader(), tree.processing()]) {
            let stat = self.observer.exists(&path).await.ok().flatten();
            if stat.is_some_and(|stat| stat.owner == Some(session)) {
                self.oracle.report_violation(format_args!(
                    "n{node} left job{} {} s ago, and {path} is still there",
                    left.job,
                    now.saturating_sub(left.since).as_secs()
                ));
            }
        }
    }
}

/// Makes runs stick: a listener is as good as a handler that cannot be stopped from outside.
#[async_trait]
impl Listener for HandlerContext {
    async fn after(&self, _: &Execution, ran: &[ShardResult]) -> Result<(), Failure> {
        if !self.sticks.load(Ordering::Relaxed) {
            return Ok(());
        }
        let shards = ran.iter().map(|ran| (ran.shard.job.to_string(), ran.shard.item));
        let _stuck = StuckGuard {
            oracle: Arc::clone(&self.oracle),
            numbers: self.oracle.run_sticks(self.connection.node, shards),
        };
        while !self.is_fault_free.load(Ordering::Relaxed) {
            let then = self.clock.monotonic() + Duration::from_millis(500);
            self.clock.sleep_until(then).await;
        }
        Ok(())
    }
}

/// Reports to the oracle that a stuck run has ended, also if it is dropped.
struct StuckGuard {
    oracle: Arc<super::oracle::Oracle>,
    numbers: std::ops::Range<usize>,
}

impl Drop for StuckGuard {
    fn drop(&mut self) {
        self.oracle.stuck_run_ended(self.numbers.clone());
    }
}
