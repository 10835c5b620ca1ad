//! The simulated cluster: its nodes, and the loop that performs scheduled actions on them.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use tokio::task::{AbortHandle, JoinSet};

use super::{
    console, fire_reports,
    java::JavaInstance,
    jobs::{HandlerContext, JobPlan},
    leaving::{self, LeftJob},
    network::{Connection, FaultRates, SimulatedRegistry},
    oracle::Oracle,
    process::{Process, ProcessClock, ProcessState, RegistryClock, TrueTime},
    rng::Rng,
    schedule::{Action, Schedule},
    triggers,
};
use elasticjob::{
    coordination::{flaw::Flaws, tree::JobTree},
    job::RunId,
    node::{Node, NodeError, RunningNode},
    registry::{
        Limits, Path,
        memory::{MemoryRegistry, MemoryServer},
    },
    runtime::Clock,
    schedule::Zone,
};

pub(super) const NAMESPACE: &str = "sim";
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
/// How long running handlers may take when a node stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a node may take to stop: drain, release its shards, close its session.
const STOP_TIMEOUT: Duration = Duration::from_mins(2);
/// How long after the last fault the cluster must have settled: longer than any periodic check of a member.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(90);
/// How long the settled cluster is observed.
pub(super) const OBSERVATION_TIME: Duration = Duration::from_secs(65);

pub(super) struct World {
    pub(super) rng: Rng,
    /// For [`foreign_writes`](super::foreign_writes), and for kills in the middle of a run.
    pub(super) foreign_rng: Rng,
    /// For hostile configurations.
    pub(super) hostile_rng: Rng,
    has_further_faults: bool,
    pub(super) leaving_rng: Rng,
    /// For faults that were added after seeds were named.
    pub(super) second_rng: Rng,
    pub(super) console_rng: Rng,
    pub(super) trigger_rng: Rng,
    /// Nodes that other programs have put below shards that run.
    pub(super) notes: Vec<Path>,
    /// For what was added later, so that the numbers of everything else stay the same.
    late_rng: Rng,
    pub(super) time: TrueTime,
    server: MemoryServer,
    /// Milliseconds by which the registry's clock is ahead.
    pub(super) registry_offset: Arc<AtomicI64>,
    /// Reads and writes as a console does.
    pub(super) observer: Arc<MemoryRegistry>,
    pub(super) schedule: Schedule,
    pub(super) oracle: Arc<Oracle>,
    flaws: Flaws,
    /// What fits into one request.
    limits: Limits,
    pub(super) plans: Vec<Arc<Mutex<JobPlan>>>,
    pub(super) slots: Vec<Slot>,
    /// The connection of every process whose session may still be alive, by node number.
    pub(super) connections: BTreeMap<usize, Arc<Connection>>,
    /// When each node was a member.
    pub(super) memberships: Vec<Membership>,
    pub(super) tasks: JoinSet<NodeEvent>,
    java_instances: JoinSet<()>,
    pub(super) is_fault_free: Arc<AtomicBool>,
    pub(super) fault_profile: FaultProfile,
    pub(super) settled_at: Duration,
    /// All triggers that were accepted: index of the job plan, and run.
    pub(super) accepted: Vec<(usize, RunId)>,
    /// Shards of runs whose cancellation was accepted: index of the job plan, shard, run, and when.
    pub(super) cancelled: Vec<(usize, u32, RunId, Duration)>,
    /// Jobs of which a run was cancelled, also one whose instance could not be told.
    pub(super) cancelled_jobs: std::collections::BTreeSet<usize>,
    /// The triggers after the cluster had settled.
    pub(super) final_triggers: Vec<(usize, RunId)>,
}

/// The time during which a node took part.
pub(super) struct Membership {
    pub(super) node: usize,
    pub(super) slot: usize,
    pub(super) from: Duration,
    pub(super) until: Option<Duration>,
}

/// Which faults happen in this simulation, and how often.
#[derive(Clone, Copy)]
pub(super) struct FaultProfile {
    fault_rates: FaultRates,
    /// Longest pause between two faults, in milliseconds.
    max_pause: u64,
    /// How long faults happen.
    fault_phase: Duration,
    pub(super) changes_configuration: bool,
    pub(super) sets_registry_clock: bool,
}

