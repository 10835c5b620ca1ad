//! An error as a person reads it: one line with its causes, and the way out apart from it.

use std::{error::Error, iter};

/// One thing that is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, with its causes.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// From a text that may end in `; hint: …`, as this crate's errors do.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        match text.split_once("; hint: ").or_else(|| text.split_once("\nhint: ")) {
            Some((message, hint)) => {
                Self { message: message.to_owned(), hint: Some(hint.to_owned()) }
            }
            None => Self { message: text.to_owned(), hint: None },
        }
    }

    /// From an error with its causes; the first hint that one of them has is taken.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut problem = Self::new(error.to_string());
        let causes = iter::successors(error.source(), |&cause| cause.source());
        for cause in causes.map(|cause| Self::new(cause.to_string())) {
            if !problem.message.ends_with(&cause.message) {
                problem.message = format!("{}: {}", problem.message, cause.message);
            }
            problem.hint = problem.hint.or(cause.hint);
        }
        problem
    }
}
