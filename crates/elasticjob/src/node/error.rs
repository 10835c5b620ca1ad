//! Why a node did not start.

use std::fmt;

use super::declared::Place;
use crate::{
    coordination::member::JoinError,
    execution::with_causes,
    job::{Invalid, JobName},
    registry,
};

/// Why a node did not start. `Debug` says the same as `Display`, with the causes, because that is what a `main` that returns it prints.
#[derive(thiserror::Error)]
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
        "job {job} is registered twice on this node{}; hint: a node runs each job once, with as many shards as it needs", between(.places)
    )]
    Twice {
        /// The job.
        job: String,
        /// Where it is declared, as far as it is.
        places: Vec<Place>,
    },
    /// A job that the program builds is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// What stands in `#[elasticjob::job(...)]` is wrong.
    #[error("{place}: {invalid}")]
    Declaration {
        /// Where it stands.
        place: Place,
        /// What is wrong with it.
        invalid: Invalid,
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

impl NodeError {
    pub(super) fn twice(job: &JobName, places: impl IntoIterator<Item = Place>) -> Self {
        Self::Twice { job: job.to_string(), places: places.into_iter().collect() }
    }
}

impl fmt::Debug for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_causes(self))
    }
}

/// ` (src/a.rs:3, fn settle; src/b.rs:7, fn settle)`, or nothing.
fn between(places: &[Place]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let places: Vec<String> = places.iter().map(Place::to_string).collect();
    format!(" ({})", places.join("; "))
}