/// An address at which one process after another runs. Nodes are numbered `10 * incarnation + slot`.
pub(super) struct Slot {
    pub(super) node: Option<usize>,
    incarnations: usize,
    pub(super) running: Option<Arc<RunningNode>>,
    /// The jobs of the node, one for each plan.
    pub(super) jobs: Vec<HandlerContext>,
    pub(super) left: Option<LeftJob>,
    /// The task that starts or stops the node, while there is one.
    transition: Option<AbortHandle>,
    pub(super) clock_offset: Arc<AtomicI64>,
}

/// The end of something that a node does: with its result, or whether the stop was in time.
pub(super) enum NodeEvent {
    Started(usize, Result<RunningNode, NodeError>),
    Stopped(usize, bool),
    /// It has left a job, or a run of it has not ended in time.
    Left(usize),
    Rejoined(usize, Result<(), String>),
}

impl World {
    pub(super) async fn new(seed: u64, flaws: Flaws) -> Self {
        let (rng, second_rng) = (Rng::new(seed), Rng::second(seed));
        // What was added later is drawn apart, so that seeds that are known by name keep their meaning.
        let late_rng = Rng::new(!seed);
        let operations = late_rng.pick(&[usize::MAX, usize::MAX, 3, 6]);
        let limits = Limits { operations, ..Limits::ZOOKEEPER };
        let epoch = "2026-11-15T06:00:00Z".parse().expect("valid timestamp");
        let time = TrueTime::starting_at(epoch);
        let registry_offset = Arc::new(AtomicI64::new(0));
        let registry_clock = RegistryClock { time, offset: Arc::clone(&registry_offset) };
        let server = MemoryServer::new(Arc::new(registry_clock)).session_timeout(SESSION_TIMEOUT);
        let namespace = NAMESPACE.parse().expect("valid namespace");
        let observer =
            server.join(namespace).await.expect("the memory registry is always available");
        let observer = Arc::new(observer);
        let fault_rates = FaultRates {
            crash: rng.pick(&[0, 0, 1_500, 4_000]),
            lost_response: rng.pick(&[0, 200, 800]),
            unreachable: rng.pick(&[0, 300, 1_000]),
            throttled: late_rng.pick(&[0, 0, 100]),
            lost_batch: Rng::second(!seed).pick(&[0, 10, 40]),
            large_batch: 1,
        };
        let fault_profile = FaultProfile {
            fault_rates,
            max_pause: rng.pick(&[2_000, 6_000, 20_000, 60_000]),
            fault_phase: Duration::from_secs(rng.between(60, 180)),
            changes_configuration: rng.percent(60),
            sets_registry_clock: second_rng.percent(10),
        };
        let jobs = rng.between(1, 3) as usize;
        let has_java = rng.percent(20);
        let plans = (0..jobs).map(|number| {
            let mut plan = JobPlan::random(number, &rng, &second_rng);
            plan.has_java = has_java && number == 0 && plan.is_for_java();
            Arc::new(Mutex::new(plan))
        });
        let plans = plans.collect();
        let slots = rng.between(3, 7);
        let slots = (0..slots).map(|_| Slot {
            node: None,
            incarnations: 0,
            running: None,
            jobs: Vec::new(),
            left: None,
            transition: None,
            clock_offset: Arc::new(AtomicI64::new(if rng.percent(50) {
                rng.between(0, 4_000) as i64 - 2_000
            } else {
                0
            })),
        });
        let slots = slots.collect();
        Self {
            time,
            server,
            registry_offset,
            observer,
            schedule: Schedule::default(),
            oracle: Arc::new(Oracle::new(time)),
            flaws,
            limits,
            plans,
            slots,
            connections: BTreeMap::new(),
            memberships: Vec::new(),
            tasks: JoinSet::new(),
            java_instances: JoinSet::new(),
            is_fault_free: Arc::default(),
            fault_profile,
            settled_at: Duration::ZERO,
            accepted: Vec::new(),
            cancelled: Vec::new(),
            cancelled_jobs: std::collections::BTreeSet::new(),
            final_triggers: Vec::new(),
            foreign_rng: Rng::new(!seed),
            hostile_rng: Rng::new(seed.rotate_left(32) ^ 0x1bcd),
            has_further_faults: seed % 2 == 1,
            leaving_rng: leaving::rng_of(seed),
            console_rng: console::rng_of(seed),
            trigger_rng: triggers::rng_of(seed),
            notes: Vec::new(),
            rng,
            second_rng,
            late_rng,
        }
    }

