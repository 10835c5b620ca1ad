//! Why a console does not start.

use elasticjob::problem::Problem;

/// Why a console does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problem.message)]
pub struct ConsoleError {
    /// What a caller does about it.
    pub kind: ConsoleErrorKind,
    /// What is wrong, and a way out.
    pub problem: Problem,
}

/// What a caller does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleErrorKind {
    /// A setting is wrong: correct it.
    InvalidSetting,
    /// It could be done and is not, to be safe.
    Refused,
    /// A bug, or a machine that is out of something.
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
