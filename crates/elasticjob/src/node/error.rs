//! Why a node did not start.

use crate::{coordination::member::JoinError, registry};

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The URL is wrong.
    #[error(transparent)]
    Url(#[from] registry::UrlError),
    /// The registry cannot be reached, or does not let us in.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// A job cannot be joined.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Two jobs of this node have the same name.
    #[error(
        "job {job} is registered twice on this node; hint: a node runs each job once, with as many shards as it needs"
    )]
    Twice {
        /// The job.
        job: String,
    },
    /// There is no address that other instances could know us by.
    #[error(
        "cannot tell this machine's IPv4 address: {reason}; hint: set ELASTICJOB_ADDRESS, or Node::address"
    )]
    Address {
        /// Why not.
        reason: String,
    },
    /// The process cannot hear signals.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
}
