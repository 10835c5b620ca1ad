//! The jobs of a simulated cluster, and what they do.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    book::{Book, Terms},
    dice::Dice,
    line::Shared,
    process::ProcessClock,
};
use elasticjob::{
    job::{CatchUp, Failover, Job, LeaseLoss, Misfire, Monitor, Retry, Shard, Strategy},
    runtime::Clock,
};

/// A job as it is configured now, and how it was before.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) job: Job,
    /// How many seconds between two fires.
    pub(super) every: u64,
    pub(super) has_java: bool,
    /// A server of it was disabled: not everybody takes part.
    pub(super) disabled_servers: BTreeSet<usize>,
    pub(super) disabled_shards: BTreeSet<u32>,
    /// From when on it was as it was.
    pub(super) phases: Vec<(Duration, Phase)>,
}

/// How a job was for a while.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    pub(super) is_on: bool,
    pub(super) every: u64,
    pub(super) total: u32,
    pub(super) misfire: Misfire,
    pub(super) disabled_shards: BTreeSet<u32>,
    pub(super) disabled_servers: BTreeSet<usize>,
}

/// Crons whose fires are this many seconds apart.
pub(super) fn cron(every: u64) -> String {
    if every == 60 { "0 * * * * ?".into() } else { format!("0/{every} * * * * ?") }
}

impl Plan {
    /// Any job.
    pub(super) fn draw(number: usize, dice: &Dice) -> Self {
        let every = dice.pick(&[5, 10, 15, 30, 30, 60]);
        let mut shards = dice.between(1, 5) as u32;
        let strategy = dice.pick(&[
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
        let takes_over = dice.percent(65);
        let monitor =
            if takes_over || dice.percent(80) { Monitor::Executions } else { Monitor::Nothing };
        let mut job = Job::named(&format!("job{number}"))
            .and_then(|job| job.cron(&cron(every)))
            .expect("a good job")
            .shards(shards)
            .strategy(&strategy)
            .if_node_dies(if takes_over { Failover::TakeOver } else { Failover::Wait })
            .monitor(monitor)
            .if_late(if dice.percent(85) { Misfire::RunOnce } else { Misfire::Skip })
            .if_lease_is_lost(dice.pick(&[
                LeaseLoss::Cancel,
                LeaseLoss::Cancel,
                LeaseLoss::Cancel,
                LeaseLoss::FinishFenced,
                LeaseLoss::Continue,
            ]));
        if dice.percent(20) {
            job = job.if_nobody_was_there(CatchUp::Last);
        }
        if dice.percent(20) {
            job = job.if_shard_fails(Retry::attempts(2));
        }
        let mut plan = Self {
            job,
            every,
            has_java: false,
            disabled_servers: BTreeSet::new(),
            disabled_shards: BTreeSet::new(),
            phases: Vec::new(),
        };
        plan.begin_phase(Duration::ZERO);
        plan
    }

    /// It is as it is from now on.
    pub(super) fn begin_phase(&mut self, now: Duration) {
        let phase = Phase {
            is_on: !self.job.disabled,
            every: self.every,
            total: self.job.shards.get(),
            misfire: self.job.misfire,
            disabled_shards: self.disabled_shards.clone(),
            disabled_servers: self.disabled_servers.clone(),
        };
        self.phases.push((now, phase));
    }

    pub(super) fn wanders(&self) -> bool {
        Strategy::of(&self.job) == Strategy::SingleShardingBalance
    }

    /// Java shows what it runs only if executions are monitored, and knows only its own ways to deal.
    pub(super) fn is_for_java(&self) -> bool {
        self.job.monitor == Monitor::Executions && !self.wanders()
    }

    fn terms(&self) -> Terms {
        Terms {
            policy: self.job.props.policies().on_lease_loss,
            takes_over: self.job.failover == Failover::TakeOver
                && self.job.monitor == Monitor::Executions
                && !self.job.disabled,
            wanders: self.wanders(),
            has_java: self.has_java,
        }
    }
}

/// What a handler has around it.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) book: Arc<Book>,
    pub(super) line: Arc<Shared>,
    pub(super) clock: ProcessClock,
    pub(super) dice: Arc<Dice>,
    pub(super) plan: Arc<Mutex<Plan>>,
    /// Faults are over: everything is quick and goes well.
    pub(super) is_calm: Arc<AtomicBool>,
}

/// Notes how a handler ended, also when it is dropped.
struct Ending {
    book: Arc<Book>,
    number: usize,
    how: &'static str,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.book.ended(self.number, self.how);
    }
}

impl Stage {
    /// What every job does: it takes its time, ends when told or a while later, and may fail.
    pub(super) async fn work(self, shard: Shard) -> Result<(), std::io::Error> {
        let terms = self.plan.lock().expect("nobody panics with it").terms();
        let number = self.book.begins(&self.line, &shard, terms);
        let mut ending = Ending { book: Arc::clone(&self.book), number, how: "is dropped in" };
        let span = match self.dice.between(0, 99) {
            _ if self.is_calm.load(Ordering::Relaxed) => self.dice.between(1, 50),
            0..50 => self.dice.between(1, 300),
            50..75 => self.dice.between(300, 3_000),
            _ => self.dice.between(3_000, 12_000),
        };
        let ignores = self.dice.percent(30).then(|| self.dice.between(100, 4_000));
        let fails = self.dice.percent(8) && !self.is_calm.load(Ordering::Relaxed);
        let mut until = self.clock.monotonic() + Duration::from_millis(span);
        let mut is_told = false;
        while self.clock.monotonic() < until {
            let step = until.min(self.clock.monotonic() + Duration::from_millis(500));
            tokio::select! {
                biased;
                _ = shard.cancel().cancelled(), if !is_told => {
                    is_told = true;
                    let Some(ignores) = ignores else {
                        ending.how = "obeys in";
                        return Err(std::io::Error::other("cancelled"));
                    };
                    until = until.min(self.clock.monotonic() + Duration::from_millis(ignores));
                }
                () = self.clock.sleep_until(step) => {}
            }
            self.book.polled(number);
        }
        ending.how = if fails { "fails in" } else { "finishes" };
        if fails { Err(std::io::Error::other("it went wrong")) } else { Ok(()) }
    }
}
