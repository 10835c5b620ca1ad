//! The outcome of a shard.

use std::{fmt, time::Duration};

use crate::runtime::CancelReason;

/// How a shard ended, after all its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    Done,
    /// Every attempt failed.
    Failed {
        /// The message of the last attempt.
        message: String,
        attempts: u32,
    },
    /// Every attempt exceeded the timeout.
    TimedOut {
        /// The timeout of one attempt.
        limit: Duration,
        attempts: u32,
    },
    /// It was cancelled. Whatever it returned then does not count: it may have done all of its work, or none.
    Cancelled {
        reason: CancelReason,
    },
    /// It ended after its lease was lost. Another instance may have started the shard meanwhile, so the result does not count.
    Fenced,
}

impl Outcome {
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Whether it failed in a way that another attempt may fix.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::TimedOut { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Failed { message, .. } => f.write_str(message),
            Self::TimedOut { limit, .. } => write!(f, "took longer than {limit:?}"),
            Self::Cancelled { reason } => write!(f, "cancelled: {reason}"),
            Self::Fenced => {
                f.write_str("ended after its lease was lost; another instance may have run it")
            }
        }
    }
}
