//! HTTP jobs (type `HTTP`): each shard sends one request.
//!
//! * **Request**: `http.method` to `http.uri`, with the header `http.content.type` if set; with POST, PUT and DELETE, `http.data` as its body
//!   if set. The header `shardingContext` holds the sharding context as JSON.
//! * **Timeouts**: `http.connect.timeout.milliseconds` (3000) to connect, `http.read.timeout.milliseconds` (5000) until something arrives.
//! * **Result**: a status below 400 succeeds; redirects are followed. 400 and above fails the shard. Java ElasticJob only logs it; with
//!   `elasticjob.http.log.only` set to `true` it is only logged here, too.
//!
//! Messages name the URL without user, password and query.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use reqwest::{Method, StatusCode, Url, header::HeaderValue};

use super::{
    failure::{BoxError, Failure},
    handler::Handler,
    http_client::{self, HttpClient, Timeouts},
    outbound::{Outbound, Refusal},
    work::{RunSettings, Work},
};
use crate::job::{Job, Shard};

const URI: &str = "http.uri";
const METHOD: &str = "http.method";
const DATA: &str = "http.data";
const CONTENT_TYPE: &str = "http.content.type";
const CONNECT_TIMEOUT: &str = "http.connect.timeout.milliseconds";
const READ_TIMEOUT: &str = "http.read.timeout.milliseconds";

/// How many characters of an error's body a failure message includes.
const MAX_ERROR_BODY: usize = 500;

/// The request of an HTTP job.
#[derive(Debug, Clone)]
pub struct Http {
    url: Url,
    method: Method,
    body: Option<String>,
    content_type: Option<HeaderValue>,
    timeouts: Timeouts,
    log_only: bool,
}

impl Http {
    /// Reads the request from the job's properties.
    pub fn of(job: &Job) -> Result<Self, Failure> {
        let prop = |key| job.props.get(key).filter(|value| !value.is_empty());
        let required =
            |key| prop(key).ok_or_else(|| invalid(format_args!("the property {key} is missing")));
        let url: Url =
            required(URI)?.parse().map_err(|error| invalid(format_args!("{URI}: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(format_args!(
                "{URI} {}: only http and https",
                http_client::redacted(&url)
            )));
        }
        let method = required(METHOD)?;
        let upper = !method.contains(|character: char| character.is_ascii_lowercase());
        let parsed = Method::from_bytes(method.as_bytes()).ok().filter(|_| upper);
        let method = parsed.ok_or_else(|| {
            invalid(format_args!("{METHOD} {method:?}: upper case, for example GET"))
        })?;
        let writes = [Method::POST, Method::PUT, Method::DELETE].contains(&method);
        let millis = |key, default| match prop(key).map(str::parse) {
            None => Ok(Duration::from_millis(default)),
            Some(Ok(millis)) if millis > 0 => Ok(Duration::from_millis(millis)),
            Some(_) => Err(invalid(format_args!("{key}: milliseconds, from 1"))),
        };
        let content_type = prop(CONTENT_TYPE).map(HeaderValue::from_str).transpose();
        Ok(Self {
            url,
            method,
            body: prop(DATA).filter(|_| writes).map(ToOwned::to_owned),
            content_type: content_type
                .map_err(|_| invalid(format_args!("{CONTENT_TYPE} cannot be a header")))?,
            timeouts: Timeouts {
                connect: millis(CONNECT_TIMEOUT, 3_000)?,
                read: millis(READ_TIMEOUT, 5_000)?,
            },
            log_only: job.props.policies().http_log_only,
        })
    }

    /// The host of the request, for access checks; with the port if the URL has one.
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether the request may go to its host. Redirects and the address of the host are checked when it is sent.
    pub fn is_allowed(&self, outbound: &Outbound) -> bool {
        let port = self.url.port_or_known_default().unwrap_or(0);
        outbound.allows(self.url.host_str().unwrap_or_default(), port)
    }

    async fn send(
        &self,
        http_client: &HttpClient,
        outbound: &Outbound,
        shard: &Shard,
    ) -> Result<(), Failure> {
        let context =
            HeaderValue::from_bytes(shard.context().to_json().as_bytes()).map_err(|_| {
                Failure::new("the sharding context has a character that is not allowed in a header")
                    .permanent()
            })?;
        let client = http_client.client(&self.url, self.timeouts, outbound).map_err(not_sent)?;
        let mut request = client
            .request(self.method.clone(), self.url.clone())
            .header("shardingContext", context);
        if let Some(content_type) = &self.content_type {
            request = request.header(reqwest::header::CONTENT_TYPE, content_type);
        }
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| self.failed(error))?;
        let status = response.status();
        let answer = http_client::body_text(response).await;
        self.check_response(shard, status, &answer)
    }

    fn check_response(
        &self,
        shard: &Shard,
        status: StatusCode,
        answer: &str,
    ) -> Result<(), Failure> {
        if status.as_u16() < 400 {
            tracing::debug!(job = %shard.job, shard = shard.item, status = status.as_u16(), answer, "http job answered");
            return Ok(());
        }
        let answer: String = answer.trim().chars().take(MAX_ERROR_BODY).collect();
        // Quoted, because the server chooses it.
        let answer = if answer.is_empty() { answer } else { format!(": {answer:?}") };
        let message = format!(
            "{} {} answered {status}{answer}",
            self.method,
            http_client::redacted(&self.url)
        );
        if self.log_only {
            tracing::warn!(job = %shard.job, shard = shard.item, status = status.as_u16(), message, "http job answered with an error status");
            return Ok(());
        }
        Err(Failure::new(message))
    }

    fn failed(&self, error: reqwest::Error) -> Failure {
        let timed_out = if error.is_timeout() { " in time" } else { "" };
        let (method, url) = (&self.method, http_client::redacted(&self.url));
        Failure::new(format_args!(
            "{method} {url} was not answered{timed_out}: {}",
            http_client::error_text(error)
        ))
    }
}

