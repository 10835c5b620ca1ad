//! The binary as people and scripts use it: what it prints where, and how it ends.

mod asked;
mod cron;
mod deploy;
mod dev;
mod files;
mod metrics;
mod pages;
mod process;
mod run;
mod shard;
