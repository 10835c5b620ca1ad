//! Compares Rust with the real Java ElasticJob: the same jobs on the same ZooKeeper, in one run; the sides take turns at being first.
//!
//! Both sides are processes that execute the same commands (the Java driver and its Rust counterpart in `dev/interop`), with jobs that only record
//! when they started. A proxy ([`counting_proxy`]) or ZooKeeper itself counts their requests; the kernel reports their use of memory and threads.
//! Counts are asserted, times are only reported.

mod counting_proxy;
mod failover;
mod fire;
mod many_jobs;
mod page;
mod punctuality;
mod resharding;
mod startup;
mod throughput;
mod worker;

use std::path::PathBuf;

use clap::ValueEnum;
use testbed::ZooKeeper;

use self::{page::Page, punctuality::Load, worker::Side};
use crate::{
    BoxError, machine, print_line,
    report::{former_section, replace_section},
    stopwatch::Stopwatch,
};

/// The section of the page.
const SECTION: &str = "java";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A short run to check that everything works; writes no page
    #[arg(long)]
    brief: bool,
    /// Run only these parts; writes no page
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// The page whose section is written
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// A part that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Fire,
    ManyJobs,
    Punctuality,
    Failover,
    Resharding,
    Startup,
    Throughput,
}

/// The size of each part.
struct Scale {
    fire_shards: &'static [u32],
    fire_seconds: i64,
    job_counts: &'static [usize],
    /// Rust only.
    large_job_counts: &'static [usize],
    loads: &'static [Load],
    kills: usize,
    reshardings: &'static [(Side, usize)],
    starts: usize,
    java_steps: &'static [usize],
    rust_steps: &'static [usize],
}

const FULL: Scale = Scale {
    fire_shards: &[1, 4, 16],
    fire_seconds: 5,
    job_counts: &[100, 1_000],
    large_job_counts: &[10_000],
    loads: &[
        Load { jobs: 100, cron: "0/10 * * * * ?", every: 10, fires: 3 },
        Load { jobs: 1_000, cron: "0/10 * * * * ?", every: 10, fires: 3 },
        Load { jobs: 10_000, cron: "0/30 * * * * ?", every: 30, fires: 2 },
    ],
    kills: 5,
    reshardings: &[(Side::Java, 10), (Side::Rust, 10), (Side::Rust, 50)],
    starts: 5,
    java_steps: &[10, 20, 40, 60, 80, 120, 160, 240, 320],
    rust_steps: &[250, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000],
};

const BRIEF: Scale = Scale {
    fire_shards: &[4],
    fire_seconds: 3,
    job_counts: &[20],
    large_job_counts: &[],
    loads: &[Load { jobs: 20, cron: "0/5 * * * * ?", every: 5, fires: 1 }],
    kills: 1,
    reshardings: &[(Side::Java, 3), (Side::Rust, 3)],
    starts: 1,
    java_steps: &[10, 20],
    rust_steps: &[50, 100],
};

/// Runs the benchmark. Returns whether all required targets were met.
pub(crate) async fn run(options: Options) -> Result<bool, BoxError> {
    let scale = if options.brief { BRIEF } else { FULL };
    let stopwatch = Stopwatch::start();
    let server = ZooKeeper::builder().full_speed().start();
    let address = server.address();
    let mut page = Page::replacing(&former_section(options.page.as_deref(), SECTION)?);
    page.block(&heading());
    let parts = if options.only.is_empty() { Part::value_variants() } else { &options.only };
    for part in parts {
        match part {
            Part::Fire => fire::measure(address, &scale, &mut page).await?,
            Part::ManyJobs => many_jobs::measure(&server, &scale, &mut page).await?,
            Part::Punctuality => punctuality::measure(address, &scale, &mut page).await?,
            Part::Failover => failover::measure(address, &scale, &mut page).await?,
            Part::Resharding => resharding::measure(address, &scale, &mut page).await?,
            Part::Startup => startup::measure(address, &scale, &mut page).await?,
            Part::Throughput => throughput::measure(&server, &scale, &mut page).await?,
        }
    }
    page.block(&format!("The run took {:.0} minutes.", stopwatch.elapsed().as_secs_f64() / 60.0));
    let (text, is_passed) = page.end();
    if let Some(file) = options.page.filter(|_| !options.brief && options.only.is_empty()) {
        replace_section(&file, SECTION, &text)?;
        print_line(&format!("\nwrote the section {SECTION} of {}", file.display()));
    }
    Ok(is_passed)
}

fn heading() -> String {
    format!(
        "## Comparison with Java ElasticJob\n\n`make bench-java` wrote this section on {}. It needs Maven, a JDK and twenty-five minutes on an otherwise idle machine; \
         `make bench-java BRIEF=1` checks in two minutes that it works.\n\nJava ElasticJob 3.0.4 (the newest version available from Maven here) and this implementation (Rust) \
         run in turn, each in its own processes, on one ZooKeeper on the same machine. Both run jobs that only record when they started. The JVMs run with default \
         settings, Rust is the release build. Absolute times depend on the machine; compare the rows.",
        machine::line()
    )
}
