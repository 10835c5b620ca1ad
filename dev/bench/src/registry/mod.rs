//! tinykeeper against ZooKeeper, and our client against zookeeper-client.
//!
//! *The same program against both.* Each row is work done through our client, which does not know whom it talks to
//! ([`row`]). Both servers run as processes of their own, keep a log on the same file system, and either both or neither
//! wait for the disk ([`contestant`]).
//!
//! *In one run.* This machine today is not that machine yesterday, so only ratios within a run are asserted: each row is done
//! by one server and right after by the other, in turns who begins, on fresh paths, once the JVM had time to compile
//! ([`rounds`]). Medians stand for the rounds; the ratio is the median of the rounds' own ratios, and absolutes are printed
//! for people.
//!
//! *With bars.* At least [`ROW_BAR`] of ZooKeeper's rate in each row, [`MEMORY_BAR`] for [`memory::NODES`] nodes, and a client
//! that is ahead of zookeeper-client at its best. Missed bars are named.

mod clients;
mod contestant;
mod fan_out;
mod memory;
mod pipeline;
mod process;
mod report;
mod rounds;
mod row;
mod sessions;

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;

use self::{contestant::Contestant, report::Report, rounds::Rounds, row::Row};
pub(crate) use self::{
    contestant::Keeping,
    pipeline::write_limit,
    process::{Tinykeeper, beside_us},
};
use crate::BoxError;

/// Of ZooKeeper's rate, in each row. The aim is 1; the rest is what a busy machine adds.
const ROW_BAR: f64 = 0.9;
/// Of zookeeper-client's best rate.
const CLIENT_BAR: f64 = 1.0;
/// Resident, in megabytes.
const MEMORY_BAR: f64 = 100.0;

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How many rounds count; the median stands for them
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// For how long ZooKeeper does each row before, for the JVM to compile
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    warm_up: u64,
    /// Only these parts
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Also write the results here, one JSON object in each line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Creates,
    Sets,
    Reads,
    Sessions,
    FanOut,
    Memory,
    Clients,
}

impl Part {
    fn row(self) -> Option<Row> {
        match self {
            Part::Creates => Some(Row::Creates),
            Part::Sets => Some(Row::Sets),
            Part::Reads => Some(Row::Reads),
            Part::Sessions => Some(Row::Sessions),
            Part::FanOut => Some(Row::FanOut),
            Part::Memory | Part::Clients => None,
        }
    }
}

/// Runs everything asked for; `true` when every bar was met.
pub(crate) async fn run(options: Options) -> Result<bool, BoxError> {
    let parts = if options.only.is_empty() { Part::value_variants() } else { &options.only };
    let rounds = Rounds { warm_up: Duration::from_secs(options.warm_up), counted: options.rounds };
    let mut report = Report::new(options.json.as_deref())?;

    Report::begin(rounds);
    let rows: Vec<Row> = parts.iter().filter_map(|part| part.row()).collect();
    if !rows.is_empty() {
        Report::begin_rows();
        for keeping in [Keeping::Unsynced, Keeping::Synced] {
            let mut contestants =
                vec![Contestant::zookeeper(keeping), Contestant::tinykeeper(keeping)?];
            if keeping == Keeping::Unsynced {
                // For information, once: ZooKeeper has nothing to compare it with.
                contestants.push(Contestant::tinykeeper(Keeping::InMemory)?);
            }
            for row in &rows {
                report.row(*row, keeping, &rounds.run(&contestants, *row).await?)?;
            }
        }
    }
    if parts.contains(&Part::Memory) {
        let ours = memory::measure(&Contestant::tinykeeper(Keeping::InMemory)?).await?;
        let theirs = memory::measure(&Contestant::zookeeper(Keeping::Unsynced)).await?;
        report.memory(theirs, ours)?;
    }
    if parts.contains(&Part::Clients) {
        let zookeeper = Contestant::zookeeper(Keeping::Unsynced);
        report.clients(&clients::measure(&zookeeper, options.rounds).await?)?;
    }
    Ok(report.end())
}
