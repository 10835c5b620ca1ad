//! The console before ten thousand jobs: how soon a list is answered, what that takes, and how long somebody waits in a real browser.
//!
//! The registry is tinykeeper, in memory, with jobs as programs leave them there: servers, members, shards and owners; a history has the last runs of
//! each. The list is asked for as people do: pages, searches, orders. The browser is Chromium, without a cache, and once more while a thousand
//! shards a second begin and end.

mod browser;
mod fleet;
mod program;
mod visitor;

use std::time::Duration;

use elasticjob::registry::{ZooKeeperSettings, zookeeper::ZooKeeper};
use tokio::task::{JoinSet, spawn_blocking};

use self::{
    browser::{Felt, browse},
    program::Console,
    visitor::Visitor,
};
use crate::{
    BoxError, machine,
    process::{resident, resident_at_most, threads},
    registry::{Keeping, Tinykeeper},
    say,
    stopwatch::Stopwatch,
};

const JOBS: usize = 10_000;
/// How often the list is asked for.
const QUESTIONS: usize = 1_000;
/// In milliseconds, until the first byte of a list: of a hundred, ninety-nine are sooner.
const LIST_BAR: f64 = 100.0;
/// Resident, in megabytes.
const MEMORY_BAR: f64 = 250.0;
/// In milliseconds, the median: from the address to rows and a search that works, and from a key to other rows.
const READY_BAR: f64 = 2_000.0;
const KEY_BAR: f64 = 1_000.0;

/// Runs it; `true` when every bar was met.
pub(crate) async fn run() -> Result<bool, BoxError> {
    let registry = Tinykeeper::start(Keeping::InMemory)?;
    let settings = ZooKeeperSettings::new([registry.address().into()], "fleet".parse()?);
    let line = ZooKeeper::connect(&settings).await?;
    fleet::plant(&line, JOBS).await?;
    let folder = tempfile::tempdir()?;
    let history = fleet::history(folder.path(), JOBS).await?;
    let url = format!("zookeeper://{}/fleet", registry.address());
    say(&format!("{JOBS} jobs before the console; {}\n", machine::line()));

    let (console, mut times, first) = spawn_blocking(move || {
        let console = Console::start(&url, &history)?;
        let stopwatch = Stopwatch::start();
        let mut visitor = Visitor::login(&console.address, &console.password)?;
        visitor.ask("/api/v1/r/default/jobs")?;
        let first = stopwatch.elapsed();
        let times = questions().map(|path| visitor.ask(&path)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, BoxError>((console, times, first))
    })
    .await??;
    times.sort_unstable();
    let at = |percent: usize| milliseconds(times[(times.len() - 1) * percent / 100]);
    let (p50, p99, most) = (at(50), at(99), at(100));
    let pid = console.pid();
    let (full, peak, threads) = (resident(pid)?, resident_at_most(pid)?, threads(pid)?);
    row("to the first list, everything read", milliseconds(first), "");
    row(
        "first byte of a list",
        p50,
        &format!("p99 {p99:.1} ms, the slowest of {QUESTIONS} {most:.1} ms"),
    );
    say(&format!("{:<40}{full:>8.1} MB   {peak:.1} MB at most, {threads} threads", "resident"));
    let mut bars = vec![
        (p99 < LIST_BAR, format!("first byte p99 {p99:.1} ms, less than {LIST_BAR} expected")),
        (full < MEMORY_BAR, format!("{full:.1} MB resident, less than {MEMORY_BAR} expected")),
    ];

    match browse(&console, 10).await? {
        Ok(felt) => {
            shown("", &felt);
            let (ready, key) = (felt.median_ready(), felt.median_key());
            bars.push((
                ready < READY_BAR,
                format!("{ready:.0} ms until rows, less than {READY_BAR} expected"),
            ));
            bars.push((
                key < KEY_BAR,
                format!("{key:.0} ms from a key to rows, less than {KEY_BAR} expected"),
            ));
            // Whoever is dropped stops.
            let mut storm = JoinSet::new();
            storm.spawn(async move {
                fleet::storm(&line, JOBS).await.map_err(|error| error.to_string())
            });
            if let Ok(felt) = browse(&console, 3).await? {
                shown(", while 1,000 shards a second change", &felt);
            }
            if let Some(ended) = storm.try_join_next() {
                ended??;
            }
        }
        Err(missing) => say(&format!("SKIPPED  the browser: {missing}")),
    }
    let missed: Vec<&String> = bars.iter().filter(|bar| !bar.0).map(|bar| &bar.1).collect();
    for missed in &missed {
        say(&format!("MISSED  {missed}"));
    }
    Ok(missed.is_empty())
}

/// What people ask a list for.
fn questions() -> impl Iterator<Item = String> {
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
    (0..QUESTIONS).map(|number| {
        let search = SEARCHES[number % SEARCHES.len()];
        let sort = SORTS[number / SEARCHES.len() % SORTS.len()];
        let order = if number % 7 < 3 { "desc" } else { "asc" };
        let page = 1 + number * 37 % 200;
        format!("/api/v1/r/default/jobs?search={search}&sort={sort}&order={order}&page={page}")
    })
}

fn shown(when: &str, felt: &Felt) {
    let most = |times: &[f64]| {
        format!(
            "the slowest of {} {:.0} ms",
            times.len(),
            times.iter().copied().fold(0.0, f64::max)
        )
    };
    row(&format!("browser: rows and search{when}"), felt.median_ready(), &most(&felt.ready));
    row(&format!("browser: from a key to rows{when}"), felt.median_key(), &most(&felt.keys));
    row(&format!("browser: longest task{when}"), felt.longest_task, "");
}

fn row(name: &str, milliseconds: f64, more: &str) {
    say(format!("{name:<64}{milliseconds:>8.1} ms   {more}").trim_end());
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
