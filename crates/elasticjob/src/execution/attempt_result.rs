//! How attempts at a shard ended, with the message that explains it.

use std::{fmt, time::Duration};

use crate::{
    job::{Outcome, Shard},
    runtime::CancelReason,
};

use super::failure::Failure;

/// How the last of some attempts at a shard ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    pub outcome: Outcome,
    /// Why it did not succeed; `None` if it did.
    pub message: Option<String>,
    /// Number of attempts made.
    pub attempts: u32,
}

/// A shard and how it ended, after all its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardResult {
    /// The shard as it was passed in.
    pub shard: Shard,
    pub outcome: Outcome,
    /// Why it did not succeed; `None` if it did.
    pub message: Option<String>,
    pub attempts: u32,
}

impl AttemptResult {
    pub(crate) const fn succeeded() -> Self {
        Self { outcome: Outcome::Succeeded, message: None, attempts: 1 }
    }

    pub(crate) fn failed(failure: &Failure) -> Self {
        Self::with_message(Outcome::Failed, failure.to_string())
    }

    pub(crate) fn timed_out(limit: Duration) -> Self {
        Self::with_message(Outcome::TimedOut, format!("took longer than {limit:?}"))
    }

    pub(crate) fn cancelled(reason: CancelReason) -> Self {
        Self::with_message(Outcome::Cancelled, format!("cancelled: {reason}"))
    }

    pub(crate) fn fenced() -> Self {
        let message = "ended after its lease was lost; another instance may have run it";
        Self::with_message(Outcome::Fenced, message.to_owned())
    }

    fn with_message(outcome: Outcome, message: String) -> Self {
        Self { outcome, message: Some(message), attempts: 1 }
    }

    pub(crate) fn after(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }
}

impl ShardResult {
    pub fn new(shard: Shard, result: AttemptResult) -> Self {
        let AttemptResult { outcome, message, attempts } = result;
        Self { shard, outcome, message, attempts }
    }

    /// The message; the outcome if there is none.
    pub(crate) fn text(&self) -> &str {
        self.message.as_deref().unwrap_or(self.outcome.as_str())
    }
}

impl fmt::Display for AttemptResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or(self.outcome.as_str()))
    }
}
