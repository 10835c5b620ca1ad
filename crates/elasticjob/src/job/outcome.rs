//! How an attempt ended.

use std::fmt;

use serde::Serialize;

/// How an attempt at a shard ended. The message that explains it is kept beside it.
///
/// The words are stored in history and sent by the API; `done` is the word for success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    #[serde(rename = "done")]
    Succeeded,
    Failed,
    /// It exceeded its timeout.
    TimedOut,
    /// It was cancelled. Whatever it returned then does not count: it may have done all of its work, or none.
    Cancelled,
    /// It ended after its lease was lost. Another instance may have started the shard meanwhile, so the result does not count.
    Fenced,
    /// Its instance died; another instance reports it.
    Lost,
}

impl Outcome {
    pub const ALL: [Self; 6] =
        [Self::Succeeded, Self::Failed, Self::TimedOut, Self::Cancelled, Self::Fenced, Self::Lost];

    /// `done`, `failed`, `timed_out`, `cancelled`, `fenced` or `lost`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "done",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Fenced => "fenced",
            Self::Lost => "lost",
        }
    }

    /// The outcome with this name, as [`as_str`](Self::as_str) returns it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    pub const fn is_success(self) -> bool {
        matches!(self, Self::Succeeded)
    }

    /// Whether it failed in a way that another attempt may fix.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
