//! The trace that a run is: everybody who knows the run knows its name, without anybody having to agree.

use super::name::hash;
use crate::job::RunId;
#[cfg(feature = "otel")]
use crate::job::TaskId;

/// The trace of a run: 32 hexadecimal digits, never all zero.
pub(crate) fn trace(run: &RunId) -> String {
    format!("{:032x}", hash(&run.to_string()).max(1))
}

/// The span of what one instance runs of a run: 16 hexadecimal digits, never all zero.
#[cfg(feature = "otel")]
pub(super) fn part(run: &RunId, task: &TaskId) -> String {
    span(&format!("{run}#{task}"))
}

/// A span by what it is about.
#[cfg(feature = "otel")]
pub(super) fn span(name: &str) -> String {
    format!("{:016x}", (hash(name) as u64).max(1))
}
