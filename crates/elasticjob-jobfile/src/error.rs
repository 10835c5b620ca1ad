//! The error of reading job files.

use std::fmt;

use elasticjob::problem::Problem;

/// Every problem in a set of files, each with file, line and hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct JobFileError {
    /// Never empty.
    pub problems: Vec<Problem>,
}

impl JobFileError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { problems: vec![Problem::new(text)] }
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}
