//! The proof with real processes that nothing is lost and nothing runs twice.
//!
//! A [`Cluster`] is workers ([`worker`]), each a process with lines of its own to the servers; they write to a real database under their
//! fencing tokens and say what they do. Whatever is done to them, what they said and what the database took is [audited](audit()) in
//! the end:
//!
//! * **Nothing lost**: every fire of every shard ran, or a later one made up for it, and it is known how that ended.
//! * **Nothing twice**: no shard is run by two at once; a run is run again only after whoever ran it is gone.
//! * **Nothing stale**: the database took no write of a claim after it took one of a newer claim.
//! * **Peace**: once nothing goes wrong any more, the tree is as if nothing had.
//!
//! [`Storm`] does everything that can go wrong, at random from a seed; `tests/` do one thing each.

mod audit;
mod cluster;
mod database;
mod heard;
mod peace;
mod process;
mod said;
mod storm;
mod task;
pub mod worker;

pub use self::{
    audit::{Execution, Findings, audit, executions},
    cluster::{Cluster, Plan},
    database::{Database, Line, TABLE, WRITE},
    heard::Heard,
    peace::{children, settles, text},
    process::Process,
    said::{Key, Reason, Said, What},
    storm::{Aftermath, Storm, tasks},
    task::Task,
};
