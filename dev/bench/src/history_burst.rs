//! Ten thousand jobs due in one second, with and without history: nothing is dropped, and shards start as early.
//!
//! The measurements without history come first and last, so that a machine that becomes busier meanwhile does not favour one side.

use std::path::PathBuf;

use elasticjob::history::HistoryUrl;
use tempfile::TempDir;
use testbed::{Postgres, ZooKeeper};

use crate::{
    BoxError,
    burst::{Burst, SHARDS},
    report::{
        Report,
        Target::{self, AtMost},
        Unit::{Count, Milliseconds, Times},
    },
};

/// Start delay with history, in multiples of the delay without.
const MAX_DELAY: f64 = 1.1;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The page whose section is written
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
    /// Seconds between two fires: the history of one is written before the next
    #[arg(long, default_value_t = 20)]
    interval: i64,
}

/// Runs the benchmark. Returns whether every required target was met.
pub(crate) async fn run(options: &Options) -> Result<bool, BoxError> {
    let Options { jobs, interval, .. } = *options;
    let mut report = Report::begin(
        "history-burst",
        options.page.as_deref(),
        &format!(
            "## History of many jobs due at once\n\n{jobs} jobs of {SHARDS} shards in one process, all due every {interval} seconds, on one ZooKeeper on the same machine: without history, with a SQLite file, \
             and with a PostgreSQL server on the same machine that does not wait for its disk. An event is the start or the end of a shard, or a trace of the run."
        ),
    )?;
    let folder = TempDir::new()?;
    let postgres = tokio::task::spawn_blocking(Postgres::start).await?;
    let server = ZooKeeper::builder().full_speed().start();
    let measure = async |history: Option<String>| {
        Burst::measure(&server, "history", (jobs, interval), history).await
    };
    let first = measure(None).await?;
    let sqlite = HistoryUrl::sqlite(folder.path().join("history.db")).to_string();
    let stores = [
        ("SQLite", measure(Some(sqlite)).await?),
        ("PostgreSQL", measure(Some(postgres.url())).await?),
    ];
    let last = measure(None).await?;
    let off = |percent| first.delay(percent).midpoint(last.delay(percent));
    report.values();
    let ms = |value| (value, Milliseconds);
    report.value("without history: start delay, median", ms(off(50)), Target::None);
    report.value("without history: start delay, p99", ms(off(99)), Target::None);
    for (name, burst) in &stores {
        let label = |what: &str| format!("{name}: {what}");
        report.value(&label("start delay, median"), ms(burst.delay(50)), Target::None);
        report.value(&label("start delay, p99"), ms(burst.delay(99)), Target::None);
        for percent in [50, 99] {
            let ratio = (burst.delay(percent) / off(percent), Times);
            let what = if percent == 50 { "median" } else { "p99" };
            report.value(&label(&format!("{what} / without history")), ratio, AtMost(MAX_DELAY));
        }
        #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
        let [recorded, dropped] =
            [burst.history.recorded, burst.history.dropped].map(|count| count as f64);
        report.value(&label("events stored"), (recorded, Count), Target::None);
        report.value(&label("events dropped"), (dropped, Count), AtMost(0.0));
        let shards = burst.fires * SHARDS as usize;
        let is_stored = burst.history.recorded >= u64::try_from(2 * shards)?;
        report.require(is_stored, &format!("{name}: not every start and end was stored"));
    }
    report.end_table();
    let is_complete = [&first, &last].into_iter().chain(stores.iter().map(|store| &store.1));
    let is_complete = is_complete.into_iter().all(|burst| burst.is_complete);
    report.require(is_complete, "not every shard ran");
    report.end()
}
