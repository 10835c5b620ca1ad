//! The error of a command and its exit code.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use elasticjob::{
    admin::AdminError,
    history::StoreError,
    job::InvalidValue,
    node::{JoinError, NodeError},
    problem::{Hint, Problem},
    registry::{self, UrlError},
    schedule::{CronError, ZoneError},
};
#[cfg(feature = "console")]
use elasticjob_console::{ConsoleError, ConsoleErrorKind};
use elasticjob_jobfile::JobFileError;

use crate::output::replace_control_chars;

/// Exit code: one for each way in which a script may react.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// A bug, or a machine that is out of a resource.
    Internal = 1,
    /// Invalid input: correct it.
    BadInput = 2,
    /// The registry is unreachable: try again later.
    Unreachable = 3,
    /// The credentials are not accepted.
    NotAuthorised = 4,
    /// The requested object does not exist.
    NotFound = 5,
    /// The object belongs to another handler, or was changed meanwhile.
    Conflict = 6,
    /// Possible, but refused to be safe.
    Refused = 7,
    /// No error: the command looked for differences or problems, and found some.
    Found = 10,
    /// The awaited run did not succeed.
    RunFailed = 20,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    pub(crate) code: Code,
    pub(crate) problems: Vec<Problem>,
}

impl Error {
    pub(crate) fn new(code: Code, problem: impl Into<Problem>) -> Self {
        Self { code, problems: vec![problem.into()] }
    }

    pub(crate) fn bad_input(problem: impl Into<Problem>) -> Self {
        Self::new(Code::BadInput, problem)
    }

    /// Adds a hint to the last problem.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(problem) = self.problems.last_mut() {
            problem.hint = Some(hint.into());
        }
        self
    }

    /// Only an exit code; everything else has been printed.
    pub(crate) fn silent(code: Code) -> Self {
        Self { code, problems: Vec::new() }
    }

    pub(crate) fn of(code: Code, error: &(impl Hint + 'static)) -> Self {
        Self { code, problems: vec![Problem::of(error)] }
    }

    /// All problems in one line, for a log.
    pub(crate) fn line(&self) -> String {
        let problems = self.problems.iter().map(|problem| one_line(&problem.to_string()));
        problems.collect::<Vec<_>>().join("; ")
    }

    /// Prints every problem and hint to standard error, one line each, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let mut stderr = io::stderr().lock();
        for Problem { message, hint } in &self.problems {
            // If standard error is closed there is no one left to report to.
            let _ = writeln!(stderr, "error: {}", one_line(message));
            if let Some(hint) = hint {
                let _ = writeln!(stderr, "hint: {}", one_line(hint));
            }
        }
        ExitCode::from(self.code as u8)
    }
}

fn one_line(text: &str) -> String {
    replace_control_chars(&text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

impl From<CronError> for Error {
    fn from(error: CronError) -> Self {
        Self::of(Code::BadInput, &error)
    }
}

impl From<ZoneError> for Error {
    fn from(error: ZoneError) -> Self {
        Self::of(Code::BadInput, &error)
    }
}

impl From<InvalidValue> for Error {
    fn from(error: InvalidValue) -> Self {
        Self::of(Code::BadInput, &error)
    }
}

impl From<UrlError> for Error {
    fn from(error: UrlError) -> Self {
        Self::of(Code::BadInput, &error)
    }
}

impl From<registry::Error> for Error {
    fn from(error: registry::Error) -> Self {
        Self::of(code_of(&error), &error)
    }
}

impl From<AdminError> for Error {
    fn from(error: AdminError) -> Self {
        let code = match &error {
            AdminError::Invalid { .. } => Code::BadInput,
            AdminError::Unreachable { .. } => Code::Unreachable,
            AdminError::NotAuthorised { .. } => Code::NotAuthorised,
            AdminError::NotFound { .. } => Code::NotFound,
            AdminError::Conflict { .. } => Code::Conflict,
            AdminError::Refused { .. } => Code::Refused,
            _ => Code::Internal,
        };
        Self::of(code, &error)
    }
}

impl From<JobFileError> for Error {
    fn from(error: JobFileError) -> Self {
        Self { code: Code::BadInput, problems: error.problems }
    }
}

#[cfg(feature = "console")]
impl From<ConsoleError> for Error {
    fn from(ConsoleError { kind, problem }: ConsoleError) -> Self {
        let code = match kind {
            ConsoleErrorKind::InvalidSetting => Code::BadInput,
            ConsoleErrorKind::Refused => Code::Refused,
            ConsoleErrorKind::Internal => Code::Internal,
        };
        Self { code, problems: vec![problem] }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::Url { .. } => Code::BadInput,
            StoreError::Unreachable { .. } => Code::Unreachable,
            StoreError::NotAuthorised { .. } => Code::NotAuthorised,
            StoreError::Refused { .. } => Code::Refused,
            _ => Code::Internal,
        };
        Self::of(code, &error)
    }
}

impl From<NodeError> for Error {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Url(error) => error.into(),
            NodeError::Registry(error) => error.into(),
            NodeError::Join(error) => {
                let code = match &error {
                    JoinError::Registry { source, .. } => code_of(source),
                    JoinError::Conflict(_) | JoinError::Contended { .. } => Code::Conflict,
                    JoinError::Unreadable(_) => Code::Refused,
                    JoinError::Invalid(_) => Code::BadInput,
                    _ => Code::Internal,
                };
                Self::of(code, &error)
            }
            NodeError::DuplicateJob { .. } | NodeError::Invalid(_) | NodeError::Address { .. } => {
                Self::of(Code::BadInput, &error)
            }
            NodeError::StillLeaving { .. } => Self::of(Code::Conflict, &error),
            error => Self::of(Code::Internal, &error),
        }
    }
}

