//! A thousand jobs in one process: registration time, memory and threads, and start delay.
//!
//! All jobs are due in the same seconds, with four shards each, on a real ZooKeeper. Counts are asserted: memory, threads, and that every shard of
//! every fire runs. Times are only printed, because they depend on the machine.

use std::{collections::BTreeMap, sync::Arc, thread, time::Duration};

use elasticjob::{
    job::{Job, Shard},
    node::{Node, RunningNode},
    registry::{ZooKeeperSettings, zookeeper},
    runtime::{Clock, SystemClock},
};
use jiff::{SignedDuration, Timestamp};
use testbed::ZooKeeper;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    BoxError, print_line,
    process::{peak_resident, resident, threads},
    stopwatch::Stopwatch,
};

const JOBS: usize = 1_000;
const SHARDS: u32 = 4;
/// Shards of all jobs in one fire.
const SHARDS_PER_FIRE: usize = JOBS * SHARDS as usize;
const CRON: &str = "0/5 * * * * ?";
/// Seconds between two fires.
const INTERVAL: u32 = 5;
/// Measured fires of every job.
const FIRES: usize = 3;
/// Resident memory, in megabytes.
const MAX_MEMORY: f64 = 50.0;
/// How long to wait for the next shard to start.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The start of a shard.
struct Start {
    due_at: Timestamp,
    delay: SignedDuration,
}

/// Runs the benchmark. Returns whether every target was met.
pub(crate) async fn run() -> Result<bool, BoxError> {
    let server = ZooKeeper::builder().full_speed().start();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let stopwatch = Stopwatch::start();
    let node = start(&server, "jobs", &sender).await?;
    let first_registered = stopwatch.elapsed();
    let mut fires: BTreeMap<Timestamp, Vec<SignedDuration>> = BTreeMap::new();
    // The first fire may coincide with the resharding.
    while fires.len() <= FIRES
        || fires.last_key_value().is_some_and(|fire| fire.1.len() < SHARDS_PER_FIRE)
    {
        let Ok(Some(start)) = timeout(TIMEOUT, receiver.recv()).await else { break };
        fires.entry(start.due_at).or_default().push(start.delay);
    }
    let pid = std::process::id();
    let (memory, peak, threads) = (resident(pid)?, peak_resident(pid)?, threads(pid)?);
    node.stop().await;
    // Once more, now that the JVM has compiled its code.
    let stopwatch = Stopwatch::start();
    let node = start(&server, "again", &sender).await?;
    let registered = stopwatch.elapsed();
    node.stop().await;

    let mut delays: Vec<SignedDuration> = fires.into_values().skip(1).flatten().collect();
    delays.sort_unstable();
    let quantile = |percent: usize| delays.get(delays.len().saturating_sub(1) * percent / 100);
    let quantiles = [50, 99, 100].map(|percent| quantile(percent).copied().unwrap_or_default());
    let (due, processors) =
        (SHARDS_PER_FIRE * FIRES, thread::available_parallelism().map_or(1, usize::from));
    let max_threads = 2 * processors + 4;
    print_line(&format!(
        "{JOBS} jobs of {SHARDS} shards in one process, all due every {INTERVAL} seconds; {processors} processors\n"
    ));
    let [registered, at_first] = [registered, first_registered].map(|time| time.as_millis());
    print_line(&format!(
        "{:<34}{registered:>10} ms   {at_first} ms on a fresh server",
        "time to register"
    ));
    print_line(&format!("{:<34}{memory:>10.1} MB   peak {peak:.1} MB", "resident"));
    print_line(&format!("{:<34}{threads:>13}", "threads"));
    print_line(&format!("{:<34}{:>13}   of {due}", "shards run", delays.len()));
    let [median, p99, max] = quantiles.map(|delay| delay.as_millis());
    print_line(&format!("{:<34}{median:>10} ms   p99 {p99} ms, max {max} ms", "start delay"));
    let targets = [
        (memory < MAX_MEMORY, format!("{memory:.1} MB resident, less than {MAX_MEMORY} expected")),
        (threads <= max_threads, format!("{threads} threads, at most {max_threads} expected")),
        (delays.len() == due, format!("{} shards run, {due} expected", delays.len())),
    ];
    let missed: Vec<&String> =
        targets.iter().filter(|target| !target.0).map(|target| &target.1).collect();
    for missed in &missed {
        print_line(&format!("MISSED  {missed}"));
    }
    Ok(missed.is_empty())
}

/// Starts a node that reports every start of a shard to `sender`.
async fn start(
    server: &ZooKeeper,
    namespace: &str,
    sender: &mpsc::UnboundedSender<Start>,
) -> Result<RunningNode, BoxError> {
    let settings = ZooKeeperSettings::new([server.address().into()], namespace.parse()?);
    let mut node = Node::on(Arc::new(zookeeper::ZooKeeper::connect(&settings).await?));
    for number in 0..JOBS {
        let job = Job::named(&format!("job-{number}"))?.cron(CRON)?.shards(SHARDS);
        let sender = sender.clone();
        node = node.job(job, move |shard: Shard| {
            let delay = SystemClock.now().duration_since(shard.due_at);
            // The receiver is gone when the benchmark is over.
            let _ = sender.send(Start { due_at: shard.due_at, delay });
            async { Ok::<(), std::io::Error>(()) }
        });
    }
    Ok(node.start().await?)
}