/// A request that is refused is refused again at the next attempt.
fn not_sent(error: BoxError) -> Failure {
    let is_refused = Refusal::in_chain(&*error).is_some();
    let failure = Failure::from(error);
    if is_refused { failure.permanent() } else { failure }
}

fn invalid(problem: std::fmt::Arguments<'_>) -> Failure {
    Failure::new(problem).permanent()
}

/// Runs jobs of the type `HTTP`.
#[derive(Clone)]
pub struct HttpWork {
    http_client: Arc<HttpClient>,
    outbound: Option<ChooseOutbound>,
}

/// Chooses the hosts that a job's request may reach, for its current configuration.
type ChooseOutbound = Arc<dyn Fn(&Job) -> Outbound + Send + Sync>;

impl HttpWork {
    /// Sends requests with this client.
    pub fn new(http_client: Arc<HttpClient>) -> Self {
        Self { http_client, outbound: None }
    }

    /// Sends requests only to the hosts that `choose` returns for the job's configuration at that time.
    #[must_use]
    pub fn outbound(mut self, choose: impl Fn(&Job) -> Outbound + Send + Sync + 'static) -> Self {
        self.outbound = Some(Arc::new(choose));
        self
    }
}

impl Work for HttpWork {
    fn prepare(&self, setting: &RunSettings<'_>) -> Result<Arc<dyn Handler>, Failure> {
        let http_client = Arc::clone(&self.http_client);
        let outbound = match &self.outbound {
            Some(choose) => choose(setting.job),
            None => http_client.outbound().clone(),
        };
        Ok(Arc::new(HttpHandler { http: Http::of(setting.job)?, http_client, outbound }))
    }
}

struct HttpHandler {
    http: Http,
    http_client: Arc<HttpClient>,
    outbound: Outbound,
}

#[async_trait]
impl Handler for HttpHandler {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        tokio::select! {
            result = self.http.send(&self.http_client, &self.outbound, &shard) => result,
            // Dropping the request closes its connection; whether the server continues is up to the server.
            reason = shard.cancel().cancelled() => Err(Failure::new(format_args!("given up: {reason}"))),
        }
    }
}

/// The words that HTTP jobs are stored in, frozen: `tests/golden/README.md` says why.
#[cfg(test)]
mod golden {
    use testbed::golden_input;

    use super::*;

    #[test]
    fn request_is_read_from_javas_properties() {
        let stored = golden_input!("job-http.yaml");
        let job = Job::read(&"settle".parse().unwrap(), stored.as_bytes()).unwrap();

        let Http { url, method, body, content_type, timeouts, log_only } = Http::of(&job).unwrap();

        assert_eq!((url.as_str(), method), ("https://shop.example.com/settle", Method::POST));
        assert_eq!(body.as_deref(), Some(r#"{"orders":"all"}"#));
        assert_eq!(content_type.unwrap(), "application/json");
        let Timeouts { connect, read } = timeouts;
        assert_eq!((connect.as_millis(), read.as_millis()), (1500, 2500));
        assert!(log_only);
    }
}