fn code_of(error: &registry::Error) -> Code {
    match error {
        registry::Error::Operation { cause, .. } => code_of(cause),
        registry::Error::Unreachable { .. }
        | registry::Error::Unknown { .. }
        | registry::Error::Throttled { .. }
        | registry::Error::SessionExpired => Code::Unreachable,
        registry::Error::NotAuthorised { .. } => Code::NotAuthorised,
        registry::Error::Settings { .. } => Code::BadInput,
        registry::Error::NotFound { .. } => Code::NotFound,
        registry::Error::Exists { .. }
        | registry::Error::Conflict { .. }
        | registry::Error::NotEmpty { .. } => Code::Conflict,
        registry::Error::Invalid { .. } | registry::Error::TooLarge { .. } => Code::Refused,
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> registry::Path {
        "/shop/settle".parse().unwrap()
    }

    #[test]
    fn errors_map_to_exit_codes() {
        let unreachable = || registry::Error::Unreachable {
            endpoint: "zk:2181".to_owned(),
            source: "refused".into(),
        };
        let join = JoinError::Registry { job: "settle".to_owned(), source: unreachable() };
        for (error, code) in [
            (Error::from(unreachable()), Code::Unreachable),
            (registry::Error::SessionExpired.into(), Code::Unreachable),
            (registry::Error::NotAuthorised { path: path() }.into(), Code::NotAuthorised),
            (registry::Error::NotFound { path: path() }.into(), Code::NotFound),
            (registry::Error::Exists { path: path() }.into(), Code::Conflict),
            (registry::Error::Closed.into(), Code::Internal),
            (NodeError::from(join).into(), Code::Unreachable),
            ("0".parse::<elasticjob::schedule::Cron>().unwrap_err().into(), Code::BadInput),
            ("redis://h/x".parse::<registry::RegistryUrl>().unwrap_err().into(), Code::BadInput),
        ] {
            assert_eq!(error.code, code, "{error:?}");
        }
    }

    #[test]
    fn admin_errors_map_to_exit_codes() {
        for (error, code) in [
            (AdminError::from(registry::Error::SessionExpired), Code::Unreachable),
            (registry::Error::NotAuthorised { path: path() }.into(), Code::NotAuthorised),
            (registry::Error::NotFound { path: path() }.into(), Code::NotFound),
            (registry::Error::Exists { path: path() }.into(), Code::Conflict),
            (
                registry::Error::Invalid { path: path(), reason: "x".to_owned() }.into(),
                Code::Internal,
            ),
            ("a/b".parse::<elasticjob::job::JobName>().unwrap_err().into(), Code::BadInput),
            (AdminError::Refused { problem: String::new(), hint: String::new() }, Code::Refused),
        ] {
            assert_eq!(Error::from(error).code, code);
        }
    }

    #[test]
    fn message_includes_the_cause_and_hint_is_separate() {
        let error = registry::Error::Unreachable {
            endpoint: "zk:2181".to_owned(),
            source: "connection refused".into(),
        };

        assert_eq!(
            Error::from(error).problems,
            [Problem {
                message: "cannot reach the registry at zk:2181: connection refused".to_owned(),
                hint: Some("is ZooKeeper listening there?".to_owned()),
            }]
        );
    }
}
