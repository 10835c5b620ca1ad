//! `elasticjob`: the command-line program.
//!
//! * [`cli`] — commands and options, one file for each command.
//! * [`dev`] — `elasticjob dev`: a local registry with a commentary and, for a demo, workers.
//! * [`worker`] — `elasticjob run`: a node made from job files, its permissions, health and metrics.
//! * [`observe`] — `elasticjob run --observe`: logs what other instances do, without joining.
//! * [`output`] — data on standard output as tables, JSON or YAML; [`error`] — errors on standard error, and exit codes.
//! * [`stop_signals`] — SIGINT and SIGTERM; [`file_limit`] — how many files the process may open.
//!
//! Job files are read by `elasticjob_jobfile`, the console is `elasticjob_console`, and commands use the registry through `elasticjob::admin`.

mod cli;
mod dev;
mod error;
#[cfg(feature = "console")]
mod file_limit;
mod logs;
mod observe;
mod output;
mod stop_signals;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Must come first: the program starts itself again as the supervisor of a script.
    let supervisor = elasticjob::execution::supervise_if_requested();
    match cli::run(supervisor) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
