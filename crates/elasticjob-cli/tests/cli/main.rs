//! The binary as a black box: output, exit codes and logs.

mod apply;
mod cron;
mod deploy;
mod dev;
mod docs;
mod doctor;
mod dump;
mod errors;
mod files;
mod golden;
mod history;
mod hostile_config;
mod lifecycle;
mod metrics;
mod observe;
mod process;
mod program;
mod registry_jobs;
mod run;
mod run_history;
mod scene;
mod secrets;
mod shard;
mod show;
mod trigger;
mod watched_files;
