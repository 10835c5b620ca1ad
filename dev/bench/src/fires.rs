//! What a fire costs, without a history, with one that is only told, and with one that is kept.
//!
//! The same jobs, all due every second, on a registry in memory, so that nothing but this process works. What is compared is the processor's time of this process for
//! each fire, all three ways in turn. Told is what a job's own process cannot do without: events, queue, batches, to a sink that counts them. Kept is the
//! same into a file of SQLite's, as `run` does by default; there the database works in this process, too, with PostgreSQL or MariaDB it works elsewhere. Counts
//! are asserted: everything that happens is recorded, and nothing is dropped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    history::{Event, HistoryUrl, Recorder, Retention, Sink, SinkError, Worth},
    job::{Job, Shard},
    node::Node,
    registry::memory::MemoryServer,
    runtime::SystemClock,
};

use tempfile::TempDir;

use crate::{BoxError, machine, say, stopwatch::Stopwatch};

const JOBS: usize = 250;
const SHARDS: u32 = 4;
/// How long each way is looked at, and how often.
const SPAN: Duration = Duration::from_secs(5);
const ROUNDS: usize = 3;

/// Counts what it is given.
#[derive(Default)]
struct Counting(AtomicU64);

#[async_trait]
impl Sink for Counting {
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
        self.0.fetch_add(batch.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// What becomes of what happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Untold,
    Told,
    Kept,
}

/// What one look saw.
struct Seen {
    shards: u64,
    busy: Duration,
    kept: u64,
    dropped: u64,
}

/// Runs it; `true` when every bar was met.
pub(crate) async fn run() -> Result<bool, BoxError> {
    say(&format!(
        "{JOBS} jobs of {SHARDS} shards, all due every second, on a registry in memory; {}\n",
        machine::line()
    ));
    let mut ways = [Duration::ZERO; 3];
    let mut fires = [0.0; 3];
    let mut is_complete = true;
    for _ in 0..ROUNDS {
        for (place, way) in [Way::Untold, Way::Told, Way::Kept].into_iter().enumerate() {
            let seen = look(way).await?;
            ways[place] += seen.busy;
            #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
            let count = seen.shards as f64 / f64::from(SHARDS);
            fires[place] += count;
            // A beginning and an end for each shard, three traces for each fire.
            let expected = seen.shards * 2 + seen.shards / u64::from(SHARDS) * 3;
            is_complete &= way == Way::Untold || (seen.dropped == 0 && seen.kept >= expected);
        }
    }
    let [without, told, kept] = [0, 1, 2].map(|way| ways[way].as_secs_f64() * 1e6 / fires[way]);
    say("| a fire of 4 shards | processor time | |");
    say("|---|---|---|");
    say(&format!("| without history | {without:.0} µs | |"));
    say(&format!("| with history, told | {told:.0} µs | {:.2} times |", told / without));
    say(&format!("| with history, kept in SQLite | {kept:.0} µs | {:.2} times |", kept / without));
    if !is_complete {
        say("MISSED  not everything that happened was recorded");
    }
    Ok(is_complete)
}

async fn look(way: Way) -> Result<Seen, BoxError> {
    let folder = TempDir::new()?;
    let server = MemoryServer::new(Arc::new(SystemClock));
    let registry = server.join("bench".parse()?).await?;
    let (ran, sink) = (Arc::new(AtomicU64::new(0)), Arc::new(Counting::default()));
    let mut node = Node::on(Arc::new(registry)).address(std::net::Ipv4Addr::LOCALHOST);
    node = match way {
        Way::Untold => node,
        Way::Told => {
            node.history(Recorder::new().sink("counting", Arc::clone(&sink) as Arc<dyn Sink>))
        }
        Way::Kept => {
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
    // After the end: by then all of it is there.
    let counts = recording.map(|recording| recording.counts()[0].1).unwrap_or_default();
    let dropped = Worth::ALL.into_iter().map(|worth| counts.dropped(worth)).sum();
    let kept = if way == Way::Told { sink.0.load(Ordering::Relaxed) } else { counts.recorded };
    Ok(Seen { shards, busy, kept, dropped })
}
