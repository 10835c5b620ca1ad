//! Trace and span ids, derived from what they identify: every instance derives the same ids without agreeing on them.

use super::stable_hash::stable_hash;
use crate::job::RunId;
#[cfg(feature = "otel")]
use crate::job::TaskId;

/// The trace id of a run: 32 hexadecimal digits, never all zero.
pub(crate) fn trace_id(run: &RunId) -> String {
    format!("{:032x}", stable_hash(&run.to_string()).max(1))
}

/// The span id of an instance's part of a run: 16 hexadecimal digits, never all zero.
#[cfg(feature = "otel")]
pub(super) fn execution_span_id(run: &RunId, task: &TaskId) -> String {
    span_id(&format!("{run}#{task}"))
}

/// The span id for any other text.
#[cfg(feature = "otel")]
pub(super) fn span_id(name: &str) -> String {
    format!("{:016x}", (stable_hash(name) as u64).max(1))
}
