//! Joining many jobs: new ones, the same ones after a restart of the process, and catching up after a restart of ZooKeeper.
//!
//! The node is a process of its own, and none of its jobs is due. ZooKeeper counts requests and bytes, and the kernel the memory.

use std::{path::PathBuf, time::Duration};

use testbed::ZooKeeper;

use crate::{
    BoxError,
    node_process::{NEVER, NodePlan, NodeProcess},
    report::{
        Report,
        Target::{self, AtMost, Goal},
        Unit::{Bytes, Count, Megabytes, Milliseconds},
    },
    server_counters::ServerCounters,
    stopwatch::Stopwatch,
};

const SHARDS: u32 = 4;
/// Joined before the measurement, so that the JVM has compiled its code.
const WARM_UP_JOBS: usize = 1_000;
/// How long the node is left alone before its memory is read.
const IDLE_AFTER: Duration = Duration::from_secs(2);

struct Size {
    jobs: usize,
    /// Milliseconds until every job can run.
    max_join: f64,
    /// Milliseconds from a ZooKeeper that serves again until every job can run.
    max_catch_up: Target,
    /// Resident memory, in megabytes.
    max_memory: Target,
}

const SIZES: [Size; 2] = [
    Size { jobs: 1_000, max_join: 700.0, max_catch_up: Target::None, max_memory: Target::None },
    Size {
        jobs: 10_000,
        max_join: 5_000.0,
        max_catch_up: Goal(5_000.0),
        max_memory: AtMost(120.0),
    },
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

/// Runs the benchmark. Returns whether every required target was met.
pub(crate) async fn run(options: &Options) -> Result<bool, BoxError> {
    let mut report = Report::begin(
        "join",
        options.page.as_deref(),
        &format!(
            "## Joining many jobs\n\nA process joins jobs of {SHARDS} shards that are not due, on one ZooKeeper on the same machine, whose JVM is warm: new jobs, and the same jobs again after the process \
             has stopped. Then ZooKeeper is killed and restarted: the time from the moment at which it serves again until every job can run. Requests and bytes are those that ZooKeeper counts."
        ),
    )?;
    report.values();
    for size in SIZES.iter().filter(|size| options.jobs.is_none_or(|jobs| jobs == size.jobs)) {
        measure(size, &mut report).await?;
    }
    report.end_table();
    report.end()
}

async fn measure(size: &Size, report: &mut Report) -> Result<(), BoxError> {
    let jobs = f64::from(u32::try_from(size.jobs)?);
    let server = ZooKeeper::builder().full_speed().start();
    let plan = |namespace: &str, jobs| NodePlan {
        registry: format!("zookeeper://{}/{namespace}?sessionTimeout=30s", server.address()),
        jobs,
        shards: SHARDS,
        cron: NEVER.to_owned(),
        number: 1,
        history: None,
    };
    let (warm_up, _) = NodeProcess::start(&plan("warm-up", WARM_UP_JOBS)).await?;
    warm_up.stop().await?;
    let plan = plan("join", size.jobs);
    let mut value = |label: &str, value, target| {
        report.value(&format!("{} jobs: {label}", size.jobs), value, target);
    };
    let before = ServerCounters::read(&server)?;
    for (which, max_join) in [("new", Goal(size.max_join)), ("again", Goal(size.max_join))] {
        let start = ServerCounters::read(&server)?;
        let (node, times) = NodeProcess::start(&plan).await?;
        let joining = ServerCounters::read(&server)?.since(start);
        let ms = |duration: Duration| (duration.as_secs_f64() * 1e3, Milliseconds);
        value(&format!("{which}, every job can run after"), ms(times.ready), max_join);
        let each = |count: f64| count / jobs;
        value(&format!("{which}, requests per job"), (each(joining.requests), Count), Target::None);
        let transactions = (each(joining.transactions), Count);
        value(&format!("{which}, transactions per job"), transactions, Target::None);
        let sent = (each(joining.received_bytes), Bytes);
        value(&format!("{which}, bytes sent per job"), sent, Target::None);
        let received = (each(joining.sent_bytes), Bytes);
        value(&format!("{which}, bytes received per job"), received, Target::None);
        tokio::time::sleep(IDLE_AFTER).await;
        let resident = (node.resident()?, Megabytes);
        value(&format!("{which}, resident when idle"), resident, size.max_memory);
        let peak = (node.peak_resident()?, Megabytes);
        value(&format!("{which}, peak resident"), peak, Target::None);
        if which == "new" {
            let stored = ServerCounters::read(&server)?.since(before);
            value("nodes per job", (each(stored.nodes), Count), Target::None);
            value("watches per job", (each(stored.watches), Count), Target::None);
            value("sessions", (f64::from(times.sessions), Count), Target::None);
            let stopwatch = Stopwatch::start();
            node.stop().await?;
            value("graceful stop", ms(stopwatch.elapsed()), Target::None);
        } else {
            let (catching_up, counters) = restart(&server, node).await?;
            value(
                "after a restart of ZooKeeper, every job can run after",
                ms(catching_up),
                size.max_catch_up,
            );
            let requests = (each(counters.requests), Count);
            value("after a restart of ZooKeeper, requests per job", requests, Target::None);
            let received = (each(counters.sent_bytes), Bytes);
            value("after a restart of ZooKeeper, bytes received per job", received, Target::None);
        }
    }
    Ok(())
}

/// Kills and restarts the server. Returns how long the node took from then on until every job could run, and what the server counted meanwhile.
async fn restart(
    server: &ZooKeeper,
    mut node: NodeProcess,
) -> Result<(Duration, ServerCounters), BoxError> {
    server.stop();
    node.wait_until_unready().await?;
    server.restart();
    let stopwatch = Stopwatch::start();
    node.wait_until_ready().await?;
    // Everything was counted since the restart.
    let counters = (stopwatch.elapsed(), ServerCounters::read(server)?);
    node.stop().await?;
    Ok(counters)
}
