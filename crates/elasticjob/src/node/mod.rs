//! One process that runs jobs: from a schedule to a run.
//!
//! Each job has a loop ([`job_loop`]). The loop is a member of the job while the registry session lives; when the session is lost, it joins
//! again as a new instance. The [`timer`] notifies the loop when its job is due. The loop starts one fire at a time: it claims shards, runs them
//! and releases them ([`run`]). While a run is going, the loop remembers that a fire came due and compensates it once, right after; it keeps
//! every trigger. Failover runs start immediately, even while own shards run.
//!
//! Stopping drains: the node starts nothing new, running shards may finish within a time limit, and only then the instance leaves the job, so
//! that no other instance takes over a shard that still runs.

mod address;
mod builder;
mod catch_up;
mod clock_check;
mod clocked_registry;
mod declaration;
mod error;
mod history_tap;
mod identity;
mod job;
mod job_loop;
mod job_state;
mod lease_keeper;
mod metered_registry;
mod once_barrier;
mod pending_work;
mod permission_check;
mod reported_fires;
mod run;
mod run_lease;
mod running_node;
mod schedule_clock;
mod session;
mod session_pool;
mod supervision;
mod timer;

#[cfg(feature = "macros")]
#[doc(hidden)]
pub use self::declaration::JobDeclaration;
pub use self::{
    builder::Node, declaration::SourceLocation, error::NodeError, job::NodeJob,
    running_node::RunningNode,
};
pub use crate::coordination::member::JoinError;
