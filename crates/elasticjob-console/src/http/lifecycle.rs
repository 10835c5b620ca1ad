//! Middleware around every request: it receives the body, enforces the response timeout, runs changes to completion, and audits refused requests.
//!
//! The whole request has arrived before anything is done for it: a client that sends slowly holds nothing that others need.
//!
//! A client may disconnect, and after one minute it gets a timeout response; neither interrupts a change. The change runs as a task of its own
//! ([`DetachedChanges`](crate::http::detached_changes::DetachedChanges)) that includes writing its audit entry; shutdown waits for these tasks.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    extract::{ConnectInfo, MatchedPath, Request, State},
    http::{Method, request::Parts},
    middleware::Next,
    response::Response,
};
use serde_json::json;

use super::{
    body::{LargeBody, Sender},
    client_network::ClientNetwork,
    connections::{ConnectionSlot, Lane},
    health,
    problem::{Code, Problem},
    server::Peer,
    state::AppState,
};
use crate::{
    audit::trail::{Author, Entry},
    auth::caller::has_known_credentials,
    legacy::ResponseFormat,
};

/// Limit until the response begins; streams may last longer.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Seconds after which a client should try again that found no free connection.
const RETRY_AFTER: u64 = 5;
/// GETs that change something: the legacy trigger, and the doctor, which measures clocks by writing a node.
const CHANGING_GETS: [&str; 2] = ["/api/jobs/{job}/trigger", "/api/v1/r/{registry}/doctor"];

/// Non-GET requests whose refusals are not audited here: they only read, or their handler writes the audit entry itself.
const NOT_AUDITED_HERE: [&str; 8] = [
    "/api/v1/r/{registry}/jobs/{job}/config/plan",
    "/api/v1/plan",
    "/api/v1/login",
    "/api/v1/logout",
    "/api/login",
    "/api/event-trace/execution",
    "/api/event-trace/status",
    "/api/registry-center/connect",
];

/// What is known about the audit of one request. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestAudit(Arc<RequestAuditInner>);

#[derive(Debug, Default)]
struct RequestAuditInner {
    author: OnceLock<Author>,
    is_written: AtomicBool,
}

impl RequestAudit {
    pub(crate) fn set_author(&self, author: Author) {
        // Authenticating twice yields the same author.
        let _ = self.0.author.set(author);
    }

    /// The handler has written the audit entry of this request.
    pub(crate) fn mark_written(&self) {
        self.0.is_written.store(true, Ordering::Relaxed);
    }
}

/// Receives and runs a request.
pub(crate) async fn run_request(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let format = ResponseFormat::of(&parts);
    let client = match admit(&app, &parts) {
        Ok(client) => client,
        Err(problem) => return format.refusal(problem),
    };
    let sender = Sender { client, is_known: has_known_credentials(&parts, &app) };
    let body = match app.bodies.receive(body, sender).await {
        Ok(body) => body,
        Err(problem) => return format.refusal(problem),
    };
    if connection(&parts).is_some_and(|connection| !connection.begin_work()) {
        return format.refusal(too_many_connections());
    }
    let request = Request::from_parts(parts, Body::from(body.bytes));
    run_received(app, request, body.large, format, next).await
}

/// Decides by the head whether a request is served; returns the client for which it counts.
fn admit(app: &AppState, parts: &Parts) -> Result<Option<ClientNetwork>, Problem> {
    let Some(ConnectInfo(Peer(peer))) = parts.extensions.get::<ConnectInfo<Peer>>() else {
        return Ok(None);
    };
    let client = app.proxies.source(peer.ip(), &parts.headers).client;
    let Some(connection) = connection(parts) else { return Ok(client) };
    let is_admitted = match connection.lane {
        Lane::Regular => client.is_none_or(|client| connection.assign_to(client)),
        Lane::Reserve => false,
    };
    if is_admitted || health::is_probe(parts.uri.path()) {
        return Ok(client);
    }
    Err(too_many_connections())
}

fn connection(parts: &Parts) -> Option<&Arc<ConnectionSlot>> {
    parts.extensions.get()
}

fn too_many_connections() -> Problem {
    Problem::new(Code::TooManyRequests, "too many connections are open from this address, or in total")
        .with_hint("close some; if a proxy is in front, name it in trustedProxies; limits in the configuration file has the numbers")
        .with_retry_after(RETRY_AFTER)
}

/// Runs a request that has arrived, and answers with a timeout problem if it takes too long.
async fn run_received(
    app: AppState,
    mut request: Request,
    large_body: Option<LargeBody>,
    format: ResponseFormat,
    next: Next,
) -> Response {
    let request_audit = RequestAudit::default();
    request.extensions_mut().insert(request_audit.clone());
    let info = RequestInfo::new(&request);
    let is_change = info.is_change;
    let (clock, detached_changes) = (Arc::clone(&app.clock), app.detached_changes.clone());
    let work = async move {
        let response = next.run(request).await;
        drop(large_body);
        if let Some(problem) = response.extensions().get::<Problem>() {
            info.audit_refusal(&app, &request_audit, problem);
        }
        // A change is acknowledged only after its audit entry is on disk.
        if is_change || app.audit.has_unwritten() {
            app.audit.flush().await;
        }
        response
    };
    let response = async {
        if !is_change {
            return work.await;
        }
        let panicked = || format.refusal(Problem::new(Code::Internal, "the change was aborted"));
        detached_changes.run(work).await.unwrap_or_else(panicked)
    };
    tokio::select! {
        response = response => response,
        () = clock.sleep_until(clock.monotonic() + RESPONSE_TIMEOUT) => format.refusal(Problem::new(
            Code::TimedOut,
            "the request took too long",
        ).with_hint("a change that has started is still completed: check the result before you retry")),
    }
}

struct RequestInfo {
    /// The request may change something.
    is_change: bool,
    /// A refusal of this request is audited only if the caller lacked the right.
    is_read: bool,
    method: Method,
    path: String,
}

impl RequestInfo {
    fn new(request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let method = request.method().clone();
        let is_change = !method.is_safe() || CHANGING_GETS.contains(&route);
        let is_read = !is_change || NOT_AUDITED_HERE.contains(&route);
        Self { is_change, is_read, method, path: request.uri().path().to_owned() }
    }

    /// Audits a request that was not permitted, or a change that failed, unless the handler has audited it already.
    fn audit_refusal(&self, app: &AppState, request_audit: &RequestAudit, problem: &Problem) {
        let is_notable = !self.is_read || matches!(problem.code, Code::Forbidden | Code::Csrf);
        let is_written = request_audit.0.is_written.load(Ordering::Relaxed);
        let Some(author) = request_audit.0.author.get().filter(|_| is_notable && !is_written)
        else {
            return;
        };
        let Some(suppressed) = app.refusals.record(&author.username, app.clock.monotonic()) else {
            return;
        };
        let mut entry = Entry::new(author.clone(), app.clock.now(), "refused");
        let registry = self.path.strip_prefix("/api/v1/r/").and_then(|rest| rest.split('/').next());
        let registry = registry.and_then(|name| app.registries.get(name));
        entry.registry = registry.map(|registry| registry.name.clone());
        entry.target = Some(self.path.clone());
        entry.request = json!({ "method": self.method.as_str(), "code": problem.code });
        if suppressed > 0 {
            entry.result = json!({ "leftOut": suppressed });
        }
        entry.problem = Some(problem.detail.clone());
        app.audit.add(entry);
    }
}
