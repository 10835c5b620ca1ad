//! Jobs that are an HTTP request (`HTTP`).
//!
//! * **What is sent**: the property `http.method` to `http.uri`; `http.data` as its body if the method is POST, PUT or DELETE and there is any, with
//!   `http.content.type` if set. The header `shardingContext` is the sharding context as JSON.
//! * **How long it may take**: `http.connect.timeout.milliseconds` (3000) to connect, `http.read.timeout.milliseconds` (5000) until something
//!   arrives.
//! * **What counts**: a status below 400 is a success, redirects are followed. 400 and above fails the shard. The ancestor only
//!   logs it; so do we with `elasticjob.http.log.only` set to `true`.
//!
//! Messages name the address without user, password and query.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use reqwest::{Method, StatusCode, Url, header::HeaderValue};

use super::{
    failure::Failure,
    handler::Handler,
    web::{self, Limits, Web},
    work::{Setting, Work},
};
use crate::job::{Job, Shard};

const URI: &str = "http.uri";
const METHOD: &str = "http.method";
const DATA: &str = "http.data";
const CONTENT_TYPE: &str = "http.content.type";
const CONNECT_TIMEOUT: &str = "http.connect.timeout.milliseconds";
const READ_TIMEOUT: &str = "http.read.timeout.milliseconds";

/// How much of an error's answer is told.
const TOLD: usize = 500;

/// A request, as one job's configuration has it.
#[derive(Debug, Clone)]
pub struct Http {
    url: Url,
    method: Method,
    body: Option<String>,
    content_type: Option<HeaderValue>,
    limits: Limits,
    log_only: bool,
}

impl Http {
    /// The request of this job.
    pub fn of(job: &Job) -> Result<Self, Failure> {
        let prop = |key| job.props.get(key).filter(|value| !value.is_empty());
        let required =
            |key| prop(key).ok_or_else(|| wrong(format_args!("the property {key} is missing")));
        let url: Url =
            required(URI)?.parse().map_err(|error| wrong(format_args!("{URI}: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format_args!("{URI} {}: only http and https", web::shown(&url))));
        }
        let method = required(METHOD)?;
        let upper = !method.contains(|character: char| character.is_ascii_lowercase());
        let parsed = Method::from_bytes(method.as_bytes()).ok().filter(|_| upper);
        let method = parsed.ok_or_else(|| {
            wrong(format_args!("{METHOD} {method:?}: upper case, for example GET"))
        })?;
        let writes = [Method::POST, Method::PUT, Method::DELETE].contains(&method);
        let millis = |key, default| match prop(key).map(str::parse) {
            None => Ok(Duration::from_millis(default)),
            Some(Ok(millis)) if millis > 0 => Ok(Duration::from_millis(millis)),
            Some(_) => Err(wrong(format_args!("{key}: milliseconds, from 1"))),
        };
        let content_type = prop(CONTENT_TYPE).map(HeaderValue::from_str).transpose();
        Ok(Self {
            url,
            method,
            body: prop(DATA).filter(|_| writes).map(ToOwned::to_owned),
            content_type: content_type
                .map_err(|_| wrong(format_args!("{CONTENT_TYPE} cannot be a header")))?,
            limits: Limits {
                connect: millis(CONNECT_TIMEOUT, 3_000)?,
                read: millis(READ_TIMEOUT, 5_000)?,
            },
            log_only: job.props.policies().http_log_only,
        })
    }

    /// The host it goes to, for whoever decides whether it may; with the port if one is written.
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    async fn send(&self, web: &Web, shard: &Shard) -> Result<(), Failure> {
        let context =
            HeaderValue::from_bytes(shard.context().to_json().as_bytes()).map_err(|_| {
                Failure::new("the sharding context has a character no header can have").lasting()
            })?;
        let client = web.client(&self.url, self.limits)?;
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
        let answer = web::text(response).await;
        self.judge(shard, status, &answer)
    }

    fn judge(&self, shard: &Shard, status: StatusCode, answer: &str) -> Result<(), Failure> {
        if status.as_u16() < 400 {
            tracing::debug!(job = %shard.job, shard = shard.item, status = status.as_u16(), answer, "HTTP job answered");
            return Ok(());
        }
        let answer: String = answer.trim().chars().take(TOLD).collect();
        let colon = if answer.is_empty() { "" } else { ": " };
        let message =
            format!("{} {} answered {status}{colon}{answer}", self.method, web::shown(&self.url));
        if self.log_only {
            tracing::warn!(job = %shard.job, shard = shard.item, status = status.as_u16(), message, "HTTP job answered with an error");
            return Ok(());
        }
        Err(Failure::new(message))
    }

    fn failed(&self, error: reqwest::Error) -> Failure {
        let timed_out = if error.is_timeout() { " in time" } else { "" };
        let (method, url) = (&self.method, web::shown(&self.url));
        Failure::new(format_args!(
            "{method} {url} was not answered{timed_out}: {}",
            web::told(error)
        ))
    }
}

fn wrong(problem: std::fmt::Arguments<'_>) -> Failure {
    Failure::new(problem).lasting()
}

/// HTTP requests, registered for jobs of the type `HTTP`.
#[derive(Debug, Clone)]
pub struct HttpWork(Arc<Web>);

impl HttpWork {
    /// Requests go out this way.
    pub fn new(web: Arc<Web>) -> Self {
        Self(web)
    }
}

impl Work for HttpWork {
    fn prepare(&self, setting: &Setting<'_>) -> Result<Arc<dyn Handler>, Failure> {
        Ok(Arc::new(HttpHandler { http: Http::of(setting.job)?, web: Arc::clone(&self.0) }))
    }
}

struct HttpHandler {
    http: Http,
    web: Arc<Web>,
}

#[async_trait]
impl Handler for HttpHandler {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        tokio::select! {
            result = self.http.send(&self.web, &shard) => result,
            // The request is dropped, and the connection with it; whether the server goes on is the server's business.
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

        let Http { url, method, body, content_type, limits, log_only } = Http::of(&job).unwrap();

        assert_eq!((url.as_str(), method), ("https://shop.example.com/settle", Method::POST));
        assert_eq!(body.as_deref(), Some(r#"{"orders":"all"}"#));
        assert_eq!(content_type.unwrap(), "application/json");
        let Limits { connect, read } = limits;
        assert_eq!((connect.as_millis(), read.as_millis()), (1500, 2500));
        assert!(log_only);
    }
}
