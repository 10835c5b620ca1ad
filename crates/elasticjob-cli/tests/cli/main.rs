//! The binary as people and scripts use it: what it prints where, and how it ends.

mod asked;
mod cron;
mod defined;
mod deploy;
mod dev;
mod doctor;
mod dump;
mod files;
mod golden;
mod history;
mod look;
mod metrics;
mod mistakes;
mod observe;
mod pages;
mod process;
mod recorded;
mod run;
mod scene;
mod shard;
mod steer;
mod store;
mod trigger;
mod watched;
