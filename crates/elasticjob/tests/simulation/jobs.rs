//! The jobs of a simulated cluster and their handler.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    network::Connection,
    oracle::{JobPolicies, Oracle},
    process::ProcessClock,
    rng::Rng,
};
use elasticjob::{
    job::{CatchUp, Failover, Job, LeaseLoss, Misfire, Monitor, Retry, Shard, Strategy},
    node::NodeJob,
    runtime::Clock,
};

/// A job with its present configuration and its earlier ones.
#[derive(Debug, Clone)]
pub(super) struct JobPlan {
    pub(super) job: Job,
    /// Seconds between two fires.
    pub(super) every: u64,
    pub(super) has_java: bool,
    /// Slots whose server is disabled for this job.
    pub(super) disabled_servers: BTreeSet<usize>,
    pub(super) disabled_shards: BTreeSet<u32>,
    /// Shards whose page was overwritten and not reset yet.
    pub(super) unreadable_shards: BTreeSet<u32>,
    /// A hostile configuration is stored: instances go on with their last valid one, and no instance joins.
    pub(super) is_invalid: bool,
    /// The present configuration began with an enabling by our console, which stores since when.
    pub(super) has_stored_floor: bool,
    /// Every configuration the job has had, with the time from which it applied.
    pub(super) phases: Vec<(Duration, Phase)>,
}

/// The configuration of a job during one period.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    pub(super) is_enabled: bool,
    pub(super) every: u64,
    pub(super) total: u32,
    pub(super) misfire: Misfire,
    pub(super) disabled_shards: BTreeSet<u32>,
    pub(super) unreadable_shards: BTreeSet<u32>,
    pub(super) disabled_servers: BTreeSet<usize>,
    /// The stored configuration cannot be read.
    pub(super) is_invalid: bool,
    /// The phase began with an enabling by our console, which stores since when.
    pub(super) has_stored_floor: bool,
}

impl Phase {
    /// Neither disabled nor stopped by an unreadable page.
    pub(super) fn can_run(&self, shard: u32) -> bool {
        !self.disabled_shards.contains(&shard) && !self.unreadable_shards.contains(&shard)
    }
}

/// A cron expression whose fires are `every` seconds apart.
pub(super) fn cron(every: u64) -> String {
    if every == 60 { "0 * * * * ?".into() } else { format!("0/{every} * * * * ?") }
}

impl JobPlan {
    pub(super) fn random(number: usize, rng: &Rng, second_rng: &Rng) -> Self {
        let every = rng.pick(&[5, 10, 15, 30, 30, 60]);
        let mut shards = rng.between(1, 5) as u32;
        let strategy = rng.pick(&[
            Strategy::AvgAllocation,
            Strategy::AvgAllocation,
            Strategy::Odevity,
            Strategy::RoundRobin,
            Strategy::Sticky,
            Strategy::Weighted,
            Strategy::SingleShardingBalance,
        ]);
        if strategy == Strategy::SingleShardingBalance {
            shards = 1;
        }
        let has_failover = rng.percent(65);
        let monitor =
            if has_failover || rng.percent(80) { Monitor::Executions } else { Monitor::Nothing };
        let mut job = Job::named(&format!("job{number}"))
            .and_then(|job| job.cron(&cron(every)))
            .expect("valid job")
            .shards(shards)
            .strategy(&strategy)
            .failover(if has_failover { Failover::TakeOver } else { Failover::Wait })
            .monitor(monitor)
            .misfire(if rng.percent(85) { Misfire::RunOnce } else { Misfire::Skip })
            .on_lease_loss(rng.pick(&[
                LeaseLoss::Cancel,
                LeaseLoss::Cancel,
                LeaseLoss::Cancel,
                LeaseLoss::FinishFenced,
                LeaseLoss::Continue,
            ]));
        if rng.percent(20) {
            job = job.catch_up(CatchUp::Last);
        }
        if second_rng.percent(20) {
            job = job.catch_up(CatchUp::All { window: Duration::from_mins(10) });
        }
        if rng.percent(20) {
            job = job.retry(Retry::attempts(2));
        }
        Self::new(job, every)
    }

    /// One of many jobs that are all due at the same time, with a shard for each of three nodes.
    pub(super) fn in_crowd(number: usize) -> Self {
        const EVERY: u64 = 30;
        let job = Job::named(&format!("job{number}")).and_then(|job| job.cron(&cron(EVERY)));
        Self::new(job.expect("valid job").shards(3).failover(Failover::TakeOver), EVERY)
    }

    fn new(job: Job, every: u64) -> Self {
        let mut plan = Self {
            job,
            every,
            has_java: false,
            disabled_servers: BTreeSet::new(),
            disabled_shards: BTreeSet::new(),
            unreadable_shards: BTreeSet::new(),
            is_invalid: false,
            has_stored_floor: false,
            phases: Vec::new(),
        };
        plan.begin_phase(Duration::ZERO);
        plan
    }

