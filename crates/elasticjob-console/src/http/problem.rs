//! Why a request was not answered: RFC 9457's problem details.
//!
//! The code says what a client does differently; those of a registry are the door's own ([`AdminError`]). The detail is a sentence for people and ends
//! where the hint begins.

use axum::{
    Json,
    http::{Extensions, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use elasticjob::{admin::AdminError, problem};
use serde::{Serialize, Serializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::openapi_common::PROBLEM_MEDIA_TYPE;

/// What a client does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Code {
    /// It cannot be read at all: not JSON, a number where a word belongs.
    Malformed,
    /// It can be read and makes no sense: correct it.
    Invalid,
    /// Log in.
    NotAuthenticated,
    /// Somebody with another role may.
    Forbidden,
    /// A change by cookie without the session's CSRF token, or from another site.
    Csrf,
    /// The registry does not let the console do this: its URL has other credentials.
    RegistryNotAuthorised,
    /// There is no such thing.
    NotFound,
    /// Nobody said where the history of this registry is.
    NoHistory,
    /// There is such a thing, and it does not do this.
    MethodNotAllowed,
    /// Somebody else has it, or was faster: look again, decide again.
    Conflict,
    /// It would do harm, or nothing, as things stand.
    Refused,
    /// It was changed since it was read.
    PreconditionFailed,
    /// Say which version was read.
    PreconditionRequired,
    /// It is larger than anything of its kind.
    TooLarge,
    /// Not JSON.
    UnsupportedMediaType,
    /// This console is not called so.
    Misdirected,
    /// Wait.
    TooManyRequests,
    /// The registry, or the database of its history, does not answer: try again.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// A bug, or a registry that does not behave.
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
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
    pub(crate) field: Option<String>,
    /// After how many seconds to try again.
    retry_after: Option<u64>,
}

/// A problem as it is sent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Details {
    /// The code as a name that is nobody else's: `urn:elasticjob:problem:notFound`.
    #[serde(rename = "type")]
    kind: String,
    /// The status in words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What to do about it.
    code: Code,
    /// What happened, in a sentence.
    detail: String,
    /// The way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Which field, parameter or header is meant.
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
    /// From a sentence that may end in `; hint: …`.
    pub(crate) fn new(code: Code, text: impl AsRef<str>) -> Self {
        let problem::Problem { message, hint } = problem::Problem::new(text);
        Self { code, detail: message, hint, field: None, retry_after: None }
    }

    /// What was given makes no sense.
    pub(crate) fn invalid(field: &str, text: impl AsRef<str>) -> Self {
        Self::new(Code::Invalid, text).with_field(field)
    }

    /// The same, of this field.
    pub(crate) fn with_field(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    /// The same, to be tried again after so many seconds.
    pub(crate) fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl Problem {
    /// The same as an answer carries it along, for those who only see answers.
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
            tracing::error!(%error, "a request came to nothing");
        }
        Self::new(code, error.to_string())
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

    /// The pages say in their reader's language what a code means; the sentences of the server are in English.
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
        let problem = Problem::invalid("cron", "it is no cron; hint: six words");

        let sent = serde_json::to_value(problem).unwrap();

        assert_eq!(sent["type"], "urn:elasticjob:problem:invalid");
        assert_eq!((sent["status"].as_u64(), &sent["code"]), (Some(422), &"invalid".into()));
        assert_eq!(
            (&sent["detail"], &sent["hint"]),
            (&"it is no cron".into(), &"six words".into())
        );
        assert_eq!(sent["field"], "cron");
    }
}