    /// Three nodes with so many jobs, all due at the same time, so that one request claims shards of most of them. Half of the responses to a
    /// hundred jobs or more are lost.
    pub(super) async fn crowded(seed: u64, jobs: usize) -> Self {
        let fault_rates = FaultRates { lost_batch: 2, large_batch: 99, ..FaultRates::default() };
        let fault_profile = FaultProfile {
            fault_rates,
            max_pause: 60_000,
            fault_phase: Duration::from_secs(90),
            changes_configuration: false,
            sets_registry_clock: false,
        };
        let mut world = Self::new(seed, Flaws::default()).await;
        let plans = (0..jobs).map(|number| Arc::new(Mutex::new(JobPlan::in_crowd(number))));
        world.plans = plans.collect();
        world.slots.truncate(3);
        world.oracle = Arc::new(Oracle::for_crowd(world.time, jobs));
        Self { fault_profile, limits: Limits::ZOOKEEPER, ..world }
    }

    /// Performs scheduled actions until the simulation ends or a guarantee is violated.
    pub(super) async fn run(&mut self) {
        self.schedule_start();
        loop {
            let now = self.time.monotonic();
            if let Some(action) = self.schedule.take_due(now) {
                if matches!(action, Action::End) {
                    return;
                }
                self.perform(action).await;
                self.oracle.set_disturbed(self.is_disturbed());
                continue;
            }
            let Some(next) = self.schedule.next_at() else { return };
            tokio::select! {
                biased;
                () = self.oracle.violation_found.notified() => return,
                Some(event) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    if let Ok(event) = event {
                        self.handle_node_event(event);
                    }
                }
                () = self.schedule.changed() => {}
                () = self.time.sleep_until(next) => {}
            }
            self.oracle.set_disturbed(self.is_disturbed());
        }
    }

    fn schedule_start(&mut self) {
        let now = self.time.monotonic();
        for slot in 0..self.slots.len() {
            let then = now + Duration::from_millis(self.rng.between(0, 5_000));
            self.schedule.add(then, Action::Start { slot });
        }
        self.schedule.add(now + Duration::from_secs(6), Action::InjectFault);
        // Even seeds keep the timelines that they had before there was this, among them the named ones.
        if self.has_further_faults {
            self.schedule.add(now + Duration::from_secs(8), Action::KillInMidRun);
            if self.fault_profile.changes_configuration {
                self.schedule.add(now + Duration::from_secs(8), Action::ForeignWrite);
                self.schedule.add(now + Duration::from_secs(12), Action::StoreHostileConfig);
            }
        }
        for plan in self.plans.iter().filter(|plan| lock(plan).has_java) {
            let java = JavaInstance {
                server: self.server.clone(),
                time: self.time,
                rng: self.rng.fork(),
                plan: Arc::clone(plan),
                oracle: Arc::clone(&self.oracle),
                is_fault_free: Arc::clone(&self.is_fault_free),
                number: 4_000,
            };
            self.java_instances.spawn(java.run());
        }
        self.schedule_leaving();
        self.schedule_console();
        self.schedule_triggers();
        let end_at = now + Duration::from_secs(10) + self.fault_profile.fault_phase;
        self.schedule.add(end_at, Action::EndFaults);
    }

    fn is_disturbed(&self) -> bool {
        self.connections.values().any(|connection| connection.is_disturbed())
            || !self.notes.is_empty()
            || self.slots.iter().any(|slot| slot.transition.is_some())
            || self.registry_offset.load(Ordering::Relaxed) != 0
    }

    async fn perform(&mut self, action: Action) {
        match action {
            Action::Expire { node, session, silence } => {
                if let Some(connection) = self.connections.get(&node)
                    && connection.expire(silence)
                {
                    self.oracle.log(format_args!("the session of n{node} expires"));
                    self.oracle.session_ended(session);
                    if connection.process.state() == ProcessState::Dead {
                        self.connections.remove(&node);
                    }
                }
            }
            Action::Crashed { node } => self.remove_process(node),
            Action::Heal { node } => {
                if let Some(connection) = self.connections.get(&node) {
                    self.oracle.log(format_args!("n{node} can connect again"));
                    connection.heal();
                }
            }
            Action::Thaw { node } => {
                if let Some(connection) = self.connections.get(&node) {
                    self.oracle.log(format_args!("n{node} thaws"));
                    connection.thaw();
                }
            }
            Action::Recover { node } => {
                if let Some(connection) = self.connections.get(&node) {
                    connection.set_latency(0, 3);
                    connection.hold_notifications(None);
                }
            }
            Action::SetClock { slot } => {
                self.oracle.log(format_args!("the clock of slot {slot} is right"));
                self.slots[slot].clock_offset.store(0, Ordering::Relaxed);
            }
            Action::SetAllClocks => {
                self.oracle.log(format_args!("all clocks are right"));
                self.set_all_clocks();
            }
            Action::Start { slot } => self.start(slot).await,
            Action::Stop { node } => {
                if self.slots[node % 10].node == Some(node) {
                    self.stop(node % 10);
                }
            }
            Action::KillAll => {
                if !self.is_fault_free.load(Ordering::Relaxed) {
                    self.kill_all();
                }
            }
            Action::InjectFault => {
                if !self.is_fault_free.load(Ordering::Relaxed) {
                    self.inject_fault().await;
                    let pause =
                        Duration::from_millis(self.rng.between(200, self.fault_profile.max_pause));
                    self.schedule.add(self.time.monotonic() + pause, Action::InjectFault);
                }
            }
            Action::ForeignWrite => {
                if !self.is_fault_free.load(Ordering::Relaxed) {
                    self.write_as_another_program().await;
                }
            }
            Action::KillInMidRun => {
                if !self.is_fault_free.load(Ordering::Relaxed) {
                    self.kill_in_mid_run();
                    let then = self.time.monotonic() + Duration::from_secs(2);
                    self.schedule.add(then, Action::KillInMidRun);
                }
            }
            Action::StoreHostileConfig => {
                if !self.is_fault_free.load(Ordering::Relaxed) {
                    self.store_hostile_config().await;
                }
            }
            Action::MendConfig { job } => self.mend_config(job).await,
            Action::ResetShards { job } => self.reset_shards(job).await,
            Action::LeaveJob => self.leave_job(),
            Action::MisuseConsole => self.misuse_console().await,
            Action::TriggerOrCancel => self.trigger_or_cancel().await,
            Action::DeleteNote { path } => self.delete_note(&path).await,
            Action::Rejoin { node } => self.rejoin(node),
            Action::CheckLeft { node } => self.check_left(node).await,
            Action::Enable { job } => self.enable(job).await,
            Action::End => {}
            Action::EndFaults => self.end_faults().await,
            Action::ConfigDecision => {
                self.settled_at = self.time.elapsed();
                self.oracle.log(format_args!("the cluster must have settled"));
                self.trigger_jobs().await;
            }
        }
    }

    fn handle_node_event(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Left(node) => self.has_left(node),
            NodeEvent::Rejoined(node, result) => self.has_rejoined(node, result),
            NodeEvent::Started(node, started) => {
                let slot = node % 10;
                if self.slots[slot].node != Some(node) {
                    return;
                }
                self.slots[slot].transition = None;
                match started {
                    Ok(running) => {
                        self.oracle.log(format_args!("n{node} has joined"));
                        self.slots[slot].running = Some(Arc::new(running));
                        let from = self.time.elapsed();
                        self.memberships.push(Membership { node, slot, from, until: None });
                    }
                    Err(error) => {
                        self.oracle.log(format_args!("n{node} did not join: {error}"));
                        if let Some(connection) = self.connections.get(&node) {
                            connection.kill();
                        }
                        self.remove_process(node);
                    }
                }
            }
            NodeEvent::Stopped(node, in_time) => {
                if !in_time {
                    self.oracle.report_violation(format_args!(
                        "n{node} did not stop within {STOP_TIMEOUT:?}"
                    ));
                }
                self.oracle.log(format_args!("n{node} has left"));
                if let Some(connection) = self.connections.get(&node) {
                    connection.kill();
                }
                self.remove_process(node);
            }
        }
    }

    /// Removes a dead process; another one starts in its slot after a while.
    pub(super) fn remove_process(&mut self, node: usize) {
        let slot = node % 10;
        if self.slots[slot].node != Some(node) {
            return;
        }
        self.end_membership(node);
        self.oracle.process_died(node);
        let slot_state = &mut self.slots[slot];
        slot_state.node = None;
        slot_state.left = None;
        drop(slot_state.running.take());
        if let Some(transition) = slot_state.transition.take() {
            transition.abort();
        }
        if self.connections.get(&node).is_some_and(|connection| !connection.may_expire()) {
            self.connections.remove(&node);
        }
        let pause = self
            .rng
            .between(500, if self.is_fault_free.load(Ordering::Relaxed) { 2_000 } else { 25_000 });
        self.schedule
            .add(self.time.monotonic() + Duration::from_millis(pause), Action::Start { slot });
    }

    pub(super) fn end_membership(&mut self, node: usize) {
        let now = self.time.elapsed();
        for membership in self
            .memberships
            .iter_mut()
            .filter(|membership| membership.node == node && membership.until.is_none())
        {
            membership.until = Some(now);
        }
    }

    async fn start(&mut self, slot: usize) {
        if self.slots[slot].node.is_some() {
            return;
        }
        let namespace = NAMESPACE.parse().expect("valid namespace");
        let Ok(inner) = self.server.join(namespace).await else { return };
        if self.second_rng.percent(5) && !self.is_fault_free.load(Ordering::Relaxed) {
            let hours = self.second_rng.pick(&[1, 24, -1]);
            self.oracle.log(format_args!("slot {slot} starts with its clock {hours} h ahead"));
            self.slots[slot].clock_offset.store(hours * 3_600_000, Ordering::Relaxed);
            let right_after = Duration::from_millis(self.second_rng.between(1_000, 40_000));
            self.schedule.add(self.time.monotonic() + right_after, Action::SetClock { slot });
        }
        let slot_state = &mut self.slots[slot];
        let node = slot_state.incarnations * 10 + slot;
        slot_state.incarnations += 1;
        slot_state.node = Some(node);
        self.oracle.log(format_args!("n{node} starts"));
        let process = Process::new();
        let clock = ProcessClock {
            time: self.time,
            process: process.clone(),
            clock_offset: Arc::clone(&slot_state.clock_offset),
        };
        let registry = SimulatedRegistry::new(
            node,
            process,
            inner,
            self.time,
            (self.rng.fork(), self.late_rng.fork()),
            self.schedule.clone(),
            Arc::clone(&self.oracle),
        )
        .limited(self.limits);
        let connection = Arc::clone(registry.connection());
        if !self.is_fault_free.load(Ordering::Relaxed) {
            connection.set_fault_rates(self.fault_profile.fault_rates);
        }
        self.connections.insert(node, Arc::clone(&connection));
        let rng = Arc::new(self.rng.fork());
        let second_rng = Arc::new(self.second_rng.fork());
        let mut builder = Node::on(Arc::new(registry))
            .address(Ipv4Addr::new(10, 0, 0, slot as u8 + 1))
            .clock(Arc::new(clock.clone()))
            .randomness(Arc::new(self.rng.fork()))
            .flaws(self.flaws)
            .drain(DRAIN_TIMEOUT)
            .history(fire_reports::recorder(&self.oracle))
            .zone(Zone::utc());
        let jobs = self.plans.iter().map(|plan| HandlerContext {
            oracle: Arc::clone(&self.oracle),
            connection: Arc::clone(&connection),
            clock: clock.clone(),
            rng: Arc::clone(&rng),
            second_rng: Arc::clone(&second_rng),
            plan: Arc::clone(plan),
            is_fault_free: Arc::clone(&self.is_fault_free),
            sticks: Arc::default(),
        });
        let jobs: Vec<HandlerContext> = jobs.collect();
        for job in &jobs {
            builder = builder.with(job.node_job());
        }
        self.slots[slot].jobs = jobs;
        let starting = async move { NodeEvent::Started(node, builder.start().await) };
        self.slots[slot].transition = Some(self.tasks.spawn(starting));
    }

    pub(super) fn stop(&mut self, slot: usize) {
        let slot_state = &mut self.slots[slot];
        let (Some(node), Some(running)) = (slot_state.node, slot_state.running.take()) else {
            return;
        };
        self.oracle.log(format_args!("n{node} begins to stop"));
        slot_state.left = None;
        let stopping = async move {
            // The task that leaves or joins a job was aborted, and drops the node when it is polled next.
            let mut shared = running;
            let running = loop {
                match Arc::try_unwrap(shared) {
                    Ok(running) => break running,
                    Err(still_shared) => shared = still_shared,
                }
                tokio::task::yield_now().await;
            };
            let in_time = tokio::time::timeout(STOP_TIMEOUT, running.stop()).await.is_ok();
            NodeEvent::Stopped(node, in_time)
        };
        slot_state.transition = Some(self.tasks.spawn(stopping));
        self.end_membership(node);
    }

    fn set_all_clocks(&self) {
        self.registry_offset.store(0, Ordering::Relaxed);
        for slot in &self.slots {
            slot.clock_offset.store(0, Ordering::Relaxed);
        }
    }

    /// Ends the fault phase: repairs every fault and gives the cluster time to settle.
    async fn end_faults(&mut self) {
        self.oracle.log(format_args!("no more faults"));
        self.is_fault_free.store(true, Ordering::Relaxed);
        for connection in self.connections.values() {
            connection.set_fault_rates(FaultRates::default());
            connection.set_latency(0, 3);
            connection.hold_notifications(None);
            connection.heal();
            connection.thaw();
        }
        self.set_all_clocks();
        for number in 0..self.plans.len() {
            self.reset_shards(number).await;
            self.enable(number).await;
        }
        self.rejoin_all();
        self.delete_notes().await;
        // Between two fires, so that no shard runs at the time of the checks.
        let now = self.time.elapsed() + SETTLE_TIME;
        let settled =
            Duration::from_secs(now.as_secs().next_multiple_of(5)) + Duration::from_millis(2_500);
        let start = self.time.monotonic() + settled.saturating_sub(self.time.elapsed());
        self.schedule.add(start, Action::ConfigDecision);
        self.schedule.add(start + OBSERVATION_TIME, Action::End);
    }

    /// Stops every node, and checks that each stops in time.
    pub(super) async fn stop_all(&mut self) {
        for slot in 0..self.slots.len() {
            self.stop(slot);
        }
        let all = async {
            while let Some(event) = self.tasks.join_next().await {
                if let Ok(NodeEvent::Stopped(node, false)) = event {
                    self.oracle.report_violation(format_args!(
                        "n{node} did not stop within {STOP_TIMEOUT:?}"
                    ));
                }
            }
        };
        if tokio::time::timeout(STOP_TIMEOUT * 2, all).await.is_err() {
            self.oracle.report_violation(format_args!("not every node stopped"));
        }
    }

    /// The slots with a running node.
    pub(super) fn running_slots(&self) -> Vec<usize> {
        (0..self.slots.len()).filter(|slot| self.slots[*slot].running.is_some()).collect()
    }
}

pub(super) fn tree_of(plan: &Arc<Mutex<JobPlan>>) -> JobTree {
    let name = lock(plan).job.name.clone();
    JobTree::new(&NAMESPACE.parse().expect("valid namespace"), &name).expect("valid job name")
}

pub(super) fn lock(plan: &Arc<Mutex<JobPlan>>) -> MutexGuard<'_, JobPlan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}
