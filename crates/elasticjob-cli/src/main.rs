//! `elasticjob`: everything a person does with jobs from a terminal.
//!
//! * [`cli`] — the words of the command line, one file for each noun.
//! * [`dev`] — `elasticjob dev`: a registry and, for a demonstration, workers in one place, with a running commentary.
//! * [`worker`] — `elasticjob run`: a node made from files, its rights, its health.
//! * [`observe`] — `elasticjob run --observe`: what others do, without taking part.
//! * [`output`] — what is printed: data on standard output as a table, JSON or YAML; [`error`] — talk on standard error, and exit codes.
//!
//! Job files are read by `elasticjob_jobfile`; the console is `elasticjob_console`; what is asked of a registry goes through `elasticjob::admin`.

mod cli;
mod dev;
mod error;
mod logs;
mod observe;
mod output;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: started again as the supervisor of a script, this process is nothing else.
    let supervisor = elasticjob::execution::supervise_if_asked();
    match cli::run(supervisor) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.tell(),
    }
}
