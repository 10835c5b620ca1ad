//! A fleet of processes with the same jobs, restarted one after the other: what each membership change costs.
//!
//! Every process takes part in every job. A restart is two membership changes: a process leaves gracefully, and joins again. An observer counts the
//! assignments, ZooKeeper counts requests. Counts are taken while no job is due; the start delay during restarts is measured separately.

mod assignments;

use std::path::PathBuf;

use testbed::ZooKeeper;

use self::assignments::AssignmentObserver;
use crate::{
    BoxError,
    node_process::{NEVER, NodePlan, NodeProcess},
    report::{
        Report,
        Target::{self, AtMost},
        Unit::{Bytes, Count, Milliseconds},
    },
    server_counters::ServerCounters,
    stopwatch::Stopwatch,
};

const SHARDS: u32 = 4;
/// Processes that are restarted, of each fleet.
const RESTARTS: usize = 5;
/// Assignments of a job for each membership change.
const MAX_ASSIGNMENTS: f64 = 1.0;
/// How fast requests may grow with the number of processes: a little more than linearly, for the noise.
const MAX_EXPONENT: f64 = 1.15;
/// Processes of the fleet whose jobs fire.
const FIRING_PROCESSES: usize = 10;
/// How often these jobs fire.
const FIRING: &str = "0/2 * * * * ?";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The page whose section is written
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Jobs, of which every process has all
    #[arg(long, default_value_t = 200)]
    jobs: usize,
    /// Numbers of processes, in ascending order
    #[arg(long, value_delimiter = ',', default_value = "5,10,20,50")]
    processes: Vec<usize>,
}

/// What one restart costs, on average.
#[derive(Debug, Clone, Copy)]
struct RestartCost {
    /// Per job and membership change.
    assignments: f64,
    /// The most of any job, per membership change.
    most_assignments: f64,
    requests: f64,
    transactions: f64,
    notified_bytes: f64,
    milliseconds: f64,
}

/// Runs the benchmark. Returns whether every required target was met.
pub(crate) async fn run(options: &Options) -> Result<bool, BoxError> {
    let mut report = Report::begin(
        "fleet",
        options.page.as_deref(),
        &format!(
            "## A fleet restarted process by process\n\n{} jobs of {SHARDS} shards, in which every process takes part, on one ZooKeeper on the same machine. {RESTARTS} processes are restarted, one after the \
             other. A restart is two membership changes of every job: one instance leaves, one joins.",
            options.jobs
        ),
    )?;
    report.values();
    let mut costs = Vec::new();
    for &processes in &options.processes {
        let cost = measure(processes, options.jobs).await?;
        let label = |what: &str| format!("{processes} processes: {what}");
        let assignments = (cost.assignments, Count);
        report.value(
            &label("assignments per job and membership change"),
            assignments,
            AtMost(MAX_ASSIGNMENTS),
        );
        let most = (cost.most_assignments, Count);
        report.value(&label("the same, of the job with the most"), most, Target::None);
        report.value(&label("requests per restart"), (cost.requests, Count), Target::None);
        report.value(&label("transactions per restart"), (cost.transactions, Count), Target::None);
        let bytes = (cost.notified_bytes, Bytes);
        report.value(&label("bytes that ZooKeeper sends per restart"), bytes, Target::None);
        let time = (cost.milliseconds, Milliseconds);
        report.value(&label("time of a restart, settled"), time, Target::None);
        costs.push((processes, cost.requests));
    }
    if let (Some((few, small)), Some((many, large))) = (costs.first(), costs.last())
        && few != many
    {
        #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
        let growth = *many as f64 / *few as f64;
        let exponent = (large / small).ln() / growth.ln();
        report.value(
            "requests per restart grow with the processes to the power of",
            (exponent, Count),
            AtMost(MAX_EXPONENT),
        );
    }
    delays(options.jobs, &mut report).await?;
    report.end_table();
    report.end()
}

fn plan(server: &ZooKeeper, number: usize, jobs: usize, cron: &str) -> Result<NodePlan, BoxError> {
    Ok(NodePlan {
        registry: format!("zookeeper://{}/fleet?sessionTimeout=30s", server.address()),
        jobs,
        shards: SHARDS,
        cron: cron.to_owned(),
        number: u8::try_from(number + 1)?,
        history: None,
    })
}

