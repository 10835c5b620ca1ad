//! The process: joins its jobs, which only note when they start, and answers commands.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use elasticjob::{
    history::{Importance, Recorder, Retention},
    job::{Job, Shard},
    node::{Node, RunningNode},
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{BoxError, print_line, stopwatch::Stopwatch};

/// How often the node is asked whether it is ready.
const INTERVAL: Duration = Duration::from_millis(5);

/// The arguments of the process.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(long)]
    registry: String,
    #[arg(long)]
    jobs: usize,
    #[arg(long)]
    shards: u32,
    #[arg(long)]
    cron: String,
    #[arg(long)]
    address: Ipv4Addr,
    #[arg(long, requires = "spill")]
    history: Option<String>,
    /// The folder in which events wait, as those of `elasticjob run` do
    #[arg(long)]
    spill: Option<PathBuf>,
}

/// Start delays in milliseconds, by the moment at which the shards were due.
type Delays = Arc<Mutex<BTreeMap<i64, Vec<f32>>>>;

/// Runs the node until its standard input ends or it is told to stop.
pub(crate) async fn run(options: Options) -> Result<bool, BoxError> {
    let delays = Delays::default();
    let stopwatch = Stopwatch::start();
    let node = build(&options, &delays)?.start().await?;
    wait_until(&node, true).await;
    answer(&json!({
        "ready_ms": stopwatch.elapsed().as_secs_f64() * 1e3,
        "sessions": node.sessions().len(),
    }));
    let mut commands = read_commands();
    while let Some(command) = commands.recv().await {
        match &*command {
            "delays" => answer(&json!({"fires": take(&delays)})),
            "ready" => {
                wait_until(&node, true).await;
                answer(&json!({}));
            }
            "unready" => {
                wait_until(&node, false).await;
                answer(&json!({}));
            }
            "stop" => break,
            unknown => return Err(format!("no command {unknown:?}").into()),
        }
    }
    let recording = node.recording().cloned();
    node.stop().await;
    // After the node has stopped, all events are recorded.
    let counts = recording.map(|recording| recording.counts()[0].1).unwrap_or_default();
    let dropped: u64 = Importance::ALL.into_iter().map(|worth| counts.dropped(worth)).sum();
    answer(&json!({"recorded": counts.recorded, "dropped": dropped}));
    Ok(true)
}

fn build(options: &Options, delays: &Delays) -> Result<Node, BoxError> {
    let mut node = Node::join(&options.registry).address(options.address);
    if let (Some(history), Some(folder)) = (&options.history, &options.spill) {
        let recorder = Recorder::new().database(history.parse()?, Retention::default());
        node = node.history(recorder.spill(folder));
    }
    for number in 0..options.jobs {
        let job = Job::named(&format!("job-{number}"))?.cron(&options.cron)?.shards(options.shards);
        let delays = Arc::clone(delays);
        node = node.job(job, move |shard: Shard| {
            let delay = SystemClock.now().duration_since(shard.due_at).as_secs_f32() * 1e3;
            let due_at = shard.due_at.as_millisecond();
            lock(&delays).entry(due_at).or_default().push(delay);
            async { Ok::<(), std::io::Error>(()) }
        });
    }
    Ok(node)
}

/// The lines of the standard input, read by a thread of its own, because reading them blocks.
fn read_commands() -> mpsc::UnboundedReceiver<String> {
    let (sender, commands) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let lines = std::io::stdin().lines().map_while(Result::ok);
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
    });
    commands
}

async fn wait_until(node: &RunningNode, is_ready: bool) {
    while node.is_ready() != is_ready {
        tokio::time::sleep(INTERVAL).await;
    }
}

fn take(delays: &Delays) -> Vec<(i64, Vec<f32>)> {
    std::mem::take(&mut *lock(delays)).into_iter().collect()
}

fn lock(delays: &Delays) -> std::sync::MutexGuard<'_, BTreeMap<i64, Vec<f32>>> {
    delays.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(answer: &Value) {
    print_line(&answer.to_string());
}
