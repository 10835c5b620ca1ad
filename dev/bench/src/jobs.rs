//! A thousand jobs in one process: how long they take to register, what they take to keep, and how punctual they are.
//!
//! All are due in the same seconds, with four shards each, on a real ZooKeeper. What is counted is asserted: memory, threads, and that
//! every shard of every fire is run. Times are printed: they are the machine's as much as ours.

use std::{collections::BTreeMap, sync::Arc, thread, time::Duration};

use elasticjob::{
    job::{Job, Shard},
    node::{Node, Running},
    registry::{ZooKeeperSettings, zookeeper},
    runtime::{Clock, SystemClock},
};
use jiff::{SignedDuration, Timestamp};
use testbed::ZooKeeper;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    BoxError,
    process::{resident, resident_at_most, threads},
    say,
    stopwatch::Stopwatch,
};

const JOBS: usize = 1_000;
const SHARDS: u32 = 4;
/// Shards of one fire of all jobs.
const EACH: usize = JOBS * SHARDS as usize;
const CRON: &str = "0/5 * * * * ?";
/// Seconds between two fires.
const INTERVAL: u32 = 5;
/// Fires of every job that count.
const FIRES: usize = 3;
/// Resident, in megabytes.
const MEMORY_BAR: f64 = 50.0;
/// How long to wait for the next shard to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A shard that started.
struct Start {
    due_at: Timestamp,
    late: SignedDuration,
}

/// Runs it; `true` when every bar was met.
pub(crate) async fn run() -> Result<bool, BoxError> {
    let server = ZooKeeper::builder().full_speed().start();
    let (tell, mut told) = mpsc::unbounded_channel();
    let stopwatch = Stopwatch::start();
    let node = start(&server, "jobs", &tell).await?;
    let registered_at_first = stopwatch.elapsed();
    let mut fires: BTreeMap<Timestamp, Vec<SignedDuration>> = BTreeMap::new();
    // The first may fall into the dealing of shards.
    while fires.len() <= FIRES || fires.last_key_value().is_some_and(|fire| fire.1.len() < EACH) {
        let Ok(Some(start)) = timeout(PATIENCE, told.recv()).await else { break };
        fires.entry(start.due_at).or_default().push(start.late);
    }
    let pid = std::process::id();
    let (full, most, threads) = (resident(pid)?, resident_at_most(pid)?, threads(pid)?);
    node.stop().await;
    // Once more, when the JVM has compiled.
    let stopwatch = Stopwatch::start();
    let node = start(&server, "again", &tell).await?;
    let registered = stopwatch.elapsed();
    node.stop().await;

    let mut late: Vec<SignedDuration> = fires.into_values().skip(1).flatten().collect();
    late.sort_unstable();
    let quantile = |percent: usize| late.get(late.len().saturating_sub(1) * percent / 100);
    let quantiles = [50, 99, 100].map(|percent| quantile(percent).copied().unwrap_or_default());
    let (due, processors) = (EACH * FIRES, thread::available_parallelism().map_or(1, usize::from));
    let threads_bar = 2 * processors + 4;
    say(&format!(
        "{JOBS} jobs of {SHARDS} shards in one process, all due every {INTERVAL} seconds; {processors} processors\n"
    ));
    let [registered, at_first] = [registered, registered_at_first].map(|time| time.as_millis());
    say(&format!(
        "{:<34}{registered:>10} ms   {at_first} ms on a server just started",
        "to register"
    ));
    say(&format!("{:<34}{full:>10.1} MB   {most:.1} MB at most", "resident"));
    say(&format!("{:<34}{threads:>13}", "threads"));
    say(&format!("{:<34}{:>13}   of {due}", "shards run", late.len()));
    let [median, p99, last] = quantiles.map(|late| late.as_millis());
    say(&format!("{:<34}{median:>10} ms   p99 {p99} ms, the last {last} ms", "late to start"));
    let bars = [
        (full < MEMORY_BAR, format!("{full:.1} MB resident, less than {MEMORY_BAR} expected")),
        (threads <= threads_bar, format!("{threads} threads, at most {threads_bar} expected")),
        (late.len() == due, format!("{} shards run, {due} expected", late.len())),
    ];
    let missed: Vec<&String> = bars.iter().filter(|bar| !bar.0).map(|bar| &bar.1).collect();
    for missed in &missed {
        say(&format!("MISSED  {missed}"));
    }
    Ok(missed.is_empty())
}

/// A node that tells of every shard it starts.
async fn start(
    server: &ZooKeeper,
    namespace: &str,
    tell: &mpsc::UnboundedSender<Start>,
) -> Result<Running, BoxError> {
    let settings = ZooKeeperSettings::new([server.address().into()], namespace.parse()?);
    let mut node = Node::on(Arc::new(zookeeper::ZooKeeper::connect(&settings).await?));
    for number in 0..JOBS {
        let job = Job::named(&format!("job-{number}"))?.cron(CRON)?.shards(SHARDS);
        let tell = tell.clone();
        node = node.job(job, move |shard: Shard| {
            let late = SystemClock.now().duration_since(shard.due_at);
            // Nobody listens any more when the benchmark is over.
            let _ = tell.send(Start { due_at: shard.due_at, late });
            async { Ok::<(), std::io::Error>(()) }
        });
    }
    Ok(node.start().await?)
}
