//! Extractors for bodies, queries and path parameters. A request that cannot be parsed is answered with a [`Problem`] that names the field.

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, RawPathParams, Request, rejection::BytesRejection},
    http::{StatusCode, header, request::Parts},
};
use elasticjob::job::{JobName, RunId};
use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::problem::{Code, Problem};

/// A required JSON body.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json = is_json(&request);
        let bytes = read_body(request, state).await?;
        if !is_json {
            return Err(Problem::new(
                Code::UnsupportedMediaType,
                "the body is not declared as JSON",
            )
            .with_hint("Content-Type: application/json"));
        }
        Ok(Self(parse_body(&bytes)?))
    }
}

/// An optional JSON body; an empty one yields the default.
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = read_body(request, state).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(T::default()));
        }
        Ok(Self(parse_body(&bytes)?))
    }
}

fn is_json(request: &Request) -> bool {
    let content_type = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|content_type| content_type.to_str().ok());
    let content_type =
        content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    content_type.eq_ignore_ascii_case("application/json")
        || content_type.eq_ignore_ascii_case("application/merge-patch+json")
}

async fn read_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|rejection| match rejection {
        BytesRejection::FailedToBufferBody(error)
            if error.status() == StatusCode::PAYLOAD_TOO_LARGE =>
        {
            Problem::new(Code::TooLarge, "the body is too large").with_hint("the limit is 256 KiB")
        }
        rejection => Problem::new(Code::Malformed, rejection.body_text()),
    })
}

/// Parses a JSON object. An error names the path of the invalid field.
pub(crate) fn parse_body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        // serde would read an array as a struct whose field names were left out.
        let code = match serde_json::from_slice::<IgnoredAny>(bytes) {
            Ok(_) => Code::Invalid,
            Err(_) => Code::Malformed,
        };
        return Err(Problem::new(code, "the body is not a JSON object").with_hint("{\"name\": …}"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let cause = error.into_inner();
        let code = if cause.is_data() { Code::Invalid } else { Code::Malformed };
        let problem = Problem::new(code, format!("cannot parse the body: {cause}"));
        if field == "." { problem } else { problem.with_field(&field) }
    })?;
    reader.end().map_err(|error| {
        Problem::new(Code::Malformed, format!("cannot parse the body: {error}"))
    })?;
    Ok(parsed)
}

/// The query string.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match axum::extract::Query::<T>::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(rejection) => {
                let text = rejection.body_text();
                let message =
                    text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
                let problem =
                    Problem::new(Code::Malformed, format!("cannot parse the query: {message}"));
                let field = message.split_once(": ").map(|(field, _)| field);
                let unknown =
                    message.split('`').nth(1).filter(|_| message.contains("unknown field"));
                let field = unknown.or(field.filter(|field| !field.contains(' ')));
                Err(match field {
                    Some(field) => problem.with_field(field),
                    None => problem,
                })
            }
        }
    }
}

/// A named path parameter.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(part)) => Ok(Self(part)),
            Err(rejection) => Err(Problem::new(
                Code::Malformed,
                format!("cannot parse the path: {}", rejection.body_text()),
            )),
        }
    }
}

/// The path parameter `job`.
pub(crate) struct PathJob(pub(crate) JobName);

impl<S: Send + Sync> FromRequestParts<S> for PathJob {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let job = path_param(parts, state, "job").await?;
        Ok(Self(
            job.parse()
                .map_err(|error: elasticjob::job::InvalidValue| Problem::invalid("job", &error))?,
        ))
    }
}

/// The path parameter `run`, of a triggered run.
pub(crate) struct PathTriggeredRun(pub(crate) RunId);

impl<S: Send + Sync> FromRequestParts<S> for PathTriggeredRun {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let run = path_param(parts, state, "run").await?;
        // The id of no run names no trigger, whatever is wrong with it.
        run.parse().map(Self).map_err(|error: elasticjob::job::InvalidValue| {
            Problem::new(Code::NotFound, &error)
                .with_hint("GET …/triggers lists the triggers of a job")
                .with_field("run")
        })
    }
}

/// The path parameter `item`.
pub(crate) struct PathShard(pub(crate) u32);

impl<S: Send + Sync> FromRequestParts<S> for PathShard {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let item = path_param(parts, state, "item").await?;
        item.parse().map(Self).map_err(|_| {
            Problem::invalid("item", format!("{item:?} is not a shard"))
                .with_hint("shards are numbers, starting at 0")
        })
    }
}

/// Rejects shard numbers that Java ElasticJob cannot represent (a Java `int`).
pub(crate) fn check_shard(given: Option<u32>) -> Result<Option<u32>, Problem> {
    match given {
        Some(shard) if i32::try_from(shard).is_err() => {
            Err(Problem::invalid("shard", "not a shard")
                .with_hint("shards are numbers, starting at 0"))
        }
        shard => Ok(shard),
    }
}

/// The path parameter `server`.
pub(crate) struct PathServer(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathServer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let address = path_param(parts, state, "server").await?;
        let hint = "for example 10.0.0.7";
        check_segment("server", address, "not a server address", hint).map(Self)
    }
}

/// The path parameter `instance`.
pub(crate) struct PathInstance(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathInstance {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = path_param(parts, state, "instance").await?;
        let hint = "GET …/instances lists them";
        check_segment("instance", id, "not an instance id", hint).map(Self)
    }
}

/// Accepts text that is one segment of a registry path and at most 255 characters long.
fn check_segment(field: &str, text: String, problem: &str, hint: &str) -> Result<String, Problem> {
    let is_valid = !text.is_empty()
        && text.chars().count() <= 255
        && text.chars().all(|character| !character.is_control() && character != '/')
        && !matches!(text.as_str(), "." | "..");
    if is_valid { Ok(text) } else { Err(Problem::invalid(field, problem).with_hint(hint)) }
}

/// Returns a path parameter by name, empty if the route has none.
pub(crate) async fn path_param<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<String, Problem> {
    let params = RawPathParams::from_request_parts(parts, state).await.map_err(|error| {
        Problem::new(Code::Malformed, format!("cannot parse the path: {error}"))
    })?;
    let found = params.iter().find(|(known, _)| *known == name);
    Ok(found.map(|(_, value)| value.to_owned()).unwrap_or_default())
}

/// Parses a timestamp sent by a client.
pub(crate) fn parse_timestamp(field: &str, text: &str) -> Result<Timestamp, Problem> {
    text.parse().map_err(|_| {
        Problem::invalid(field, format!("{text:?} is not a timestamp"))
            .with_hint("date, time and UTC offset, for example 2026-11-15T06:36:07Z")
    })
}
