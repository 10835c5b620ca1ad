//! How a shard ended.

use std::{fmt, time::Duration};

use crate::runtime::CancelReason;

/// How a shard ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It did what it had to do.
    Done,
    /// It failed, as often as it was tried.
    Failed {
        /// What the last attempt said.
        message: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// It took longer than it may, as often as it was tried.
    TimedOut {
        /// How long it may take.
        limit: Duration,
        /// How often it was tried.
        attempts: u32,
    },
    /// It was told to end before it was done. Whatever it returned then does not count: it may have done all of its work, or none.
    Cancelled {
        /// Why.
        reason: CancelReason,
    },
    /// It ended after its lease. Somebody else may have started it meanwhile, so this counts as nothing.
    Fenced,
}

impl Outcome {
    /// Whether it did what it had to do.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Whether it went wrong in a way that trying again may mend.
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
                f.write_str("ended after its lease was lost; somebody else may have run it")
            }
        }
    }
}
