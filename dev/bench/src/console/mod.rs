//! The console with ten thousand jobs: response time of the job list, memory of the console, and waiting time of a user in a real browser.
//!
//! The registry is tinykeeper, in memory, with jobs as workers leave them there: servers, instances, shards and owners; a history store holds the
//! last runs of each. The list is requested as users do: pages, searches, sort orders. The browser is Chromium without a cache; it is measured once
//! more while a thousand shards per second start and end.

mod browser;
mod console_process;
mod dataset;
mod http_client;

use std::time::Duration;

use elasticjob::registry::{ZooKeeperSettings, zookeeper::ZooKeeper};
use tokio::task::{JoinSet, spawn_blocking};

use self::browser::{BrowserTimings, browse};
pub(crate) use self::{console_process::ConsoleProcess, http_client::HttpClient};
use crate::{
    BoxError, machine, print_line,
    process::{peak_resident, resident, threads},
    registry::{Durability, Tinykeeper},
    stopwatch::Stopwatch,
};

const JOBS: usize = 10_000;
/// Number of requests for the list.
const REQUESTS: usize = 1_000;
/// Limit of the 99th percentile of the time to the first byte of a list, in milliseconds.
const MAX_LIST: f64 = 100.0;
/// Resident memory, in megabytes.
const MAX_MEMORY: f64 = 250.0;
/// Limits of the medians, in milliseconds: from opening the page to rows and a working search, and from a key press to new rows.
const MAX_READY: f64 = 2_000.0;
const MAX_KEY: f64 = 1_000.0;

/// Runs the benchmark. Returns whether every target was met.
pub(crate) async fn run() -> Result<bool, BoxError> {
    let registry = Tinykeeper::start(Durability::InMemory)?;
    let settings = ZooKeeperSettings::new([registry.address().into()], "console".parse()?);
    let client = ZooKeeper::connect(&settings).await?;
    dataset::create_jobs(&client, JOBS).await?;
    let folder = tempfile::tempdir()?;
    let history = dataset::create_history(folder.path(), JOBS).await?;
    let url = format!("zookeeper://{}/console", registry.address());
    print_line(&format!("console with {JOBS} jobs; {}\n", machine::line()));

    let (console, mut times, first) = spawn_blocking(move || {
        let console = ConsoleProcess::start(&url, &history)?;
        let stopwatch = Stopwatch::start();
        let mut client = HttpClient::login(&console.address, &console.password)?;
        client.get("/api/v1/r/default/jobs")?;
        let first = stopwatch.elapsed();
        let times = list_requests().map(|path| client.get(&path)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, BoxError>((console, times, first))
    })
    .await??;
    times.sort_unstable();
    let at = |percent: usize| milliseconds(times[(times.len() - 1) * percent / 100]);
    let (p50, p99, max) = (at(50), at(99), at(100));
    let pid = console.pid();
    let (memory, peak, threads) = (resident(pid)?, peak_resident(pid)?, threads(pid)?);
    row("first list, with everything read", milliseconds(first), "");
    row(
        "first byte of a list",
        p50,
        &format!("p99 {p99:.1} ms, slowest of {REQUESTS}: {max:.1} ms"),
    );
    print_line(&format!(
        "{:<40}{memory:>8.1} MB   peak {peak:.1} MB, {threads} threads",
        "resident"
    ));
    let mut targets = vec![
        (p99 < MAX_LIST, format!("first byte p99 {p99:.1} ms, less than {MAX_LIST} expected")),
        (memory < MAX_MEMORY, format!("{memory:.1} MB resident, less than {MAX_MEMORY} expected")),
    ];

    match browse(&console, 10).await? {
        Ok(timings) => {
            print_timings("", &timings);
            let (ready, key) = (timings.median_ready(), timings.median_key());
            targets.push((
                ready < MAX_READY,
                format!("{ready:.0} ms until rows, less than {MAX_READY} expected"),
            ));
            targets.push((
                key < MAX_KEY,
                format!("{key:.0} ms from a key press to rows, less than {MAX_KEY} expected"),
            ));
            // Dropping the set stops the changes.
            let mut changes = JoinSet::new();
            changes.spawn(async move {
                dataset::change_continuously(&client, JOBS).await.map_err(|error| error.to_string())
            });
            if let Ok(timings) = browse(&console, 3).await? {
                print_timings(", while 1,000 shards per second change", &timings);
            }
            if let Some(ended) = changes.try_join_next() {
                ended??;
            }
        }
        Err(missing) => print_line(&format!("SKIPPED  the browser: {missing}")),
    }
    let missed: Vec<&String> =
        targets.iter().filter(|target| !target.0).map(|target| &target.1).collect();
    for missed in &missed {
        print_line(&format!("MISSED  {missed}"));
    }
    Ok(missed.is_empty())
}

/// The requests that users make for the list.
fn list_requests() -> impl Iterator<Item = String> {
    const SEARCHES: [&str; 10] = [
        "",
        "settle",
        "job-07",
        "label:billing",
        "-is:disabled",
        "server:10.0.3.17",
        "handler:script",
        "is:unreadable",
        "status:CRASHED",
        "cron:0/5",
    ];
    const SORTS: [&str; 6] = [
        "jobName",
        "status",
        "nextFireTime",
        "shardingTotalCount",
        "instanceCount",
        "runningCount",
    ];
    (0..REQUESTS).map(|number| {
        let search = SEARCHES[number % SEARCHES.len()];
        let sort = SORTS[number / SEARCHES.len() % SORTS.len()];
        let order = if number % 7 < 3 { "desc" } else { "asc" };
        let page = 1 + number * 37 % 200;
        format!("/api/v1/r/default/jobs?search={search}&sort={sort}&order={order}&page={page}")
    })
}

fn print_timings(when: &str, timings: &BrowserTimings) {
    let slowest = |times: &[f64]| {
        format!("slowest of {}: {:.0} ms", times.len(), times.iter().copied().fold(0.0, f64::max))
    };
    row(
        &format!("browser: rows and search{when}"),
        timings.median_ready(),
        &slowest(&timings.ready),
    );
    row(
        &format!("browser: from a key press to rows{when}"),
        timings.median_key(),
        &slowest(&timings.keys),
    );
    row(&format!("browser: longest task{when}"), timings.longest_task, "");
}

fn row(name: &str, milliseconds: f64, more: &str) {
    print_line(format!("{name:<64}{milliseconds:>8.1} ms   {more}").trim_end());
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
