//! ElasticJob in Rust: a distributed job scheduler without a centre.
//!
//! Start with [`node`]: it runs jobs. The rooms, from the front door inwards:
//!
//! * [`coordination`] — what the cluster agrees on: who leads, who owns which shard, who runs it.
//! * [`execution`] — how a shard runs: handlers of every kind, retries, cancellation, listeners, alerts.
//! * [`job`] — what is to be done: a job, its policies, its shards, and the YAML it is stored as.
//! * [`node`] — one process: its jobs, its timer, its way in and out.
//! * [`registry`] — the shared tree that instances meet in: in memory, or on ZooKeeper's protocol.
//! * [`runtime`] — the seams that tests turn by hand.
//! * [`schedule`] — when a job is due: Quartz cron, time zones, and the arithmetic of being late.
//! * `testing` (feature) — a cluster in process for tests of jobs, a hand-turned clock, and one named test for each promise of a registry.

pub mod coordination;
pub mod execution;
pub mod job;
pub mod node;
pub mod registry;
pub mod runtime;
pub mod schedule;
#[cfg(feature = "testing")]
pub mod testing;

pub use self::{
    job::{Job, Shard},
    node::{Node, NodeError, NodeJob},
};

/// What a program that runs jobs returns from `main`: whatever went wrong, told in one line.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// What the README shows must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
