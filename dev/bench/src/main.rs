//! Benchmarks with targets: this project against the original, the same program against both, in one run.

use std::{error::Error, process::ExitCode};

use clap::{Parser, Subcommand};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

mod burst;
mod console;
mod fires;
mod fleet;
mod history;
mod history_burst;
mod java;
mod jobs;
mod join;
mod machine;
mod node_process;
mod open_files;
mod process;
mod registry;
mod report;
mod scale;
mod server_counters;
mod soak;
mod statistics;
mod stopwatch;
mod worker;

/// Any error ends a benchmark; no caller distinguishes errors.
type BoxError = Box<dyn Error + Send + Sync>;

/// Benchmarks. Each exits with 1 if it misses a target, and with 2 if it could not run.
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// tinykeeper against ZooKeeper, and its client against zookeeper-client
    Registry(registry::Options),
    /// a thousand jobs in one process, on ZooKeeper
    Jobs,
    /// a thousand and ten thousand jobs due in one second, against what ZooKeeper itself can do
    Burst(burst::Options),
    /// joining a thousand and ten thousand jobs: time, requests, bytes, memory; catching up after a restart of ZooKeeper
    Join(join::Options),
    /// a fleet restarted process by process: assignments and requests for each membership change
    Fleet(fleet::Options),
    /// the cost model of docs/scale.md: fitted on three sizes, checked on a fourth
    Scale(scale::Options),
    /// the binary elasticjob: size, time until ready, memory when idle
    Worker,
    /// processor time of a fire, with and without history
    Fires,
    /// shard events per second into each database
    History,
    /// ten thousand jobs due in one second with history: nothing dropped, no later start
    HistoryBurst(history_burst::Options),
    /// the console with ten thousand jobs: response times, memory, and the job list in a real browser
    Console,
    /// console, workers and registry under load for an hour: memory, files, threads and tasks stay flat: `make soak`
    Soak(soak::Options),
    /// one node with many jobs, for other benchmarks
    #[command(hide = true)]
    Node(node_process::Options),
    /// comparison with the real Java ElasticJob: `make bench-java`
    Java(java::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Options { benchmark } = Options::parse();
    open_files::raise_limit();
    let mut tasks = JoinSet::new();
    // On a worker thread, where callers of a client usually run: `main` itself is woken from another thread each time.
    tasks.spawn(run(benchmark));
    let ended = tokio::select! {
        ended = tasks.join_next() => ended,
        // Return normally, so that the servers and their folders are removed.
        () = interrupted() => None,
    };
    match ended {
        Some(Ok(Ok(true))) => ExitCode::SUCCESS,
        Some(Ok(Ok(false))) => ExitCode::from(1),
        Some(Ok(Err(error))) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
        Some(Err(_)) | None => ExitCode::from(2),
    }
}

async fn interrupted() {
    let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
    let (Ok(mut interrupted), Ok(mut terminated)) = (signal(interrupt), signal(terminate)) else {
        // Then a signal ends the process, as it ends any program.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
}

/// Whether every target was met.
async fn run(benchmark: Benchmark) -> Result<bool, BoxError> {
    match benchmark {
        Benchmark::Registry(options) => registry::run(options).await,
        Benchmark::Jobs => jobs::run().await,
        Benchmark::Burst(options) => burst::run(&options).await,
        Benchmark::Join(options) => join::run(&options).await,
        Benchmark::Fleet(options) => fleet::run(&options).await,
        Benchmark::Scale(options) => scale::run(&options).await,
        Benchmark::Worker => worker::run(),
        Benchmark::Fires => fires::run().await,
        Benchmark::History => history::run().await,
        Benchmark::HistoryBurst(options) => history_burst::run(&options).await,
        Benchmark::Console => console::run().await,
        Benchmark::Node(options) => node_process::run(options).await,
        Benchmark::Soak(options) => soak::run(options).await,
        Benchmark::Java(options) => java::run(options).await,
    }
}

#[expect(clippy::print_stdout, reason = "the results are the output of this program")]
fn print_line(line: &str) {
    println!("{line}");
}
