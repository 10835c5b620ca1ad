//! Many jobs due at the same moment: what a fire costs, and how close that comes to what ZooKeeper itself can do.
//!
//! The ceiling is measured in the same run, on the same server: the transactions of the same claims and releases, already combined into full
//! batches, sent without waiting for each answer. Three comparisons with it:
//! * sustained: as many claims and releases as the combiner gets through while every job claims again as soon as it has released;
//! * one thousand jobs due in one second, and ten thousand, in one process: the delay until their shards start, and the requests for each fire.
//!
//! Ratios and counts are asserted. Times alone are only printed, because they depend on the machine.

mod ceiling;
mod fires;
mod units;

use std::path::PathBuf;

use testbed::ZooKeeper;

pub(crate) use self::{ceiling::Ceiling, fires::Burst};
use crate::{
    BoxError,
    report::{
        Report,
        Target::{self, AtLeast, AtMost, Goal},
        Unit::{Count, Megabytes, Microseconds, Milliseconds, Times},
    },
    statistics::median,
};

pub(crate) const SHARDS: u32 = 4;
/// Jobs of one session of the ceiling, about as many as a node puts into one: a session's ephemeral nodes are deleted in one transaction.
const JOBS_PER_SESSION: usize = 1_000;
/// Rounds of each comparison with the ceiling.
const ROUNDS: usize = 3;
/// Sustained rate, as a share of the ceiling.
const MIN_SUSTAINED: f64 = 0.8;
const MAX_REQUESTS_PER_FIRE: f64 = 0.1;
/// The 99th percentile of the start delay, in multiples of the time that ZooKeeper itself needs.
const MAX_DELAY: f64 = 2.0;

/// Jobs that are due together.
struct Crowd {
    jobs: usize,
    /// Seconds between two fires.
    interval: i64,
    /// The 99th percentile of the start delay, in milliseconds.
    max_p99: Target,
    /// Resident memory, in megabytes.
    max_memory: Target,
}

const CROWDS: [Crowd; 2] = [
    Crowd { jobs: 1_000, interval: 5, max_p99: Goal(150.0), max_memory: Target::None },
    Crowd { jobs: 10_000, interval: 20, max_p99: Target::None, max_memory: AtMost(200.0) },
];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The page whose section is written
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Only this many jobs
    #[arg(long)]
    jobs: Option<usize>,
}

/// Runs the benchmark. Returns whether every target was met.
pub(crate) async fn run(options: &Options) -> Result<bool, BoxError> {
    let mut report = Report::begin(
        "burst",
        options.page.as_deref(),
        &format!(
            "## Many jobs due at once\n\nJobs of {SHARDS} shards in one process, on one ZooKeeper on the same machine. ZooKeeper itself: the same claims and releases, already combined into full \
             transactions and sent without waiting for each answer, in the same run."
        ),
    )?;
    report.values();
    sustained(&mut report).await?;
    for crowd in CROWDS.iter().filter(|crowd| options.jobs.is_none_or(|jobs| jobs == crowd.jobs)) {
        burst(crowd, &mut report).await?;
    }
    report.end_table();
    report.end()
}

/// Claims and releases without pause, in turn through the combiner and as full batches.
async fn sustained(report: &mut Report) -> Result<(), BoxError> {
    let server = ZooKeeper::builder().full_speed().start();
    let ceiling = Ceiling::prepare(&server, JOBS_PER_SESSION).await?;
    // The JVM compiles its code meanwhile.
    ceiling.sustained().await?;
    ceiling.combined().await?;
    let (mut shares, mut limits, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = ceiling.sustained().await?;
        let rate = ceiling.combined().await?;
        let limit = before.midpoint(ceiling.sustained().await?);
        shares.push(rate / limit);
        limits.push(limit);
        rates.push(rate);
    }
    report.value("sustained: operations per second", (median(rates), Count), Target::None);
    report.value("ZooKeeper itself: operations per second", (median(limits), Count), Target::None);
    let share = (median(shares), Times);
    report.value("sustained / ZooKeeper itself", share, AtLeast(MIN_SUSTAINED));
    Ok(())
}

async fn burst(crowd: &Crowd, report: &mut Report) -> Result<(), BoxError> {
    let jobs = crowd.jobs;
    let server = ZooKeeper::builder().full_speed().start();
    let burst = Burst::measure(&server, "burst", (jobs, crowd.interval), None).await?;
    let ceiling = Ceiling::prepare(&server, jobs).await?;
    ceiling.measure().await?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(ceiling.measure().await?);
    }
    let claims = median(times.iter().map(|time| time.claims.as_secs_f64() * 1e3));
    let whole = median(times.iter().map(|time| time.whole().as_secs_f64() * 1e3));
    let p99 = burst.delay(99);
    let mut value = |label: &str, value, target| {
        report.value(&format!("{jobs} jobs: {label}"), value, target);
    };
    value("start delay, median", (burst.delay(50), Milliseconds), Target::None);
    value("start delay, p99", (p99, Milliseconds), crowd.max_p99);
    value("start delay, maximum", (burst.delay(100), Milliseconds), Target::None);
    value("ZooKeeper itself, claims", (claims, Milliseconds), Target::None);
    value("ZooKeeper itself, claims and releases", (whole, Milliseconds), Target::None);
    value("p99 / ZooKeeper itself", (p99 / whole, Times), AtMost(MAX_DELAY));
    let each = (burst.requests_per_fire(), Count);
    value("requests per fire", each, AtMost(MAX_REQUESTS_PER_FIRE));
    value("processor time per fire", (burst.busy_per_fire(), Microseconds), Target::None);
    value("sessions", (f64::from(burst.sessions), Count), Target::None);
    value("resident while firing", (burst.resident, Megabytes), crowd.max_memory);
    report.require(burst.is_complete, &format!("{jobs} jobs: not every shard ran"));
    Ok(())
}
