//! [`AdminError`]: why a query or change failed, by what a caller does about it.

use crate::{
    job::{Conflict, Invalid, Unreadable},
    registry::Error,
};

/// Why a query or change failed. Every message ends with a hint for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The request is invalid: correct it.
    #[error("{problem}; hint: {hint}")]
    Invalid { problem: String, hint: String },
    /// The registry does not answer: try again.
    #[error("{problem}; hint: {hint}")]
    Unreachable {
        problem: String,
        hint: String,
        #[source]
        source: Error,
    },
    /// The registry denies access: use other credentials.
    #[error("not authorised for {path}; hint: {hint}")]
    NotAuthorised { path: String, hint: String },
    /// The job, server, instance or node does not exist.
    #[error("{what}; hint: {hint}")]
    NotFound { what: String, hint: String },
    /// The job belongs to another handler, or another client changed it first: read again, decide again.
    #[error("{problem}; hint: {hint}")]
    Conflict { problem: String, hint: String },
    /// In the current state the change would do harm, or have no effect.
    #[error("{problem}; hint: {hint}")]
    Refused { problem: String, hint: String },
    /// Any other error: a bug here, or a registry that misbehaves.
    #[error("the registry request failed; hint: {hint}")]
    Internal {
        hint: String,
        #[source]
        source: Error,
    },
}

impl AdminError {
    /// Exit code of the command line: 1 internal, 2 bad input, 3 unreachable, 4 not authorised, 5 not found, 6 conflict, 7 refused.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Internal { .. } => 1,
            Self::Invalid { .. } => 2,
            Self::Unreachable { .. } => 3,
            Self::NotAuthorised { .. } => 4,
            Self::NotFound { .. } => 5,
            Self::Conflict { .. } => 6,
            Self::Refused { .. } => 7,
        }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> &str {
        match self {
            Self::Invalid { hint, .. }
            | Self::Unreachable { hint, .. }
            | Self::NotAuthorised { hint, .. }
            | Self::NotFound { hint, .. }
            | Self::Conflict { hint, .. }
            | Self::Refused { hint, .. }
            | Self::Internal { hint, .. } => hint,
        }
    }

    pub(super) fn invalid(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Invalid { problem: problem.into(), hint: hint.into() }
    }

    pub(super) fn conflict(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Conflict { problem: problem.into(), hint: hint.into() }
    }

    pub(super) fn refused(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { problem: problem.into(), hint: hint.into() }
    }

    /// The stored configuration cannot be read. It is never overwritten, whatever the change was.
    pub(super) fn unreadable(error: &Unreadable) -> Self {
        Self::refused(error.to_string(), "correct the stored document, or remove the job")
    }
}

impl From<Error> for AdminError {
    fn from(error: Error) -> Self {
        match error {
            Error::Member { cause, .. } => Self::from(*cause),
            Error::Unreachable { ref endpoint, .. } => Self::Unreachable {
                problem: format!("cannot reach the registry at {endpoint}"),
                hint: "is ZooKeeper listening there?".to_owned(),
                source: error,
            },
            Error::Unknown { .. } => Self::Unreachable {
                problem: error.to_string(),
                hint: "check whether the change was made before you repeat it".to_owned(),
                source: error,
            },
            Error::SessionExpired | Error::Closed => Self::Unreachable {
                problem: error.to_string(),
                hint: "connect again".to_owned(),
                source: error,
            },
            Error::NotAuthorised { path } => Self::NotAuthorised {
                path: path.to_string(),
                hint: "check user and password in the registry URL, and the node's access list"
                    .to_owned(),
            },
            Error::Absent { path } => Self::NotFound {
                what: format!("{path} is gone"),
                hint: "it was removed in the meantime; read again".to_owned(),
            },
            Error::Exists { path } | Error::Conflict { path, .. } | Error::NotEmpty { path } => {
                Self::conflict(
                    format!("{path} changed in the meantime"),
                    "read it again, then decide again",
                )
            }
            source => Self::Internal { hint: "see the cause".to_owned(), source },
        }
    }
}

impl From<Invalid> for AdminError {
    fn from(error: Invalid) -> Self {
        // A problem that carries its own hint keeps it.
        let (problem, hint) = match error.problem.split_once("; hint: ") {
            Some((problem, hint)) => (problem.to_owned(), hint.to_owned()),
            None => (error.problem, "correct it".to_owned()),
        };
        Self::Invalid { problem: format!("{} {:?}: {problem}", error.what, error.text), hint }
    }
}

impl From<Conflict> for AdminError {
    fn from(error: Conflict) -> Self {
        let Conflict { job, ours, theirs, hint } = error;
        Self::Conflict { problem: format!("job {job} belongs to {theirs}, not to {ours}"), hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_exit_code_and_exactly_one_hint() {
        let path: crate::registry::Path = "/shop/settle".parse().unwrap();
        let unknown = || Error::Unknown { endpoint: "zk:2181".to_owned() };
        let errors: [(AdminError, u8); 8] = [
            (Error::Closed.into(), 3),
            (unknown().into(), 3),
            (Error::NotAuthorised { path: path.clone() }.into(), 4),
            (Error::Absent { path: path.clone() }.into(), 5),
            (
                Error::Member { index: 1, cause: Box::new(Error::Exists { path: path.clone() }) }
                    .into(),
                6,
            ),
            (Error::Invalid { path, reason: "x".to_owned() }.into(), 1),
            ("a/b".parse::<crate::job::JobName>().unwrap_err().into(), 2),
            (AdminError::refused("no", "yes"), 7),
        ];
        for (error, code) in errors {
            assert_eq!(error.exit_code(), code, "{error}");
            assert_eq!(error.to_string().matches("; hint: ").count(), 1, "{error}");
            assert!(error.to_string().ends_with(error.hint()), "{error}");
        }
    }
}
