//! What every request goes through on its way to whoever answers it: it is answered in time, a change that was begun is brought to its end, and what was refused
//! is written down.
//!
//! A client may hang up, and after a minute it is told that it took too long; neither stops a change half way. It is carried out by a task of its own
//! ([`DetachedChanges`](crate::http::detached_changes::DetachedChanges)), which shutdown waits for, together with what the audit says of it.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::{MatchedPath, Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::{
    problem::{Code, Problem},
    state::AppState,
};
use crate::audit::trail::{Author, Entry};

/// How long a request may take, until an answer begins.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// GETs that change something: the ancestor's trigger, and the examination that measures clocks by a node it writes.
const CHANGING_GETS: [&str; 2] = ["/api/jobs/{job}/trigger", "/api/v1/r/{registry}/doctor"];

/// Requests that are no GET, and look at something or are written down where they are answered.
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

/// What became known of a request on its way. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestAudit(Arc<RequestAuditInner>);

#[derive(Debug, Default)]
struct RequestAuditInner {
    author: OnceLock<Author>,
    is_written: AtomicBool,
}

impl RequestAudit {
    /// Whoever asks is this one.
    pub(crate) fn set_author(&self, author: Author) {
        // It is the same one, however often they are recognised.
        let _ = self.0.author.set(author);
    }

    /// What they did stands in the audit.
    pub(crate) fn mark_written(&self) {
        self.0.is_written.store(true, Ordering::Relaxed);
    }
}

/// Answers in time, or says that there is no answer yet.
pub(crate) async fn run_request(
    State(app): State<AppState>,
    mut request: Request,
    next: Next,
) -> Response {
    let request_audit = RequestAudit::default();
    request.extensions_mut().insert(request_audit.clone());
    let info = RequestInfo::new(&request);
    let is_change = info.is_change;
    let (clock, detached_changes) = (Arc::clone(&app.clock), app.detached_changes.clone());
    let work = async move {
        let response = next.run(request).await;
        if let Some(problem) = response.extensions().get::<Problem>() {
            info.audit_refusal(&app, &request_audit, problem);
        }
        // What was changed is told once it is written down.
        if is_change || app.audit.has_unwritten() {
            app.audit.flush().await;
        }
        response
    };
    let response = async {
        if !is_change {
            return work.await;
        }
        let panicked = || Problem::new(Code::Internal, "it broke off").into_response();
        detached_changes.run(work).await.unwrap_or_else(panicked)
    };
    tokio::select! {
        response = response => response,
        () = clock.sleep_until(clock.monotonic() + RESPONSE_TIMEOUT) => Problem::new(
            Code::TimedOut,
            "that took too long; hint: what was begun is brought to its end all the same: look before you ask again",
        )
        .into_response(),
    }
}

/// What somebody wants, as far as the request says.
struct RequestInfo {
    /// Whether it may change something.
    is_change: bool,
    /// Whether it is said to look at something.
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

    /// Writes down that somebody was not let, or what they wanted to change came to nothing, if that is not written down already.
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
