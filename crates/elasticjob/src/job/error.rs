//! What can go wrong with plain data, by what a caller does about it.

use std::borrow::Cow;

use super::name::JobName;

/// Text that is not what it was meant to be. Whoever wrote it corrects it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?}: {problem}")]
pub struct Invalid {
    /// What it was meant to be.
    pub what: Cow<'static, str>,
    /// The text.
    pub text: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl Invalid {
    pub(super) fn new(
        what: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), text: text.into(), problem: problem.into() }
    }
}

/// A stored document that cannot be read. It is somebody's: it is never overwritten, only reported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job {job}: the stored {document} cannot be read{}: {problem}; it is left as it is", place(*.line, .key.as_deref()))]
pub struct Unreadable {
    /// Whose document it is.
    pub job: JobName,
    /// Which document: `config`, or the instance's name.
    pub document: String,
    /// The line, from one.
    pub line: Option<usize>,
    /// The key, nested ones with dots: `props.elasticjob.timeout`.
    pub key: Option<String>,
    /// What is wrong, and the way out.
    pub problem: String,
}

fn place(line: Option<usize>, key: Option<&str>) -> String {
    match (line, key) {
        (Some(line), Some(key)) => format!(", line {line}, key {key}"),
        (Some(line), None) => format!(", line {line}"),
        (None, Some(key)) => format!(", key {key}"),
        (None, None) => String::new(),
    }
}
