//! Errors of a node.

use std::fmt;

use super::declaration::Place;
use crate::{
    coordination::member::JoinError,
    execution::with_causes,
    job::{Invalid, JobName},
    registry,
};

/// Why a node did not start, or could not add a job. `Debug` prints the `Display` text with its causes, because a `main` that returns the error
/// prints `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The registry URL is invalid.
    #[error(transparent)]
    Url(#[from] registry::UrlError),
    /// The registry is unreachable or refuses access.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// A job cannot be joined.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Two jobs of this node have the same name.
    #[error(
        "job {job} is registered twice on this node{}; hint: a node runs each job once, with as many shards as it needs", in_parentheses(.places)
    )]
    Twice {
        job: String,
        /// Where the job is declared, for jobs with the attribute.
        places: Vec<Place>,
    },
    /// A job that the program builds is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A value in `#[elasticjob::job(...)]` is invalid.
    #[error("{place}: {invalid}")]
    Declaration { place: Place, invalid: Invalid },
    /// This machine has no address under which other instances can know it.
    #[error(
        "cannot determine this machine's IPv4 address: {reason}; hint: set ELASTICJOB_ADDRESS, or Node::address"
    )]
    Address { reason: String },
    /// The process cannot listen for signals.
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

/// ` (src/a.rs:3, fn settle; src/b.rs:7, fn settle)`, or an empty text.
fn in_parentheses(places: &[Place]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let places: Vec<String> = places.iter().map(Place::to_string).collect();
    format!(" ({})", places.join("; "))
}
