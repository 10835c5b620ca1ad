//! Errors of a node.

use std::{borrow::Cow, fmt};

use super::declaration::SourceLocation;
use crate::{
    coordination::member::JoinError,
    job::{InvalidValue, JobName},
    problem::{Hint, Problem},
    registry,
};

/// Why a node did not start, or could not add a job. `Debug` prints the text with its causes and the hint, because a `main` that returns the error
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
    #[error("job {job} is registered twice on this node{}", in_parentheses(.locations))]
    DuplicateJob {
        job: String,
        /// Where the job is declared, for jobs with the attribute.
        locations: Vec<SourceLocation>,
    },
    /// The node has been told to leave this job and has not left it yet.
    #[error("this node is still leaving job {job}")]
    StillLeaving { job: String },
    /// A job that the program builds is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// A value in `#[elasticjob::job(...)]` is invalid.
    #[error("{location}: {invalid}")]
    Declaration { location: SourceLocation, invalid: Box<InvalidValue> },
    /// This machine has no address under which other instances can know it.
    #[error("cannot determine this machine's IPv4 address: {reason}")]
    Address { reason: String },
    /// The process cannot listen for signals.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
}

impl NodeError {
    /// Whether the registry did not answer, so that another try may succeed.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Registry(error) | Self::Join(JoinError::Registry { source: error, .. }) => {
                error.is_outage()
            }
            _ => false,
        }
    }

    pub(super) fn duplicate_job(
        job: &JobName,
        places: impl IntoIterator<Item = SourceLocation>,
    ) -> Self {
        Self::DuplicateJob { job: job.to_string(), locations: places.into_iter().collect() }
    }
}

impl fmt::Debug for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Problem::of(self), f)
    }
}

impl Hint for NodeError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Url(error) => return error.hint(),
            Self::Registry(error) => return error.hint(),
            Self::Join(error) => return error.hint(),
            Self::DuplicateJob { .. } => {
                "a node runs each job once, with as many shards as it needs"
            }
            Self::StillLeaving { .. } => {
                "a handler or listener of an earlier run has not ended, or the registry is unreachable"
            }
            Self::Invalid(invalid) => return invalid.hint(),
            Self::Declaration { invalid, .. } => return invalid.hint(),
            Self::Address { .. } => "set ELASTICJOB_ADDRESS, or Node::address",
            Self::Signals(_) => return None,
        };
        Some(Cow::Borrowed(hint))
    }
}

impl Hint for JoinError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Conflict(conflict) => conflict.hint(),
            Self::Unreadable(unreadable) => unreadable.hint(),
            Self::Invalid(invalid) => invalid.hint(),
            Self::Registry { source, .. } => source.hint(),
            Self::Contended { .. } => {
                Some(Cow::Borrowed("do instances of two versions overwrite each other?"))
            }
            Self::Gone { .. } => None,
        }
    }
}

/// ` (src/a.rs:3, fn settle; src/b.rs:7, fn settle)`, or an empty text.
fn in_parentheses(places: &[SourceLocation]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let places: Vec<String> = places.iter().map(SourceLocation::to_string).collect();
    format!(" ({})", places.join("; "))
}
