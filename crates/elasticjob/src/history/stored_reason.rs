//! The stored words for why a shard ran.
//!
//! A stored reason does not say whether the run was scheduled or triggered: both are `due`. That is stored separately, for the whole run.

use crate::job::RunReason;

/// `due`, `misfire`, `failover`, `retry` or `catch_up`.
pub(super) fn stored_reason(reason: RunReason) -> &'static str {
    match reason {
        RunReason::Schedule | RunReason::Trigger => "due",
        other => other.as_str(),
    }
}

/// The reason with this stored word; `None` if it is unknown.
pub(super) fn read_reason(stored: &str, is_triggered: bool) -> Option<RunReason> {
    match stored {
        "due" if is_triggered => Some(RunReason::Trigger),
        "due" => Some(RunReason::Schedule),
        other => RunReason::ALL.into_iter().find(|reason| stored_reason(*reason) == other),
    }
}
