//! What console and command line may ask and do. Typed, without HTTP; on any registry, with Java and Rust instances in any mix.
//!
//! * **Asking.** [`Admin::jobs`], [`job`](Admin::job), [`shards`](Admin::shards), [`servers`](Admin::servers),
//!   [`server`](Admin::server), [`dump`](Admin::dump). Statuses are the ancestor's. What cannot be read is shown with the reason and never hides the
//!   rest. Answers are pictures: read node by node, after a sync, and not in one instant.
//! * **Doing.** [`plan`](Admin::plan) and [`apply`](Admin::apply) a configuration; [`trigger`](Admin::trigger), [`cancel`](Admin::cancel);
//!   enable, disable and shut down jobs, servers and shards; [`remove`](Admin::remove). Every write says what was seen and is refused when it is
//!   no longer so; every write into a job is conditional on its configuration, so that a removed job is not brought back in
//!   pieces. Events have the ancestor's types: Java reacts to them.
//! * **Understanding.** [`explain`](Admin::explain): why did this shard run, or not run, at that time?
//!
//! An [`AdminError`] says what a caller does differently, and knows the exit code of the command line.
//!
//! Answers are [`Serialize`](serde::Serialize): the ancestor's names in camelCase, instants in RFC 3339.

mod apply;
mod assignment;
pub mod doctor;
mod door;
mod dump;
mod error;
mod explain;
#[cfg(test)]
mod golden;
mod jobs;
mod ledger_changes;
pub mod mirror;
mod model;
mod picture;
mod remove;
mod servers;
mod switch;
mod trigger;
mod walk;

pub use self::{
    apply::{Applied, Change, Edit, Plan},
    assignment::{STRATEGIES, assign},
    door::Admin,
    error::AdminError,
    explain::{Explanation, Finding, Topic, Weight},
    ledger_changes::LedgerChanges,
    model::{
        Configuration, Instance, JobDetails, JobStatus, JobSummary, Language, LastRun, Outline,
        RunState, Running, RunsWith, Server, ServerDetails, ServerJob, ServerStatus, ServerSummary,
        Shard, ShardStatus,
    },
    remove::Removed,
    switch::{Stored, Switched},
    trigger::{Asked, Cancelled},
};
pub use crate::{coordination::trigger::Ask, registry::Version};
