//! Benchmarks with bars: ours against the real thing, the same program against both, in one run.

use std::{error::Error, process::ExitCode};

use clap::{Parser, Subcommand};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

mod console;
mod files;
mod fires;
mod history;
mod java;
mod jobs;
mod machine;
mod process;
mod registry;
mod statistics;
mod stopwatch;
mod worker;

/// What goes wrong in a benchmark ends it; nobody does anything different about one error than about another.
type BoxError = Box<dyn Error + Send + Sync>;

/// Benchmarks; each ends with exit code 1 when one of its bars is missed, and with 2 when it could not be run.
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// tinykeeper against ZooKeeper, and our client against zookeeper-client
    Registry(registry::Options),
    /// a thousand jobs in one process, on ZooKeeper
    Jobs,
    /// the binary elasticjob: how large it is, how soon it is ready, what it takes when nothing is due
    Worker,
    /// what a fire costs, without a history and with one
    Fires,
    /// shard-events per second into each database
    History,
    /// the console before ten thousand jobs: its answers, its memory, and a list in a real browser
    Console,
    /// ours beside the real ElasticJob: `make bench-java`
    Java(java::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Options { benchmark } = Options::parse();
    files::allow_many();
    let mut tasks = JoinSet::new();
    // On a worker, where a client's callers usually are: `main` itself is woken from another thread each time.
    tasks.spawn(run(benchmark));
    let ended = tokio::select! {
        ended = tasks.join_next() => ended,
        // By the ordinary way out, so that the servers and their folders go.
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
        // Then a signal ends us as it ends any program.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
}

/// Whether every bar was met.
async fn run(benchmark: Benchmark) -> Result<bool, BoxError> {
    match benchmark {
        Benchmark::Registry(options) => registry::run(options).await,
        Benchmark::Jobs => jobs::run().await,
        Benchmark::Worker => worker::run(),
        Benchmark::Fires => fires::run().await,
        Benchmark::History => history::run().await,
        Benchmark::Console => console::run().await,
        Benchmark::Java(options) => java::run(options).await,
    }
}

#[expect(clippy::print_stdout, reason = "the results, for whoever runs this")]
fn say(line: &str) {
    println!("{line}");
}