async fn start_all(
    server: &ZooKeeper,
    processes: usize,
    jobs: usize,
    cron: &str,
) -> Result<Vec<NodeProcess>, BoxError> {
    let mut fleet = Vec::new();
    for number in 0..processes {
        fleet.push(NodeProcess::start(&plan(server, number, jobs, cron)?).await?.0);
    }
    Ok(fleet)
}

async fn measure(processes: usize, jobs: usize) -> Result<RestartCost, BoxError> {
    let server = ZooKeeper::builder().full_speed().start();
    let mut fleet = start_all(&server, processes, jobs, NEVER).await?;
    let observer = AssignmentObserver::start(&server, "fleet").await?;
    observer.wait_until_settled().await;
    observer.take();
    let before = ServerCounters::read(&server)?;
    let restarts = RESTARTS.min(processes);
    let mut milliseconds = 0.0;
    for number in 0..restarts {
        let stopwatch = Stopwatch::start();
        fleet.remove(0).stop().await?;
        observer.wait_until_settled().await;
        fleet.push(NodeProcess::start(&plan(&server, number, jobs, NEVER)?).await?.0);
        observer.wait_until_settled().await;
        let waited = 2.0 * assignments::QUIET.as_secs_f64();
        milliseconds += (stopwatch.elapsed().as_secs_f64() - waited) * 1e3;
    }
    let counters = ServerCounters::read(&server)?.since(before);
    let assignments = observer.take();
    stop_all(fleet).await?;
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
    let (restarts, jobs) = (restarts as f64, jobs as f64);
    let changes = 2.0 * restarts;
    let sum: u32 = assignments.values().sum();
    let most = assignments.values().max().copied().unwrap_or_default();
    Ok(RestartCost {
        assignments: f64::from(sum) / (jobs * changes),
        most_assignments: f64::from(most) / changes,
        requests: counters.requests / restarts,
        transactions: counters.transactions / restarts,
        notified_bytes: counters.sent_bytes / restarts,
        milliseconds: milliseconds / restarts,
    })
}

/// The start delay of jobs while nothing changes, and while processes are restarted.
async fn delays(jobs: usize, report: &mut Report) -> Result<(), BoxError> {
    let server = ZooKeeper::builder().full_speed().start();
    let mut fleet = start_all(&server, FIRING_PROCESSES, jobs, FIRING).await?;
    let observer = AssignmentObserver::start(&server, "fleet").await?;
    observer.wait_until_settled().await;
    take_p99(&mut fleet).await?;
    tokio::time::sleep(CALM).await;
    let calm = take_p99(&mut fleet).await?;
    for number in 0..RESTARTS {
        fleet.remove(0).stop().await?;
        let plan = plan(&server, number, jobs, FIRING)?;
        fleet.push(NodeProcess::start(&plan).await?.0);
        observer.wait_until_settled().await;
    }
    let restarting = take_p99(&mut fleet).await?;
    stop_all(fleet).await?;
    let label = |when: &str| format!("{FIRING_PROCESSES} processes: start delay p99 {when}");
    report.value(&label("while nothing changes"), (calm, Milliseconds), Target::None);
    report.value(&label("while processes are restarted"), (restarting, Milliseconds), Target::None);
    Ok(())
}

/// How long the start delay is measured while nothing changes.
const CALM: std::time::Duration = std::time::Duration::from_secs(10);

/// The 99th percentile of the start delays since the last call.
async fn take_p99(fleet: &mut [NodeProcess]) -> Result<f64, BoxError> {
    let mut delays = Vec::new();
    for node in fleet {
        delays.extend(node.take_delays().await?.into_iter().flat_map(|fire| fire.delays));
    }
    delays.sort_by(f64::total_cmp);
    Ok(delays.get(delays.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default())
}

async fn stop_all(fleet: Vec<NodeProcess>) -> Result<(), BoxError> {
    for node in fleet {
        node.stop().await?;
    }
    Ok(())
}
