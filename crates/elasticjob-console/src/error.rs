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
    pub(crate) fn new(kind: ConsoleErrorKind, problem: impl Into<Problem>) -> Self {
        Self { kind, problem: problem.into() }
    }

    pub(crate) fn setting(problem: impl Into<Problem>) -> Self {
        Self::new(ConsoleErrorKind::InvalidSetting, problem)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.problem.hint = Some(hint.into());
        self
    }
}
