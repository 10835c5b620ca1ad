//! One process: its jobs, its timer, its way in and out.
//!
//! Each job has a worker ([`worker`]) that is a member of the job while the registry session lives and joins again, as somebody new,
//! when it is over. The [`timer`] tells workers when they are due. A worker runs one fire at a time: it claims, runs, releases
//! ([`run`]). What is due meanwhile is remembered once and run right after; what is triggered meanwhile, too.
//!
//! Stopping drains: nothing new is started, what runs may finish within a bound, and only then the instance leaves the job, so that
//! no peer takes over what still runs.

mod address;
mod builder;
mod chronicle;
mod declared;
mod error;
mod fresh;
mod identity;
mod job;
mod life;
mod once;
mod permit;
mod run;
mod running;
mod supervision;
mod timer;
mod todo;
mod worker;

#[cfg(feature = "macros")]
#[doc(hidden)]
pub use self::declared::Declared;
pub use self::{builder::Node, declared::Place, error::NodeError, job::NodeJob, running::Running};
pub use crate::coordination::member::JoinError;