    /// Starts a new phase with the present configuration.
    pub(super) fn begin_phase(&mut self, now: Duration) {
        let phase = Phase {
            is_enabled: !self.job.disabled,
            every: self.every,
            total: self.job.shards.get(),
            misfire: self.job.misfire,
            disabled_shards: self.disabled_shards.clone(),
            unreadable_shards: self.unreadable_shards.clone(),
            disabled_servers: self.disabled_servers.clone(),
            is_invalid: self.is_invalid,
            has_stored_floor: self.has_stored_floor,
        };
        self.phases.push((now, phase));
    }

    /// If the job or the shard was disabled at this time, the phase in which both were enabled again, and when that began.
    pub(super) fn enabled_after(&self, shard: u32, at: Duration) -> Option<&(Duration, Phase)> {
        let is_on = |phase: &Phase| phase.is_enabled && !phase.disabled_shards.contains(&shard);
        let present = self.phases.iter().rposition(|(from, _)| *from <= at)?;
        if is_on(&self.phases[present].1) {
            return None;
        }
        self.phases[present..].iter().find(|(_, phase)| is_on(phase))
    }

    /// The strategy assigns the single shard to another server for each run.
    pub(super) fn is_rotating(&self) -> bool {
        Strategy::of(&self.job) == Strategy::SingleShardingBalance
    }

    /// Java shows what it runs only if executions are monitored, and knows only its own sharding strategies.
    pub(super) fn is_for_java(&self) -> bool {
        self.job.monitor == Monitor::Executions && !self.is_rotating()
    }

    fn policies(&self) -> JobPolicies {
        JobPolicies {
            on_lease_loss: self.job.props.policies().on_lease_loss,
            has_failover: self.job.failover == Failover::TakeOver
                && self.job.monitor == Monitor::Executions
                && !self.job.disabled,
            is_rotating: self.is_rotating(),
            has_java: self.has_java,
            is_unmonitored: self.job.monitor == Monitor::Nothing && self.every == 60,
        }
    }
}

/// Everything the handler of a simulated job uses.
#[derive(Clone)]
pub(super) struct HandlerContext {
    pub(super) oracle: Arc<Oracle>,
    pub(super) connection: Arc<Connection>,
    pub(super) clock: ProcessClock,
    pub(super) rng: Arc<Rng>,
    pub(super) plan: Arc<Mutex<JobPlan>>,
    /// For what was added after seeds were named.
    pub(super) second_rng: Arc<Rng>,
    /// Set when the fault phase has ended: from then on every handler is fast and succeeds.
    pub(super) is_fault_free: Arc<AtomicBool>,
    /// Runs that end now do not end before the fault phase does.
    pub(super) sticks: Arc<AtomicBool>,
}

/// Reports to the oracle how a handler ended, also if it is dropped.
struct EndGuard {
    oracle: Arc<Oracle>,
    number: usize,
    /// A verb for the timeline: `finishes`, `fails`, `cancels`, `drops`.
    how: &'static str,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.oracle.execution_ended(self.number, self.how);
    }
}

impl HandlerContext {
    pub(super) fn node_job(&self) -> NodeJob {
        let job = self.plan.lock().expect("no panic while locked").job.clone();
        let context = self.clone();
        let handler = move |shard: Shard| context.clone().run(shard);
        NodeJob::code(job, handler).listener(Arc::new(self.clone()))
    }

    /// The handler of every job: it takes a random time, stops on cancellation at once or after a delay, and may fail.
    pub(super) async fn run(self, shard: Shard) -> Result<(), std::io::Error> {
        let policies = self.plan.lock().expect("no panic while locked").policies();
        let number = self.oracle.execution_started(&self.connection, &shard, policies);
        let mut end_guard = EndGuard { oracle: Arc::clone(&self.oracle), number, how: "drops" };
        let duration = match self.rng.between(0, 99) {
            _ if self.is_fault_free.load(Ordering::Relaxed) => self.rng.between(1, 50),
            0..50 => self.rng.between(1, 300),
            50..75 => self.rng.between(300, 3_000),
            _ => self.rng.between(3_000, 12_000),
        };
        // Longer than a claim waits. Only a job that shows no `running` node loses the shard to another owner meanwhile.
        let is_long = self.second_rng.percent(5)
            && !self.is_fault_free.load(Ordering::Relaxed)
            && policies.is_unmonitored;
        let duration = if is_long { self.second_rng.between(35_000, 50_000) } else { duration };
        let cancel_delay = self.rng.percent(30).then(|| self.rng.between(100, 4_000));
        let fails = self.rng.percent(8) && !self.is_fault_free.load(Ordering::Relaxed);
        let mut until = self.clock.monotonic() + Duration::from_millis(duration);
        let mut is_cancelled = false;
        while self.clock.monotonic() < until {
            let step = until.min(self.clock.monotonic() + Duration::from_millis(500));
            tokio::select! {
                biased;
                _ = shard.cancel().cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    self.oracle.execution_cancelled(number);
                    let Some(cancel_delay) = cancel_delay else {
                        end_guard.how = "cancels";
                        return Err(std::io::Error::other("cancelled"));
                    };
                    until = until.min(self.clock.monotonic() + Duration::from_millis(cancel_delay));
                }
                () = self.clock.sleep_until(step) => {}
            }
            self.oracle.handler_polled(number);
        }
        end_guard.how = if fails { "fails" } else { "finishes" };
        if fails { Err(std::io::Error::other("simulated failure")) } else { Ok(()) }
    }
}
