//! HTTP jobs (type `HTTP`): each shard sends one request.
//!
//! * **Request**: `http.method` to `http.uri`, with the header `http.content.type` if set, and those of `elasticjob.http.header.NAME`; with POST, PUT
//!   and DELETE, `http.data` as its body if set. The header `shardingContext` holds the sharding context as JSON.
//! * **Secrets**: references in the URL and in headers are resolved for each run. Such a request follows no redirect to another origin.
//! * **Timeouts**: `http.connect.timeout.milliseconds` (3000) to connect, `http.read.timeout.milliseconds` (5000) until something arrives.
//! * **Result**: a status below 400 succeeds; redirects are followed. 400 and above fails the shard. Java ElasticJob only logs it; with
//!   `elasticjob.http.log.only` set to `true` it is only logged here, too.
//!
//! Messages name the URL without user, password and query.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use reqwest::{
    Method, StatusCode, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};

use super::{
    failure::{BoxError, Failure},
    handler::Handler,
    http_client::{self, HttpClient, Redirects, Timeouts},
    outbound::{Outbound, Refusal},
    secrets::{Hidden, Secrets},
    work::{RunSettings, Work},
};
use crate::job::{Job, Shard, keys, mask_value};

const URI: &str = "http.uri";
const METHOD: &str = "http.method";
const DATA: &str = "http.data";
const CONTENT_TYPE: &str = "http.content.type";
const CONNECT_TIMEOUT: &str = "http.connect.timeout.milliseconds";
const READ_TIMEOUT: &str = "http.read.timeout.milliseconds";

/// A day. Connections with a longer timeout would be held for ever.
const MAX_TIMEOUT_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// How many characters of an error's body a failure message includes.
const MAX_ERROR_BODY: usize = 500;

/// References to secrets in one request. Each is a file that is read before every run.
const MAX_SECRETS: usize = 64;

/// Headers that are made from the request itself, or say how it is transferred.
const RESERVED_HEADERS: [&str; 9] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "expect",
    "shardingcontext",
];

/// The request of an HTTP job. References to secrets are as they were written.
#[derive(Debug, Clone)]
pub struct Http {
    url: Url,
    method: Method,
    body: Option<String>,
    content_type: Option<HeaderValue>,
    headers: Vec<(HeaderName, HeaderText)>,
    timeouts: Timeouts,
    log_only: bool,
}

/// The value of a header as it was written, with its property. It may be a secret, so it is not printed.
#[derive(Clone)]
struct HeaderText {
    key: String,
    text: String,
}

