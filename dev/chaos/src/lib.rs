//! Checks with real processes that no fire is lost and no shard runs twice.
//!
//! A [`Cluster`] consists of workers ([`worker`]). Each worker is a process with its own proxied connections to the servers. Workers write to a
//! real database under their fencing tokens and print an [`Event`] for everything they do. After faults have been injected, [`audit()`] checks
//! the events and the database:
//!
//! * **No fire is lost**: every fire of every shard ran, or a later run compensated it, and the outcome of that run is known.
//! * **No shard runs twice**: no two instances run a shard at once; a shard of a run runs again only after the instance that ran it is gone.
//! * **No stale write**: the database accepted no write of a claim after it accepted one of a newer claim.
//! * **Quiescence**: once the faults are over, the tree holds no trace of them ([`wait_until_quiescent`]).
//!
//! [`Storm`] injects all kinds of faults, at random from a seed; the tests in `tests/` inject one each.

mod audit;
mod cluster;
mod database;
mod event;
mod event_log;
mod process;
mod quiescence;
mod step_job;
mod storm;
pub mod worker;

pub use self::{
    audit::{Execution, Findings, audit, executions},
    cluster::{Cluster, ClusterConfig},
    database::{Database, TABLE, WRITE, WriteAttempt},
    event::{Event, EventKind, ExecutionKey, StartReason},
    event_log::EventLog,
    process::Process,
    quiescence::{children, text, wait_until_quiescent},
    step_job::StepJob,
    storm::{Storm, StormReport, storm_jobs},
};
