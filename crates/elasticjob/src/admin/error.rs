//! [`AdminError`]: why a query or change failed, by what a caller does about it.

use std::borrow::Cow;

use crate::{
    job::{Conflict, InvalidValue, UnreadableDocument},
    problem::{Hint, with_causes},
    registry::Error,
};

/// Why a query or change failed. Every one has a [hint](Hint::hint) for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The request is invalid: correct it.
    #[error("{problem}")]
    Invalid { problem: String, hint: String },
    /// The registry does not answer: try again.
    #[error("{problem}")]
    Unreachable {
        problem: String,
        hint: String,
        #[source]
        source: Error,
    },
    /// The registry denies access: use other credentials.
    #[error("not authorised for {path}")]
    NotAuthorised { path: String, hint: String },
    /// The job, server, instance or node does not exist.
    #[error("{what}")]
    NotFound { what: String, hint: String },
    /// The job belongs to another handler, or another client changed it first: read again, decide again.
    #[error("{problem}")]
    Conflict { problem: String, hint: String },
    /// In the current state the change would do harm, or have no effect.
    #[error("{problem}")]
    Refused { problem: String, hint: String },
    /// Any other error: a bug here, or a registry that misbehaves.
    #[error("the registry request failed")]
    Internal {
        hint: String,
        #[source]
        source: Error,
    },
}

impl AdminError {
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
    pub(super) fn unreadable(error: &UnreadableDocument) -> Self {
        let hint =
            error.hint.as_deref().unwrap_or("correct the stored document, or remove the job");
        Self::refused(error.to_string(), hint)
    }
}

impl Hint for AdminError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let (Self::Invalid { hint, .. }
        | Self::Unreachable { hint, .. }
        | Self::NotAuthorised { hint, .. }
        | Self::NotFound { hint, .. }
        | Self::Conflict { hint, .. }
        | Self::Refused { hint, .. }
        | Self::Internal { hint, .. }) = self;
        Some(Cow::Borrowed(hint))
    }
}

impl From<Error> for AdminError {
    fn from(error: Error) -> Self {
        match error {
            Error::Operation { cause, .. } => Self::from(*cause),
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
            Error::Throttled { .. } => Self::Unreachable {
                problem: error.to_string(),
                hint: "try again later".to_owned(),
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
            Error::Settings { .. } => {
                let hint = error.hint().map(Cow::into_owned).unwrap_or_default();
                Self::invalid(with_causes(&error), hint)
            }
            Error::NotFound { path } => Self::NotFound {
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

impl From<InvalidValue> for AdminError {
    fn from(error: InvalidValue) -> Self {
        let hint = error.hint.clone().map_or_else(|| "correct it".to_owned(), String::from);
        Self::Invalid { problem: error.to_string(), hint }
    }
}

impl From<Conflict> for AdminError {
    fn from(error: Conflict) -> Self {
        Self::Conflict { problem: error.to_string(), hint: error.hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_of_a_refused_multi_decides_the_kind_of_error() {
        let path: crate::registry::Path = "/shop/settle".parse().unwrap();
        let cause = Box::new(Error::Exists { path });

        let error = AdminError::from(Error::Operation { index: 1, cause });

        assert!(matches!(error, AdminError::Conflict { .. }), "{error}");
    }

    #[test]
    fn invalid_text_keeps_its_own_hint() {
        let cron = crate::job::Job::named("j").unwrap().cron("0 0 24 * * ?").unwrap_err();
        let name = "a/b".parse::<crate::job::JobName>().unwrap_err();

        assert_eq!(AdminError::from(cron).hint().unwrap(), "hours are 0 to 23");
        assert_eq!(AdminError::from(name).hint().unwrap(), "correct it");
    }
}