/// What is sent: the URL and the headers of [`Http`] with its secrets.
struct Request {
    url: Url,
    headers: HeaderMap,
    hidden: Hidden,
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
            Some(Ok(millis)) if (1..=MAX_TIMEOUT_MILLIS).contains(&millis) => {
                Ok(Duration::from_millis(millis))
            }
            Some(_) => {
                Err(invalid(format_args!("{key}: milliseconds, from 1 to {MAX_TIMEOUT_MILLIS}")))
            }
        };
        let content_type = prop(CONTENT_TYPE).map(HeaderValue::from_str).transpose();
        Ok(Self {
            url,
            method,
            body: prop(DATA).filter(|_| writes).map(ToOwned::to_owned),
            content_type: content_type
                .map_err(|_| invalid(format_args!("{CONTENT_TYPE} cannot be a header")))?,
            headers: headers(job)?,
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

    /// What is sent, with the secrets that the job may use.
    fn request(&self, job: &Job, secrets: &Secrets) -> Result<Request, Failure> {
        let mut hidden = Hidden::default();
        // From the text: a URL that was parsed encodes the colon of a reference in its password.
        let text = job.props.get(URI).unwrap_or_default();
        let url = hidden.keep(secrets.url(job, URI, text)?);
        let url: Url = url.parse().map_err(|_| invalid(format_args!("{URI} is not a URL")))?;
        if url.origin() != self.url.origin() {
            return Err(invalid(format_args!("{URI}: a secret cannot change the host")));
        }
        let origin = url.origin().ascii_serialization();
        let mut headers = HeaderMap::new();
        for (name, HeaderText { key, text }) in &self.headers {
            let value = hidden.keep(secrets.text(job, key, text, &origin)?);
            let mut value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| invalid(format_args!("{key}: its value cannot be a header")))?;
            value.set_sensitive(true);
            headers.append(name, value);
            if hidden.len() > MAX_SECRETS {
                let problem = format_args!("a request has at most {MAX_SECRETS} secrets");
                return Err(invalid(problem));
            }
        }
        Ok(Request { url, headers, hidden })
    }

    async fn send(
        &self,
        http_client: &HttpClient,
        sent: &Request,
        outbound: &Outbound,
        shard: &Shard,
    ) -> Result<(), Failure> {
        let context =
            HeaderValue::from_bytes(shard.context().to_json().as_bytes()).map_err(|_| {
                Failure::new("the sharding context has a character that is not allowed in a header")
                    .permanent()
            })?;
        // A header of the job may be a secret, even if it is not a reference to one.
        let has_secrets = !sent.hidden.is_empty() || !sent.headers.is_empty();
        let redirects = if has_secrets { Redirects::SameOrigin } else { Redirects::Allowed };
        let client = http_client
            .client_following(&self.url, self.timeouts, outbound, redirects)
            .map_err(not_sent)?;
        let mut request = client
            .request(self.method.clone(), sent.url.clone())
            .headers(sent.headers.clone())
            .header("shardingContext", context);
        if let Some(content_type) = &self.content_type {
            request = request.header(reqwest::header::CONTENT_TYPE, content_type);
        }
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| self.failed(error, &sent.hidden))?;
        let status = response.status();
        let answer = sent.hidden.hide(http_client::body_text(response).await);
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

    fn failed(&self, error: reqwest::Error, hidden: &Hidden) -> Failure {
        let is_refused = Refusal::in_chain(&error).is_some();
        let timed_out = if error.is_timeout() { " in time" } else { "" };
        let (method, url) = (&self.method, http_client::redacted(&self.url));
        let failure = Failure::new(format_args!(
            "{method} {url} was not answered{timed_out}: {}",
            hidden.hide(http_client::error_text(error))
        ));
        if is_refused { failure.permanent() } else { failure }
    }
}

/// The headers of `elasticjob.http.header.NAME`.
fn headers(job: &Job) -> Result<Vec<(HeaderName, HeaderText)>, Failure> {
    let of_headers = job.props.iter().filter_map(|(key, text)| {
        let name = key.strip_prefix(keys::HTTP_HEADER)?;
        (!text.is_empty()).then_some((key, name, text))
    });
    let header = |(key, name, text): (&str, &str, &str)| {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
        let parsed = parsed.filter(|name| !RESERVED_HEADERS.contains(&name.as_str()));
        let name = parsed.ok_or_else(|| {
            invalid(format_args!("{key:?}: this header cannot be set; a type is http.content.type"))
        })?;
        if text.chars().any(char::is_control) {
            return Err(invalid(format_args!("{key}: its value cannot be a header")));
        }
        Ok((name, HeaderText { key: key.to_owned(), text: text.to_owned() }))
    };
    of_headers.map(header).collect()
}

impl std::fmt::Debug for HeaderText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&mask_value(&self.key, &self.text))
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
        let http = Http::of(setting.job)?;
        let http_client = Arc::clone(&self.http_client);
        let outbound = match &self.outbound {
            Some(choose) => choose(setting.job),
            None => http_client.outbound().clone(),
        };
        // Before a secret is read for it.
        http_client::check(&outbound, &http.url).map_err(|refusal| not_sent(refusal.into()))?;
        let request = http.request(setting.job, &setting.secrets)?;
        Ok(Arc::new(HttpHandler { http, request, http_client, outbound }))
    }
}

struct HttpHandler {
    http: Http,
    request: Request,
    http_client: Arc<HttpClient>,
    outbound: Outbound,
}

#[async_trait]
impl Handler for HttpHandler {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        tokio::select! {
            result = self.http.send(&self.http_client, &self.request, &self.outbound, &shard) => result,
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

        let Http { url, method, body, content_type, headers, timeouts, log_only } =
            Http::of(&job).unwrap();

        assert_eq!((url.as_str(), method), ("https://shop.example.com/settle", Method::POST));
        assert_eq!(body.as_deref(), Some(r#"{"orders":"all"}"#));
        assert_eq!(content_type.unwrap(), "application/json");
        let Timeouts { connect, read } = timeouts;
        assert_eq!((connect.as_millis(), read.as_millis()), (1500, 2500));
        assert!(log_only && headers.is_empty());
    }
}
