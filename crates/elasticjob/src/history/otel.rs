//! Exports runs as OpenTelemetry traces.
//!
//! ```text
//!   trace: the run                             its id is derived from the run id, so the shards of all instances are in it
//!   └─ span: an instance's part of the run
//!      └─ span: an attempt of a shard
//! ```
//!
//! Spans go to a collector as JSON over HTTP (OTLP/HTTP) when they have ended. Their ids are derived from what they describe, so a span that is
//! sent twice has the same id.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use reqwest::{Client, StatusCode, header};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde_json::{Value, json};

use super::{
    event::{AttemptEnded, Event, Status, StatusState},
    sink::{Sink, SinkError},
    trace,
};
use crate::problem::Problem;

/// Limit for one request to the collector.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of open executions whose start is remembered; further ones get the end as their start.
const MAX_OPEN_EXECUTIONS: usize = 100_000;

/// Exports every run and every attempt of a shard to a collector, as spans. With [`Recorder::spans`](super::Recorder::spans), the trace id of a
/// run is in [`AttemptStarted::trace`](super::AttemptStarted::trace).
///
/// ```
/// use elasticjob::history::{Recorder, SpanExporter};
///
/// let spans = SpanExporter::to("http://127.0.0.1:4318", "shop")?;
/// let recorder = Recorder::new().spans(spans);
/// # drop(recorder);
/// # Ok::<(), elasticjob::history::SinkError>(())
/// ```
pub struct SpanExporter {
    url: String,
    /// The URL for messages: without user, password and parameters, any of which may be a secret.
    redacted: String,
    service: String,
    client: Client,
    /// Start times of open executions, by span id.
    started_at: Mutex<HashMap<String, Timestamp>>,
}

