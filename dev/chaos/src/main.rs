//! `chaos storm` injects faults into a cluster and reports violations; `chaos worker` is the process that it starts.

use std::{env, error::Error, path::PathBuf, process::ExitCode, time::Duration};

use chaos::{
    Storm, StormReport,
    worker::{CONFIG_VARIABLE, WorkerConfig, work},
};
use clap::{Parser, Subcommand};

/// Injects faults into real processes and servers. Exits with 1 if a fire was lost or a shard ran twice, and with 2 if the check itself failed.
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// injects faults into an ensemble and workers that write to a database
    Storm {
        /// duration in minutes
        #[arg(long, default_value_t = 5.0)]
        minutes: f64,
        /// seed of the random faults; a new one each time if not given
        #[arg(long)]
        seed: Option<u64>,
        /// number of workers
        #[arg(long, default_value_t = 5)]
        workers: usize,
        /// folder of the workers' logs
        #[arg(long, default_value = "target/chaos")]
        logs: PathBuf,
    },
    /// started by `chaos storm`, with its configuration in the environment
    Worker,
}

#[tokio::main]
async fn main() -> ExitCode {
    let run = match Options::parse().command {
        Command::Storm { minutes, seed, workers, logs } => {
            storm(minutes, seed, workers, logs).await
        }
        Command::Worker => worker().await.map(|()| true),
    };
    match run {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::from(2)
        }
    }
}

async fn worker() -> Result<(), Box<dyn Error>> {
    let filter = env::var("RUST_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let config = env::var(CONFIG_VARIABLE).ok().as_deref().and_then(WorkerConfig::from_text);
    work(
        config
            .ok_or("CHAOS_WORKER_CONFIG is not set or invalid; hint: chaos storm starts workers")?,
    )
    .await
}

#[expect(clippy::print_stdout, reason = "the results are the output of this program")]
async fn storm(
    minutes: f64,
    seed: Option<u64>,
    workers: usize,
    logs: PathBuf,
) -> Result<bool, Box<dyn Error>> {
    let seed = seed.unwrap_or_else(rand::random);
    println!(
        "storm: {minutes} minutes, {workers} workers, --seed {seed}; logs in {}",
        logs.display()
    );
    let duration = Duration::from_secs_f64(minutes * 60.0);
    let storm = Storm { program: env::current_exe()?, logs, workers, duration, seed };
    let StormReport { findings, faults } = storm.run().await?;
    for fault in &faults {
        println!("  {fault}");
    }
    println!("{findings}");
    let is_conclusive = findings.taken_over > 0 && findings.refused > 0;
    if !is_conclusive {
        println!(
            "inconclusive: no failover, or no stale write was refused; hint: run longer, with MINUTES=5"
        );
    }
    Ok(findings.violations.is_empty() && is_conclusive)
}
