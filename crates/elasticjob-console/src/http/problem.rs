//! RFC 9457 problem details: why a request failed.
//!
//! The code tells a client how to react; errors of a registry map from [`AdminError`]. The detail is a sentence for people, the hint is kept apart.

use axum::{
    Json,
    http::{Extensions, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use elasticjob::{
    admin::AdminError,
    problem::{self, Hint},
};
use serde::{Serialize, Serializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::openapi_common::PROBLEM_MEDIA_TYPE;
use crate::error::{ConsoleError, ConsoleErrorKind};

/// Tells a client how to react.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Code {
    /// The request cannot be parsed: not JSON, or a value of the wrong type.
    Malformed,
    /// The request is well-formed but invalid: correct it.
    Invalid,
    /// Log in first.
    NotAuthenticated,
    /// The caller's role is not sufficient.
    Forbidden,
    /// A change by cookie without the session's CSRF token, or from another site.
    Csrf,
    /// The registry denies this to the console: its URL needs other credentials.
    RegistryNotAuthorised,
    NotFound,
    /// No history store is configured for this registry.
    NoHistory,
    /// The path exists but does not support this method.
    MethodNotAllowed,
    /// Taken, or changed concurrently: read again, then decide again.
    Conflict,
    /// Unsafe or pointless in the current state.
    Refused,
    /// The resource changed since it was read.
    PreconditionFailed,
    /// The request must name the version that was read.
    PreconditionRequired,
    /// The body exceeds the size limit.
    TooLarge,
    /// The body is not declared as JSON.
    UnsupportedMediaType,
    /// The console is not reachable under this host name.
    Misdirected,
    /// Wait as long as Retry-After says.
    TooManyRequests,
    /// The registry or history store does not answer: retry.
    Unreachable,
    /// The body did not arrive in time; nothing was done: send it again.
    BodyTimedOut,
    /// The request timed out; a change may still complete.
    TimedOut,
    /// A bug, or unexpected behavior of a registry.
    Internal,
}

impl Code {
    fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NotAuthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::Csrf | Self::RegistryNotAuthorised => StatusCode::FORBIDDEN,
            Self::NotFound | Self::NoHistory => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict | Self::Refused => StatusCode::CONFLICT,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::PreconditionRequired => StatusCode::PRECONDITION_REQUIRED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::BodyTimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A failed request: what happened, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
    pub(crate) field: Option<String>,
    /// Seconds after which to retry.
    retry_after: Option<u64>,
}

/// A problem as serialized.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Details {
    /// The code as a URN: `urn:elasticjob:problem:notFound`.
    #[serde(rename = "type")]
    kind: String,
    /// Reason phrase of the status.
    title: &'static str,
    /// HTTP status.
    status: u16,
    /// Tells the client how to react.
    code: Code,
    /// What happened, in one sentence.
    detail: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The field, parameter or header that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

impl From<Problem> for Details {
    fn from(Problem { code, detail, hint, field, .. }: Problem) -> Self {
        let word = serde_json::to_value(code).unwrap_or_default();
        Self {
            kind: format!("urn:elasticjob:problem:{}", word.as_str().unwrap_or_default()),
            title: code.status().canonical_reason().unwrap_or_default(),
            status: code.status().as_u16(),
            code,
            detail,
            hint,
            field,
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Details::from(self.clone()).serialize(serializer)
    }
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        Details::schema()
    }
}

impl ToSchema for Problem {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Details::schemas(schemas);
    }
}

impl Problem {
    pub(crate) fn new(code: Code, problem: impl Into<problem::Problem>) -> Self {
        let problem::Problem { message, hint } = problem.into();
        Self { code, detail: message, hint, field: None, retry_after: None }
    }

    /// From an error of the library: its text with all causes, and its hint.
    pub(crate) fn of(code: Code, error: &(impl Hint + 'static)) -> Self {
        Self::new(code, problem::Problem::of(error))
    }

    pub(crate) fn invalid(field: &str, problem: impl Into<problem::Problem>) -> Self {
        Self::new(Code::Invalid, problem).with_field(field)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_field(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    /// Tells the client to retry after this many seconds.
    pub(crate) fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl Problem {
    /// As response extensions, so that middleware can see the problem.
    pub(crate) fn into_extensions(self) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(self);
        extensions
    }
}

impl From<AdminError> for Problem {
    fn from(error: AdminError) -> Self {
        let code = match &error {
            AdminError::Invalid { .. } => Code::Invalid,
            AdminError::Unreachable { .. } => Code::Unreachable,
            AdminError::NotAuthorised { .. } => Code::RegistryNotAuthorised,
            AdminError::NotFound { .. } => Code::NotFound,
            AdminError::Conflict { .. } => Code::Conflict,
            AdminError::Refused { .. } => Code::Refused,
            _ => Code::Internal,
        };
        if code == Code::Internal {
            tracing::error!(%error, "request failed");
        }
        Self::of(code, &error)
    }
}

/// A problem at startup, where no client receives it.
impl From<Problem> for ConsoleError {
    fn from(Problem { code, detail: message, hint, .. }: Problem) -> Self {
        let kind = if code == Code::Internal {
            ConsoleErrorKind::Internal
        } else {
            ConsoleErrorKind::InvalidSetting
        };
        Self { kind, problem: problem::Problem { message, hint } }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.code.status(), self.retry_after);
        let mut response = (status, Json(&self)).into_response();
        response.extensions_mut().extend(self.into_extensions());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_MEDIA_TYPE));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// The pages translate each code; the server's sentences are English.
    #[test]
    fn every_code_is_translated_in_both_page_languages() {
        let schema = serde_json::to_value(Code::schema()).unwrap();
        let codes = schema["enum"].as_array().unwrap();
        assert!(codes.len() >= 20, "{schema}");

        for language in ["en", "zh"] {
            let file = format!("web/src/i18n/{language}/common.ts");
            let catalogue =
                fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
            let words = catalogue.split_once("  problems: {").unwrap().1;
            let words = words.split_once("\n  }").unwrap().0;
            let missing: Vec<_> = codes
                .iter()
                .filter_map(|code| code.as_str())
                .filter(|code| !words.contains(&format!("\n    {code}: ")))
                .collect();
            assert!(missing.is_empty(), "{language}: {missing:?}");
        }
    }

    #[test]
    fn problem_details_separate_code_detail_and_hint() {
        let problem = Problem::invalid("cron", "not a cron expression").with_hint("six fields");

        let sent = serde_json::to_value(problem).unwrap();

        assert_eq!(sent["type"], "urn:elasticjob:problem:invalid");
        assert_eq!((sent["status"].as_u64(), &sent["code"]), (Some(422), &"invalid".into()));
        assert_eq!(
            (&sent["detail"], &sent["hint"]),
            (&"not a cron expression".into(), &"six fields".into())
        );
        assert_eq!(sent["field"], "cron");
    }
}
