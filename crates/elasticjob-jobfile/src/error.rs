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
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self { problems: vec![Problem::new(text)] }
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Problem { message, hint }) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(message)?;
            if let Some(hint) = hint {
                write!(f, "; hint: {hint}")?;
            }
        }
        Ok(())
    }
}
