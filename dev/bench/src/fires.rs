//! Measures the processor time of a fire: without history, with a sink that only counts events, and with a SQLite database.
//!
//! The same jobs, all due every second, run on a registry in memory, so that only this process works. The benchmark compares the processor time of
//! this process per fire, for the three modes in turn. The counting sink shows the cost that every history has in the process of the job: events,
//! queue, batches. The SQLite file is the default of `run`; its database works in this process too, while PostgreSQL and MariaDB work elsewhere.
//! Counts are asserted: every event is recorded, and none is dropped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    history::{Event, HistoryUrl, Importance, Recorder, Retention, Sink, SinkError},
    job::{Job, Shard},
    node::Node,
    registry::memory::MemoryServer,
    runtime::SystemClock,
};

use tempfile::TempDir;

use crate::{BoxError, machine, print_line, stopwatch::Stopwatch};

const JOBS: usize = 250;
const SHARDS: u32 = 4;
/// Duration and number of the measurements of each mode.
const SPAN: Duration = Duration::from_secs(5);
const ROUNDS: usize = 3;

#[derive(Default)]
struct CountingSink(AtomicU64);

#[async_trait]
impl Sink for CountingSink {
    async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
        self.0.fetch_add(batch.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HistoryMode {
    Off,
    CountingSink,
    Sqlite,
}

struct Measurement {
    shards: u64,
    busy: Duration,
    recorded: u64,
    dropped: u64,
}

/// Runs the benchmark. Returns whether every target was met.
pub(crate) async fn run() -> Result<bool, BoxError> {
    print_line(&format!(
        "{JOBS} jobs of {SHARDS} shards, all due every second, on a registry in memory; {}\n",
        machine::line()
    ));
    let mut busy = [Duration::ZERO; 3];
    let mut fires = [0.0; 3];
    let mut is_complete = true;
    for _ in 0..ROUNDS {
        let modes = [HistoryMode::Off, HistoryMode::CountingSink, HistoryMode::Sqlite];
        for (index, mode) in modes.into_iter().enumerate() {
            let measurement = measure(mode).await?;
            busy[index] += measurement.busy;
            #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
            let count = measurement.shards as f64 / f64::from(SHARDS);
            fires[index] += count;
            // A start and an end for each shard, and three traces for each fire.
            let expected = measurement.shards * 2 + measurement.shards / u64::from(SHARDS) * 3;
            is_complete &= mode == HistoryMode::Off
                || (measurement.dropped == 0 && measurement.recorded >= expected);
        }
    }
    let [off, counting, sqlite] =
        [0, 1, 2].map(|mode| busy[mode].as_secs_f64() * 1e6 / fires[mode]);
    print_line("| a fire of 4 shards | processor time | |");
    print_line("|---|---|---|");
    print_line(&format!("| without history | {off:.0} µs | |"));
    print_line(&format!(
        "| with a counting sink | {counting:.0} µs | {:.2} times |",
        counting / off
    ));
    print_line(&format!("| with history in SQLite | {sqlite:.0} µs | {:.2} times |", sqlite / off));
    if !is_complete {
        print_line("MISSED  not every event was recorded");
    }
    Ok(is_complete)
}

async fn measure(mode: HistoryMode) -> Result<Measurement, BoxError> {
    let folder = TempDir::new()?;
    let server = MemoryServer::new(Arc::new(SystemClock));
    let registry = server.join("bench".parse()?).await?;
    let (ran, sink) = (Arc::new(AtomicU64::new(0)), Arc::new(CountingSink::default()));
    let mut node = Node::on(Arc::new(registry)).address(std::net::Ipv4Addr::LOCALHOST);
    node = match mode {
        HistoryMode::Off => node,
        HistoryMode::CountingSink => {
            node.history(Recorder::new().sink("counting", Arc::clone(&sink) as Arc<dyn Sink>))
        }
        HistoryMode::Sqlite => {
            let url = HistoryUrl::sqlite(folder.path().join("history.db"));
            let recorder = Recorder::new().database(url, Retention::default());
            node.history(recorder.spill(folder.path().join("waiting")))
        }
    };
    for number in 0..JOBS {
        let job = Job::named(&format!("job-{number}"))?.cron("* * * * * ?")?.shards(SHARDS);
        let ran = Arc::clone(&ran);
        node = node.job(job, move |_: Shard| {
            ran.fetch_add(1, Ordering::Relaxed);
            async { Ok::<(), std::io::Error>(()) }
        });
    }
    let running = node.start().await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (before, stopwatch) = (ran.load(Ordering::Relaxed), Stopwatch::start());
    tokio::time::sleep(SPAN).await;
    let (shards, busy) = (ran.load(Ordering::Relaxed) - before, stopwatch.busy());
    let recording = running.recording().cloned();
    running.stop().await;
    // After the node has stopped, all events are recorded.
    let counts = recording.map(|recording| recording.counts()[0].1).unwrap_or_default();
    let dropped = Importance::ALL.into_iter().map(|worth| counts.dropped(worth)).sum();
    let recorded = if mode == HistoryMode::CountingSink {
        sink.0.load(Ordering::Relaxed)
    } else {
        counts.recorded
    };
    Ok(Measurement { shards, busy, recorded, dropped })
}
