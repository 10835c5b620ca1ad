//! The binary as a black box: output, exit codes and logs.

mod program;
mod cron;
mod registry_jobs;
mod deploy;
mod dev;
mod doctor;
mod dump;
mod files;
mod golden;
mod history;
mod show;
mod metrics;
mod errors;
mod observe;
mod docs;
mod process;
mod run_history;
mod run;
mod scene;
mod shard;
mod lifecycle;
mod apply;
mod trigger;
mod watched_files;
