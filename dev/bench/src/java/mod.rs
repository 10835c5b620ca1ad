//! Ours beside the real ElasticJob: the same jobs on the same ZooKeeper, in one run, each first in turn.
//!
//! Both are processes that take the same orders (`interop/` and the crate `interop`), with jobs that do nothing but note when they began. What they ask of ZooKeeper is
//! counted on the way ([`wire`]), or by ZooKeeper itself; what they take of the machine is what the kernel says. What is counted is asserted, times are shown.

mod crowd;
mod dealing;
mod death;
mod fire;
mod first;
mod limit;
mod page;
mod punctual;
mod wire;
mod worker;

use std::{fs, path::PathBuf};

use clap::ValueEnum;
use testbed::ZooKeeper;

use self::{page::Page, punctual::Load, worker::Side};
use crate::{BoxError, machine, say, stopwatch::Stopwatch};

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Less of everything, to see whether it works; no page is written
    #[arg(long)]
    brief: bool,
    /// Only these parts; no page is written
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// The page to write
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// What can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Fire,
    Crowd,
    Punctual,
    Death,
    Dealing,
    First,
    Limit,
}

/// How much of everything.
struct Scale {
    fire_shards: &'static [u32],
    fire_seconds: i64,
    crowds: &'static [usize],
    /// Ours alone.
    large_crowds: &'static [usize],
    loads: &'static [Load],
    kills: usize,
    dealings: &'static [(Side, usize)],
    starts: usize,
    java_steps: &'static [usize],
    our_steps: &'static [usize],
}

const WHOLE: Scale = Scale {
    fire_shards: &[1, 4, 16],
    fire_seconds: 5,
    crowds: &[100, 1_000],
    large_crowds: &[10_000],
    loads: &[
        Load { jobs: 100, cron: "0/10 * * * * ?", every: 10, fires: 3 },
        Load { jobs: 1_000, cron: "0/10 * * * * ?", every: 10, fires: 3 },
        Load { jobs: 10_000, cron: "0/30 * * * * ?", every: 30, fires: 2 },
    ],
    kills: 5,
    dealings: &[(Side::Java, 10), (Side::Ours, 10), (Side::Ours, 50)],
    starts: 5,
    java_steps: &[10, 20, 40, 60, 80, 120, 160, 240, 320],
    our_steps: &[250, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000],
};

const BRIEF: Scale = Scale {
    fire_shards: &[4],
    fire_seconds: 3,
    crowds: &[20],
    large_crowds: &[],
    loads: &[Load { jobs: 20, cron: "0/5 * * * * ?", every: 5, fires: 1 }],
    kills: 1,
    dealings: &[(Side::Java, 3), (Side::Ours, 3)],
    starts: 1,
    java_steps: &[10, 20],
    our_steps: &[50, 100],
};

/// Runs it; `true` when every bar was met.
pub(crate) async fn run(options: Options) -> Result<bool, BoxError> {
    let scale = if options.brief { BRIEF } else { WHOLE };
    let stopwatch = Stopwatch::start();
    let server = ZooKeeper::builder().full_speed().start();
    let address = server.address();
    let mut page = Page::default();
    page.block(&heading());
    let parts = if options.only.is_empty() { Part::value_variants() } else { &options.only };
    for part in parts {
        match part {
            Part::Fire => fire::measure(address, &scale, &mut page).await?,
            Part::Crowd => crowd::measure(&server, &scale, &mut page).await?,
            Part::Punctual => punctual::measure(address, &scale, &mut page).await?,
            Part::Death => death::measure(address, &scale, &mut page).await?,
            Part::Dealing => dealing::measure(address, &scale, &mut page).await?,
            Part::First => first::measure(address, &scale, &mut page).await?,
            Part::Limit => limit::measure(&server, &scale, &mut page).await?,
        }
    }
    page.block(&format!("The run took {:.0} minutes.", stopwatch.elapsed().as_secs_f64() / 60.0));
    let (text, is_met) = page.end();
    if let Some(file) = options.page.filter(|_| !options.brief && options.only.is_empty()) {
        fs::write(&file, text.trim_start())?;
        say(&format!("\nwritten to {}", file.display()));
    }
    Ok(is_met)
}

fn heading() -> String {
    format!(
        "# Beside the real ElasticJob\n\n`make bench-java` has written this page, on {}. It needs Maven, a JDK and twenty-five minutes on a machine that has nothing else to do; `make bench-java BRIEF=1` \
         shows in two whether it works.\n\nElasticJob 3.0.4 (the newest that Maven gives out here) and ours, in turn, each in processes of its own, on one ZooKeeper on the same machine. \
         Both run jobs that do nothing but note when they began. The JVMs are started as they come, ours is the release build. Absolute times are this machine's; what to compare are the rows.",
        machine::line()
    )
}