impl SpanExporter {
    /// Exports to the collector at this address (the value of OpenTelemetry's `OTEL_EXPORTER_OTLP_ENDPOINT`) under this service name.
    pub fn to(endpoint: &str, service: impl Into<String>) -> Result<Self, SinkError> {
        // The message does not repeat the address: it may contain a password.
        let invalid = |problem: String| {
            let problem = Problem::new(format!("invalid collector address: {problem}"))
                .with_hint("for example http://127.0.0.1:4318");
            SinkError::Refused(problem.to_string())
        };
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let parsed: reqwest::Url = url.parse().map_err(|error| invalid(format!("{error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(invalid("it must begin with http:// or https://".to_owned()));
        }
        let redacted = redacted(parsed);
        let client = Client::builder()
            .tls_backend_preconfigured(tls().map_err(invalid)?)
            .user_agent(concat!("elasticjob/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        Ok(Self { url, redacted, service: service.into(), client, started_at: Mutex::default() })
    }

    async fn send(&self, spans: Vec<Value>) -> Result<(), SinkError> {
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [text_attribute("service.name", &self.service)] },
            "scopeSpans": [{
                "scope": { "name": "elasticjob", "version": env!("CARGO_PKG_VERSION") },
                "spans": spans,
            }],
        }] });
        let request = self.client.post(&self.url).header(header::CONTENT_TYPE, "application/json");
        let answer = request.body(body.to_string()).send().await;
        let answer = answer.map_err(|error| {
            let error = root_cause(error);
            let problem =
                Problem::new(format!("cannot reach the collector at {}: {error}", self.redacted))
                    .with_hint("is it running?");
            SinkError::Unavailable(problem.to_string())
        })?;
        let (status, url) = (answer.status(), &self.redacted);
        match status {
            _ if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Err(SinkError::Unavailable(format!("the collector at {url} answers {status}")))
            }
            _ => {
                let problem = Problem::new(format!("the collector at {url} answers {status}"))
                    .with_hint("does it accept OTLP over HTTP as JSON?");
                Err(SinkError::Refused(problem.to_string()))
            }
        }
    }

    fn execution_span(&self, status: &Status) -> Value {
        let id = trace::execution_span_id(&status.run, &status.task);
        let started_at = self.lock().get(&id).copied().unwrap_or(status.at);
        json!({
            "traceId": trace::trace_id(&status.run),
            "spanId": id,
            "name": status.task.job.as_str(),
            "kind": 1,
            "startTimeUnixNano": nanos(started_at),
            "endTimeUnixNano": nanos(status.at),
            "attributes": [
                text_attribute("elasticjob.job", status.task.job.as_str()),
                text_attribute("elasticjob.run", &status.run.to_string()),
                text_attribute("elasticjob.task", &status.task.to_string()),
            ],
            "status": span_status(status.state == StatusState::Finished, &status.message),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        // No code under this lock panics halfway.
        self.started_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SpanExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanExporter")
            .field("url", &self.redacted)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

/// A URL without user, password and parameters.
fn redacted(mut url: reqwest::Url) -> String {
    // Neither can fail for a URL with a host.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.set_query(None);
    url.to_string()
}

#[async_trait]
impl Sink for SpanExporter {
    async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
        let (mut spans, mut ended_ids) = (Vec::new(), Vec::new());
        for event in batch {
            match event {
                Event::Status(status) if status.state == StatusState::Running => {
                    let mut started_at = self.lock();
                    if started_at.len() < MAX_OPEN_EXECUTIONS {
                        started_at
                            .insert(trace::execution_span_id(&status.run, &status.task), status.at);
                    }
                }
                Event::Status(status) if is_end(status) => {
                    spans.push(self.execution_span(status));
                    ended_ids.push(trace::execution_span_id(&status.run, &status.task));
                }
                Event::Ended(ended) => spans.push(attempt_span(ended)),
                _ => {}
            }
        }
        if !spans.is_empty() {
            self.send(spans).await?;
        }
        let mut started_at = self.lock();
        for id in ended_ids {
            started_at.remove(&id);
        }
        Ok(())
    }
}

/// Whether shards ran and have ended; an execution that never started has no span.
fn is_end(status: &Status) -> bool {
    match status.state {
        StatusState::Staging | StatusState::Running => false,
        // A message says why nothing ran.
        StatusState::Finished => status.message.is_empty(),
        _ => true,
    }
}

fn attempt_span(ended: &AttemptEnded) -> Value {
    let started = &ended.started;
    let number = started.attempt.number.get();
    let mut attributes = vec![
        text_attribute("elasticjob.job", started.job.as_str()),
        text_attribute("elasticjob.run", &started.run.to_string()),
        int_attribute("elasticjob.shard", started.item.into()),
        int_attribute("elasticjob.attempt", number.into()),
        int_attribute("elasticjob.token", started.token.get()),
        text_attribute("elasticjob.reason", started.attempt.reason.as_str()),
        text_attribute("elasticjob.outcome", ended.outcome.as_str()),
        text_attribute("host.name", &started.host),
    ];
    if let Some(by) = &started.triggered_by {
        attributes.push(text_attribute("elasticjob.triggered_by", by));
    }
    json!({
        "traceId": trace::trace_id(&started.run),
        "spanId": trace::span_id(&started.id.to_string()),
        "parentSpanId": trace::execution_span_id(&started.run, &started.task),
        "name": format!("{} {}", started.job, started.item),
        "kind": 1,
        "startTimeUnixNano": nanos(started.at),
        "endTimeUnixNano": nanos(ended.at),
        "attributes": attributes,
        "status": span_status(ended.outcome.is_success(), ended.message.as_deref().unwrap_or_default()),
    })
}

fn span_status(is_success: bool, message: &str) -> Value {
    if is_success { json!({ "code": 1 }) } else { json!({ "code": 2, "message": message }) }
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// An integer attribute; OTLP's JSON writes integers as strings.
fn int_attribute(key: &str, value: i64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().max(0).to_string()
}

/// The innermost cause, without the URL, which the message already names.
fn root_cause(error: reqwest::Error) -> String {
    use std::error::Error as _;
    let error = error.without_url();
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = error.to_string();
        cause = error.source();
    }
    message
}

fn tls() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
