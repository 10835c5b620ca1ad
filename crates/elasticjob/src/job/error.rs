//! Errors of this module, one type for each way a caller reacts.

use std::borrow::Cow;

use super::{bounds::shorten, name::JobName};
use crate::problem::Hint;

/// Bytes of a text that a message quotes, and of what it says about it.
const QUOTED: usize = 200;
const PROBLEM: usize = 500;

/// Invalid text in a program, a file or a command. Its author has to correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?}: {problem}")]
pub struct InvalidValue {
    /// What the text should be: `cron`, `job name`.
    pub what: Cow<'static, str>,
    /// The text, or its beginning if it is long.
    pub text: String,
    /// What is wrong with the text, and what would be valid.
    pub problem: String,
    pub hint: Option<Box<str>>,
}

impl InvalidValue {
    pub(super) fn new(
        what: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        let (text, problem) = (shorten(text, QUOTED), shorten(problem, PROBLEM));
        Self { what: what.into(), text, problem, hint: None }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into().into()), ..self }
    }
}

impl Hint for InvalidValue {
    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }
}

/// A stored document that cannot be read. It may be valid to another program, so it is reported and never overwritten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job {job}: the stored {document} cannot be read{}: {problem}; it is left unchanged", location(*.line, .key.as_deref()))]
pub struct UnreadableDocument {
    pub job: JobName,
    /// `config`, or `instance` and its id.
    pub document: String,
    /// Line number, from one.
    pub line: Option<usize>,
    /// The key; nested keys are joined with dots: `props.elasticjob.timeout`.
    pub key: Option<String>,
    pub problem: String,
    pub hint: Option<Box<str>>,
}

impl UnreadableDocument {
    /// A document of this job. Problem and key may quote the document, so they are shortened.
    pub(super) fn new(
        job: &JobName,
        document: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self {
            job: job.clone(),
            document: document.into(),
            line: None,
            key: None,
            problem: shorten(problem, PROBLEM),
            hint: None,
        }
    }

    pub(super) fn at(self, line: Option<usize>, key: Option<&str>) -> Self {
        Self { line, key: key.map(|key| shorten(key, QUOTED)), ..self }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into().into()), ..self }
    }
}

impl Hint for UnreadableDocument {
    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }
}

/// The key is the document's own text, so it must not look like another line of a log.
fn location(line: Option<usize>, key: Option<&str>) -> String {
    let key = key.map(str::escape_debug);
    match (line, key) {
        (Some(line), Some(key)) => format!(", line {line}, key {key}"),
        (Some(line), None) => format!(", line {line}"),
        (None, Some(key)) => format!(", key {key}"),
        (None, None) => String::new(),
    }
}
