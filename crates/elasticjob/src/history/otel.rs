//! Runs as OpenTelemetry's traces.
//!
//! ```text
//!   trace: the run                    named after the run: every instance's shards are in it
//!   └─ span: an instance's part       one for each instance
//!      └─ span: an attempt of a shard
//! ```
//!
//! Spans go to a collector as JSON over HTTP (OTLP/HTTP), when they have ended. Their names are made of what they are about, so whoever is told twice is told the same.

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
    event::{Ended, Event, Source, Status, StatusState},
    sink::{Sink, SinkError},
    trace,
};

/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// More parts of runs than this do not run at once; what is beyond has no beginning.
const PARTS: usize = 100_000;

/// Tells a collector of every run and every attempt of a shard, as spans. The trace of a run is in [`Started::trace`](super::Started::trace) if it is given to
/// [`Recorder::spans`](super::Recorder::spans).
///
/// ```
/// use elasticjob::history::{Recorder, Spans};
///
/// let spans = Spans::to("http://127.0.0.1:4318", "shop")?;
/// let recorder = Recorder::new().spans(spans);
/// # drop(recorder);
/// # Ok::<(), elasticjob::history::SinkError>(())
/// ```
pub struct Spans {
    url: String,
    /// The same without user and password, and without parameters: any of them may be a secret.
    shown: String,
    service: String,
    client: Client,
    /// When the parts that run began.
    begun: Mutex<HashMap<String, Timestamp>>,
}

impl Spans {
    /// To the collector at this address, as OpenTelemetry's `OTEL_EXPORTER_OTLP_ENDPOINT` has it, under this name of the service.
    pub fn to(endpoint: &str, service: impl Into<String>) -> Result<Self, SinkError> {
        // The address is not repeated here: there may be a password in it.
        let wrong = |problem: String| {
            let hint = "hint: for example http://127.0.0.1:4318";
            SinkError::Refused(format!("the collector's address: {problem}; {hint}"))
        };
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let parsed: reqwest::Url = url.parse().map_err(|error| wrong(format!("{error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong("it begins with http:// or https://".to_owned()));
        }
        let shown = shown(parsed);
        let client = Client::builder()
            .tls_backend_preconfigured(tls().map_err(wrong)?)
            .user_agent(concat!("elasticjob/", env!("CARGO_PKG_VERSION")))
            .timeout(PATIENCE)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self { url, shown, service: service.into(), client, begun: Mutex::default() })
    }

    async fn send(&self, spans: Vec<Value>) -> Result<(), SinkError> {
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [text("service.name", &self.service)] },
            "scopeSpans": [{
                "scope": { "name": "elasticjob", "version": env!("CARGO_PKG_VERSION") },
                "spans": spans,
            }],
        }] });
        let request = self.client.post(&self.url).header(header::CONTENT_TYPE, "application/json");
        let answer = request.body(body.to_string()).send().await;
        let answer = answer.map_err(|error| {
            let error = plain(error);
            SinkError::Later(format!(
                "the collector at {}: {error}; hint: is it there?",
                self.shown
            ))
        })?;
        let (status, url) = (answer.status(), &self.shown);
        match status {
            _ if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Err(SinkError::Later(format!("the collector at {url} answers {status}")))
            }
            _ => Err(SinkError::Refused(format!(
                "the collector at {url} answers {status}; hint: does it take OTLP over HTTP as JSON?"
            ))),
        }
    }

    fn part(&self, status: &Status) -> Value {
        let id = trace::part(&status.run, &status.task);
        let begun = self.lock().get(&id).copied().unwrap_or(status.at);
        json!({
            "traceId": trace::trace(&status.run),
            "spanId": id,
            "name": status.task.job.as_str(),
            "kind": 1,
            "startTimeUnixNano": nanos(begun),
            "endTimeUnixNano": nanos(status.at),
            "attributes": [
                text("elasticjob.job", status.task.job.as_str()),
                text("elasticjob.run", &status.run.to_string()),
                text("elasticjob.task", &status.task.to_string()),
            ],
            "status": how(status.state == StatusState::Finished, &status.message),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        // Nothing under this lock panics half way.
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans")
            .field("url", &self.shown)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

/// An address as it may be printed.
fn shown(mut url: reqwest::Url) -> String {
    // Neither can fail where there is a host.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.set_query(None);
    url.to_string()
}

#[async_trait]
impl Sink for Spans {
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
        let (mut spans, mut over) = (Vec::new(), Vec::new());
        for event in batch {
            match event {
                Event::Status(status) if status.state == StatusState::Running => {
                    let mut begun = self.lock();
                    if begun.len() < PARTS {
                        begun.insert(trace::part(&status.run, &status.task), status.at);
                    }
                }
                Event::Status(status) if is_end(status) => {
                    spans.push(self.part(status));
                    over.push(trace::part(&status.run, &status.task));
                }
                Event::Ended(ended) => spans.push(attempt(ended)),
                _ => {}
            }
        }
        if !spans.is_empty() {
            self.send(spans).await?;
        }
        let mut begun = self.lock();
        for part in over {
            begun.remove(&part);
        }
        Ok(())
    }
}

/// Whether shards ran and have ended: what never began has no span.
fn is_end(status: &Status) -> bool {
    match status.state {
        StatusState::Staging | StatusState::Running => false,
        // It says why nothing ran.
        StatusState::Finished => status.message.is_empty(),
        _ => true,
    }
}

fn attempt(ended: &Ended) -> Value {
    let started = &ended.started;
    let number = started.attempt.number.get();
    let mut attributes = vec![
        text("elasticjob.job", started.job.as_str()),
        text("elasticjob.run", &started.run.to_string()),
        number_of("elasticjob.shard", started.item.into()),
        number_of("elasticjob.attempt", number.into()),
        number_of("elasticjob.token", started.token.get()),
        text("elasticjob.reason", started.attempt.reason.as_str()),
        text("elasticjob.outcome", ended.ending.as_str()),
        text("host.name", &started.host),
    ];
    if let Source::Trigger { by: Some(by) } = &started.source {
        attributes.push(text("elasticjob.triggered_by", by));
    }
    json!({
        "traceId": trace::trace(&started.run),
        "spanId": trace::span(&started.id.to_string()),
        "parentSpanId": trace::part(&started.run, &started.task),
        "name": format!("{} {}", started.job, started.item),
        "kind": 1,
        "startTimeUnixNano": nanos(started.at),
        "endTimeUnixNano": nanos(ended.at),
        "attributes": attributes,
        "status": how(ended.ending.is_done(), ended.ending.message().unwrap_or_default()),
    })
}

fn how(is_good: bool, message: &str) -> Value {
    if is_good { json!({ "code": 1 }) } else { json!({ "code": 2, "message": message }) }
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Whole numbers are text in OTLP's JSON.
fn number_of(key: &str, value: i64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().max(0).to_string()
}

/// Without the address, which is told already.
fn plain(error: reqwest::Error) -> String {
    use std::error::Error as _;
    let error = error.without_url();
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told = error.to_string();
        cause = error.source();
    }
    told
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
