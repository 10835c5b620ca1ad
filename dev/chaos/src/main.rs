//! `chaos storm` raises a storm and says what is left; `chaos worker` is what it starts.

use std::{env, error::Error, path::PathBuf, process::ExitCode, time::Duration};

use chaos::{
    Aftermath, Storm,
    worker::{ORDERS, Orders, work},
};
use clap::{Parser, Subcommand};

/// Everything that can go wrong, on real processes and real servers. Ends with exit code 1 when something was lost or ran twice,
/// and with 2 when that could not be found out.
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// raises a storm over an ensemble, a database and workers
    Storm {
        /// for how many minutes
        #[arg(long, default_value_t = 5.0)]
        minutes: f64,
        /// what it is derived from; another one each time if not given
        #[arg(long)]
        seed: Option<u64>,
        /// over how many workers
        #[arg(long, default_value_t = 5)]
        workers: usize,
        /// where the workers log
        #[arg(long, default_value = "target/chaos")]
        logs: PathBuf,
    },
    /// is started by a storm, with its orders in the environment
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
    let orders = env::var(ORDERS).ok().as_deref().and_then(Orders::from_text);
    work(orders.ok_or("a worker is started by a storm; hint: chaos storm")?).await
}

#[expect(clippy::print_stdout, reason = "the results, for whoever runs this")]
async fn storm(
    minutes: f64,
    seed: Option<u64>,
    workers: usize,
    logs: PathBuf,
) -> Result<bool, Box<dyn Error>> {
    let seed = seed.unwrap_or_else(rand::random);
    println!(
        "a storm of {minutes} minutes over {workers} workers, --seed {seed}; they log to {}",
        logs.display()
    );
    let lasts = Duration::from_secs_f64(minutes * 60.0);
    let storm = Storm { program: env::current_exe()?, logs, workers, lasts, seed };
    let Aftermath { findings, faults } = storm.run().await?;
    for fault in &faults {
        println!("  {fault}");
    }
    println!("{findings}");
    let shows_something = findings.taken_over > 0 && findings.refused > 0;
    if !shows_something {
        println!(
            "nobody died in the middle of a run, or nobody tried a stale write: this shows nothing; hint: let it last longer, with MINUTES=5"
        );
    }
    Ok(findings.wrong.is_empty() && shows_something)
}
