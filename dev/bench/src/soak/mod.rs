//! Console, three workers and a registry under load: after a warm-up, memory, open files, threads and tasks of each process stay flat.
//!
//! The load is what leaks are made of: fires every second or two, requests and triggers, logins and logouts, event streams that are opened and
//! closed, and a third worker that is stopped and killed in turn, so that sessions come and go and its shards move. The processes that run from
//! beginning to end are measured; growth is the slope of the least-squares line times the measured time.

mod load;
mod samples;
mod worker_process;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use elasticjob::history::HistoryUrl;

use self::{
    load::Load,
    samples::{Measure, Samples},
    worker_process::WorkerProcess,
};
use crate::{
    BoxError,
    console::ConsoleProcess,
    machine, print_line,
    registry::{Durability, ServerUnderTest},
    stopwatch::Stopwatch,
};

/// Number of samples in a run.
const SAMPLES: u32 = 120;
/// The shortest time between two samples.
const MIN_INTERVAL: Duration = Duration::from_secs(2);
/// The part of the run that is not measured: caches, pools and histories fill up.
const WARM_UP: f64 = 0.25;
/// How long the first run may take to create the history.
const HISTORY_TIMEOUT: Duration = Duration::from_mins(1);
/// Rows of the table on the page.
const ROWS: usize = 12;
/// How long the restarted worker runs, and how long it stays away.
const RESTART: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// duration in minutes
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// the registry
    #[arg(long, value_enum, default_value = "zookeeper")]
    registry: RegistryKind,
    /// file that the table is written to, in Markdown
    #[arg(long)]
    page: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RegistryKind {
    Zookeeper,
    Tinykeeper,
}

/// Runs the soak. Returns whether everything stayed flat.
pub(crate) async fn run(options: Options) -> Result<bool, BoxError> {
    let registry = match options.registry {
        RegistryKind::Zookeeper => ServerUnderTest::zookeeper(Durability::Unsynced),
        RegistryKind::Tinykeeper => ServerUnderTest::tinykeeper(Durability::Unsynced)?,
    };
    let url = format!("zookeeper://{}/soak?sessionTimeout=6s", registry.address());
    let folder = tempfile::Builder::new().prefix("bench-soak-").tempdir()?;
    let history_file = folder.path().join("history.db");
    let history = HistoryUrl::sqlite(history_file.clone());
    let start = |number: usize| WorkerProcess::start(number, &url, &history, folder.path());
    let workers = [start(1)?, start(2)?];
    let mut third = Some(start(3)?);
    // The first run creates it. Until then the console answers that there is no history, which the load counts as a failure.
    wait_for_file(&history_file).await?;
    let console = ConsoleProcess::start(&url, &history)?;
    let load = Load::start(&console.address, &console.password);

    let mut samples = Samples::new(&[
        ("console", console.pid(), None),
        ("worker 1", workers[0].pid(), Some(workers[0].health_address())),
        ("worker 2", workers[1].pid(), Some(workers[1].health_address())),
        (registry.name(), registry.pid(), None),
    ]);
    let whole = Duration::from_secs_f64(options.minutes * 60.0);
    let interval = (whole / SAMPLES).max(MIN_INTERVAL);
    print_line(&format!(
        "soak of {} minutes on {}; {}",
        options.minutes,
        registry.name(),
        machine::line()
    ));
    let stopwatch = Stopwatch::start();
    let (mut restarts, mut changed) = (0, Duration::ZERO);
    while stopwatch.elapsed() < whole {
        tokio::time::sleep(interval).await;
        load.check()?;
        samples.take(stopwatch.elapsed())?;
        print_line(&samples.last_line());
        let (up, away) = RESTART;
        let due = if third.is_some() { up } else { away };
        if stopwatch.elapsed() >= changed + due {
            changed = stopwatch.elapsed();
            third = match third.take() {
                // In turn: one says goodbye, the other leaves a session behind that expires.
                Some(worker) if restarts % 2 == 0 => worker.stop().map(|()| None)?,
                Some(worker) => {
                    drop(worker);
                    None
                }
                None => {
                    restarts += 1;
                    Some(start(3)?)
                }
            };
        }
    }
    let done = load.stop()?;
    let fires = workers[0].fires()? + workers[1].fires()?;
    let work = format!(
        "{fires} fires on workers 1 and 2, {} requests, {} triggers, {} logins and logouts, {} event streams, {restarts} restarts of worker 3",
        done.requests, done.triggers, done.logins, done.streams
    );
    let is_flat = report(&options, registry.name(), &samples, whole, &work)?;
    let is_loaded =
        fires > 0 && done.requests > 0 && done.triggers > 0 && done.logins > 0 && done.streams > 0;
    if !is_loaded {
        print_line("MISSED  a part of the load did nothing");
    }
    Ok(is_flat && is_loaded)
}

async fn wait_for_file(file: &Path) -> Result<(), BoxError> {
    let stopwatch = Stopwatch::start();
    while !file.exists() {
        if stopwatch.elapsed() > HISTORY_TIMEOUT {
            return Err(format!("no worker has created {}", file.display()).into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Prints the result and writes the page. Returns whether everything stayed flat.
fn report(
    options: &Options,
    registry: &str,
    samples: &Samples,
    whole: Duration,
    work: &str,
) -> Result<bool, BoxError> {
    let measured_from = whole.mul_f64(WARM_UP);
    let mut lines = vec![
        "# Soak".to_owned(),
        String::new(),
        format!(
            "`make soak` wrote this page on {}: {} minutes on {registry}, with a console, two workers that run from beginning to end, and a third one that is stopped or \
             killed every {} seconds.",
            machine::line(),
            options.minutes,
            (RESTART.0 + RESTART.1).as_secs()
        ),
        String::new(),
        format!("Meanwhile: {work}."),
        String::new(),
        format!(
            "Growth is the slope after a warm-up of {:.0} minutes, times the measured time. It has to stay below the limit; the JVM of ZooKeeper is shown and not judged.",
            measured_from.as_secs_f64() / 60.0
        ),
        String::new(),
        "| process | | at the start | at the end | growth | limit | |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    let mut is_flat = true;
    for growth in samples.growth(measured_from) {
        let is_judged = growth.process != "ZooKeeper";
        let is_met = growth.value <= growth.limit;
        is_flat &= is_met || !is_judged;
        let result = match (is_met, is_judged) {
            (_, false) => "",
            (true, _) => "flat",
            (false, _) => "**grows**",
        };
        let unit = growth.measure.unit();
        lines.push(format!(
            "| {} | {} | {:.1}{unit} | {:.1}{unit} | {:+.2}{unit} | {:.1}{unit} | {result} |",
            growth.process,
            growth.measure.name(),
            growth.first,
            growth.last,
            growth.value,
            growth.limit
        ));
    }
    lines.extend([String::new(), "## Samples".to_owned(), String::new()]);
    lines.push("Resident memory in MB / open files / threads / tasks (workers tell them; `elasticjob_tasks`).".to_owned());
    lines.push(String::new());
    lines.extend(samples.table(ROWS));
    let text = lines.join("\n") + "\n";
    print_line(&text);
    if let Some(page) = &options.page {
        fs::write(page, text)?;
        print_line(&format!("wrote {}", page.display()));
    }
    Ok(is_flat)
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "resident memory",
            Self::Files => "open files",
            Self::Threads => "threads",
            Self::Tasks => "tasks",
        }
    }

    fn unit(self) -> &'static str {
        if matches!(self, Self::Memory) { " MB" } else { "" }
    }
}
