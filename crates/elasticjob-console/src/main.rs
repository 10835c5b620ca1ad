//! `elasticjob`: everything a person does with jobs from a terminal.
//!
//! * [`api`] — `elasticjob console`: the HTTP API, and the pages on top of it.
//! * [`cli`] — the words of the command line, one file for each noun.
//! * [`dev`] — `elasticjob dev`: a registry and, for a demonstration, workers in one place, with a running commentary.
//! * [`jobfile`] — jobs as people write them down: Spring Boot's YAML and properties, JSON, TOML, Spring's XML.
//! * [`worker`] — `elasticjob run`: a node made from files, its rights, its health.
//! * [`observe`] — `elasticjob run --observe`: what others do, without taking part.
//! * [`doctor`] — what is wrong in a registry, and what to do about it.
//! * [`output`] — what is printed: data on standard output as a table, JSON or YAML; [`error`] — talk on standard error, and exit codes.

mod api;
mod cli;
mod dev;
mod doctor;
mod error;
mod jobfile;
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
