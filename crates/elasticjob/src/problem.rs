//! An error as a person reads it: one line with its causes, and the way out apart from it.

use std::{borrow::Cow, error::Error, fmt, iter};

use crate::schedule::{CronError, DstError, ZoneError};

/// An error that may know a way out. The hint is not part of the error's text, so that a program can show it apart.
pub trait Hint: Error {
    /// What to do about the error; a wrapping error passes on the hint of its cause.
    fn hint(&self) -> Option<Cow<'_, str>>;
}

/// One thing that is wrong, and what to do about it.
///
/// ```
/// use elasticjob::{problem::Problem, schedule::Cron};
///
/// let error = "0 0 24 * * ?".parse::<Cron>().unwrap_err();
/// let problem = Problem::of(&error);
///
/// assert_eq!(problem.message, r#"cron "0 0 24 * * ?": hours "24" is out of range"#);
/// assert_eq!(problem.hint.as_deref(), Some("hours are 0 to 23"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, with its causes.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names where the problem is, in front of the message.
    #[must_use]
    pub fn at(mut self, location: impl fmt::Display) -> Self {
        self.message = format!("{location}: {}", self.message);
        self
    }

    /// From an error with its causes and its hint.
    pub fn of(error: &(impl Hint + 'static)) -> Self {
        Self { message: with_causes(error), hint: error.hint().map(Cow::into_owned) }
    }

    /// From an error of another library, which has no hint.
    pub fn of_foreign(error: &(dyn Error + 'static)) -> Self {
        Self::new(with_causes(error))
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl<E: Hint + 'static> From<&E> for Problem {
    fn from(error: &E) -> Self {
        Self::of(error)
    }
}

/// In one line, with the hint at its end.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Text from outside as a terminal may show it: control characters other than line breaks and tabs, and characters that break a line or turn its
/// direction unseen, are written as `\u{1b}`.
///
/// ```
/// use elasticjob::problem::printable;
///
/// assert_eq!(printable("作业 settle\n"), "作业 settle\n");
/// assert_eq!(printable("\u{1b}[2Jgone"), r"\u{1b}[2Jgone");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_escaped = |each: char| is_unprintable(each) && !matches!(each, '\n' | '\t');
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len() + 8);
    for each in text.chars() {
        if is_escaped(each) {
            printable.extend(each.escape_unicode());
        } else {
            printable.push(each);
        }
    }
    Cow::Owned(printable)
}

/// Whether a terminal obeys the character instead of showing it: control characters, separators of lines, marks of direction.
pub fn is_unprintable(each: char) -> bool {
    each.is_control()
        || matches!(
            each,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// An error and its causes, separated by `: `. A cause that the error already repeats at its end is left out.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut message = error.to_string();
    let causes = iter::successors(error.source(), |&cause| cause.source());
    for cause in causes.map(ToString::to_string) {
        if !message.ends_with(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}

impl Hint for CronError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.hint))
    }
}

impl Hint for ZoneError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.hint))
    }
}

impl Hint for DstError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.hint))
    }
}
