//! tinykeeper against ZooKeeper, and its client against zookeeper-client.
//!
//! *The same program against both.* Each workload ([`workload`]) runs through our client, which does not know which server it talks to. Both servers
//! run as separate processes with their logs on the same file system, and either both or neither wait for the disk ([`server_under_test`]).
//!
//! *In one run.* Absolute numbers differ from machine to machine and from day to day, so only ratios within a run are asserted. The servers run each
//! workload one right after the other, taking turns at being first, on fresh paths, once the JVM had time to compile ([`rounds`]). The printed rates
//! are medians of the rounds; the ratio is the median of the ratios of the rounds.
//!
//! *With targets.* At least [`MIN_SERVER_RATIO`] of ZooKeeper's rate in each workload, less than [`MAX_MEMORY`] for [`memory::NODES`] nodes, and a
//! client that is at least as fast as zookeeper-client at its best. Missed targets are listed.

mod clients;
mod fan_out;
mod memory;
mod pipeline;
mod process;
mod report;
mod rounds;
mod server_under_test;
mod sessions;
mod workload;

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;

pub(crate) use self::{
    pipeline::write_limit,
    process::{Tinykeeper, sibling_program},
    server_under_test::{Durability, ServerUnderTest},
};
use self::{report::Report, rounds::Rounds, workload::Workload};
use crate::BoxError;

/// Share of ZooKeeper's rate in each workload. The goal is 1; the difference allows for a busy machine.
const MIN_SERVER_RATIO: f64 = 0.9;
/// Share of zookeeper-client's best rate.
const MIN_CLIENT_RATIO: f64 = 1.0;
/// Resident memory, in megabytes.
const MAX_MEMORY: f64 = 100.0;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of measured rounds; the results are their medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Warm-up time of ZooKeeper before each workload, for the JVM to compile
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    warm_up: u64,
    /// Run only these parts
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Also write the results to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A part that can be run alone.
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
    fn workload(self) -> Option<Workload> {
        match self {
            Part::Creates => Some(Workload::Creates),
            Part::Sets => Some(Workload::Sets),
            Part::Reads => Some(Workload::Reads),
            Part::Sessions => Some(Workload::Sessions),
            Part::FanOut => Some(Workload::FanOut),
            Part::Memory | Part::Clients => None,
        }
    }
}

/// Runs the selected parts. Returns whether every target was met.
pub(crate) async fn run(options: Options) -> Result<bool, BoxError> {
    let parts = if options.only.is_empty() { Part::value_variants() } else { &options.only };
    let rounds = Rounds { warm_up: Duration::from_secs(options.warm_up), counted: options.rounds };
    let mut report = Report::new(options.json.as_deref())?;

    Report::begin(rounds);
    let workloads: Vec<Workload> = parts.iter().filter_map(|part| part.workload()).collect();
    if !workloads.is_empty() {
        Report::begin_workloads();
        for durability in [Durability::Unsynced, Durability::Synced] {
            let mut servers = vec![
                ServerUnderTest::zookeeper(durability),
                ServerUnderTest::tinykeeper(durability)?,
            ];
            if durability == Durability::Unsynced {
                // For information only: ZooKeeper has no such mode.
                servers.push(ServerUnderTest::tinykeeper(Durability::InMemory)?);
            }
            for workload in &workloads {
                let samples = rounds.run(&servers, *workload).await?;
                report.workload(*workload, durability, &samples)?;
            }
        }
    }
    if parts.contains(&Part::Memory) {
        let ours = memory::measure(&ServerUnderTest::tinykeeper(Durability::InMemory)?).await?;
        let theirs = memory::measure(&ServerUnderTest::zookeeper(Durability::Unsynced)).await?;
        report.memory(theirs, ours)?;
    }
    if parts.contains(&Part::Clients) {
        let zookeeper = ServerUnderTest::zookeeper(Durability::Unsynced);
        report.clients(&clients::measure(&zookeeper, options.rounds).await?)?;
    }
    Ok(report.end())
}
