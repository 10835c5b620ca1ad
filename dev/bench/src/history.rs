//! Measures how fast history is written: sustained shard events per second into each database.
//!
//! A shard event is the start or the end of one shard of a run with four shards. Starts and ends come in separate batches, as a recorder that keeps
//! up sends them. The databases do not wait for the disk, except for SQLite, which has its default settings.

use std::sync::Arc;

use elasticjob::{
    history::{AttemptEnded, AttemptStarted, Event, HistoryUrl, Sink, Store},
    job::{FencingToken, Fire, Job, Outcome, Shard},
};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use testbed::{MariaDb, Postgres};

use crate::{BoxError, machine, print_line, stopwatch::Stopwatch};

const SHARDS: u32 = 4;
/// Runs per batch.
const RUNS: usize = 125;
/// Number of batches of starts, and of batches of ends.
const BATCHES: usize = 40;
const EVENTS: usize = BATCHES * RUNS * SHARDS as usize * 2;
/// Events per second: a hundred jobs of four shards that run every second make 800.
const MIN_RATE: f64 = 2_000.0;

/// Runs the benchmark. Returns whether every target was met.
pub(crate) async fn run() -> Result<bool, BoxError> {
    let folder = TempDir::new()?;
    let (postgres, mariadb) =
        tokio::task::spawn_blocking(|| (Postgres::start(), MariaDb::start())).await?;
    print_line(&format!(
        "{EVENTS} shard events in batches of {}, one writer; {}\n",
        RUNS * SHARDS as usize,
        machine::line()
    ));
    print_line("| database | events/s | target |");
    print_line("|---|---|---|");
    let mut met = true;
    for (name, url) in [
        ("SQLite", HistoryUrl::sqlite(folder.path().join("history.db"))),
        ("PostgreSQL", postgres.url().parse()?),
        ("MariaDB", mariadb.url().parse()?),
    ] {
        let rate = rate_of(&url).await?;
        met &= rate >= MIN_RATE;
        print_line(&format!("| {name} | {rate:.0} | ≥ {MIN_RATE:.0} |"));
    }
    Ok(met)
}

/// Shard events per second into a SQLite file.
pub(crate) async fn sqlite_rate() -> Result<f64, BoxError> {
    let folder = TempDir::new()?;
    rate_of(&HistoryUrl::sqlite(folder.path().join("history.db"))).await
}

/// Shard events per second into a database.
async fn rate_of(url: &HistoryUrl) -> Result<f64, BoxError> {
    let store = Store::open(url).await?;
    let stopwatch = Stopwatch::start();
    for batch in 0..BATCHES {
        let (starts, ends) = batches(batch)?;
        store.store(&starts).await?;
        store.store(&ends).await?;
    }
    let rate = stopwatch.rate(EVENTS);
    store.close().await;
    Ok(rate)
}

/// The starts and ends of the shards of some runs.
fn batches(number: usize) -> Result<(Vec<Event>, Vec<Event>), BoxError> {
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let job = Job::named(&format!("job-{run}"))?.shards(SHARDS);
        let second = i64::try_from(number)?;
        let fire =
            Fire::scheduled(job.name.clone(), Timestamp::from_second(1_774_785_600 + second)?);
        for item in 0..SHARDS {
            let task = format!("job-{run}@-@0,1,2,3@-@READY@-@10.0.0.7@-@4711-00000001").parse()?;
            let token = FencingToken::new(second);
            let shard = Shard::of(&job, &fire, task, item, token);
            let at = fire.due_at + SignedDuration::from_millis(3);
            let started = Arc::new(AttemptStarted::of(&shard, "machine".into(), at));
            let (outcome, message) = match run {
                0 => (Outcome::Failed, Some("no such order")),
                _ => (Outcome::Succeeded, None),
            };
            starts.push(Event::Started(Arc::clone(&started)));
            ends.push(Event::Ended(AttemptEnded {
                started,
                at: at + SignedDuration::from_millis(40),
                outcome,
                message: message.map(ToOwned::to_owned),
            }));
        }
    }
    Ok((starts, ends))
}
