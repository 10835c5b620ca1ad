//! Startup errors of the console.

use elasticjob::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problem.message)]
pub struct ConsoleError {
    pub kind: ConsoleErrorKind,
    /// Message and hint.
    pub problem: Problem,
}

/// Tells the caller how to react.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleErrorKind {
    /// A setting is invalid: correct it.
    InvalidSetting,
    /// Starting would be possible but unsafe.
    Refused,
    /// A bug, or a resource of this machine is exhausted.
    Internal,
}

impl ConsoleError {
    pub(crate) fn new(kind: ConsoleErrorKind, text: impl AsRef<str>) -> Self {
        Self { kind, problem: Problem::new(text) }
    }

    pub(crate) fn setting(text: impl AsRef<str>) -> Self {
        Self::new(ConsoleErrorKind::InvalidSetting, text)
    }
}
