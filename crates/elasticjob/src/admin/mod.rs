//! Queries and changes that the console and the command line offer. Typed, without HTTP; works on any registry, with any mix of Java and Rust
//! instances.
//!
//! * **Queries**: [`Admin::jobs`], [`job`](Admin::job), [`shards`](Admin::shards), [`servers`](Admin::servers), [`server`](Admin::server),
//!   [`triggers`](Admin::triggers), [`dump`](Admin::dump). Statuses are those of Java ElasticJob. An entry that cannot be read is listed with the reason and never hides the other
//!   entries. A query syncs first and then reads node by node, so its result is not one atomic snapshot.
//! * **Changes**: [`plan`](Admin::plan) and [`apply`](Admin::apply) a configuration; [`trigger`](Admin::trigger) and [`cancel`](Admin::cancel) runs,
//!   [`wait_for_trigger`](Admin::wait_for_trigger), [`withdraw_trigger`](Admin::withdraw_trigger);
//!   enable and disable jobs, servers and shards; shut down instances; [`remove`](Admin::remove) jobs. Every write checks the state it was decided
//!   from and is refused if that state has changed. Every write to a job also checks that its configuration exists, so that a removed job is not
//!   re-created in part. Writes cause the same registry events as those of Java ElasticJob, because Java instances react to them.
//! * **Diagnosis**: [`explain`](Admin::explain) tells why a shard ran, or did not run, at a given time; [`doctor`] checks a whole registry.
//! * **Lists that stay current**: [`mirror`] follows a registry, so that a list costs no request.
//!
//! The variant of an [`AdminError`] tells a caller what to do next, and determines the exit code of the command line.
//!
//! Results are [`Serialize`](serde::Serialize): the names of Java ElasticJob in camelCase, instants in RFC 3339.

mod apply;
mod assignment;
mod cancel;
pub mod doctor;
mod dump;
mod error;
mod explain;
#[cfg(test)]
mod golden;
mod handle;
mod jobs;
mod followed_ledgers;
mod ledger_changes;
pub mod mirror;
mod model;
mod remove;
mod servers;
mod snapshot;
mod subtree;
mod switch;
mod trigger;
mod trigger_watch;
mod triggers;

pub use self::{
    apply::{ApplyResult, ConfigChange, Edit, Plan},
    assignment::{STRATEGIES, assign},
    cancel::{CancellationResult, WithdrawalResult},
    error::AdminError,
    explain::{Explanation, Finding, Severity, Topic},
    handle::Admin,
    ledger_changes::LedgerChanges,
    model::{
        Configuration, HandlerInfo, Instance, JobDetails, JobStatus, JobSummary, Language, LastRun,
        Outline, Running, Server, ServerDetails, ServerJob, ServerStatus, ServerSummary, Shard,
        ShardStatus, ShardsPage,
    },
    remove::RemovalResult,
    switch::{ConfigUpdate, SwitchResult},
    trigger::TriggerResponse,
    trigger_watch::TriggerWatch,
    triggers::{
        TriggerCounts, TriggerDetails, TriggerShard, TriggerShardState, TriggerState,
        TriggerSummary, TriggersPage,
    },
};
pub use crate::{
    coordination::{
        ledger::LedgerState,
        trigger::{SkipReason, TriggerRequest},
    },
    registry::Version,
};
