//! What every request goes through on its way to whoever answers it: it is answered in time, a change that was begun is brought to its end, and what was refused
//! is written down.
//!
//! A client may hang up, and after a minute it is told that it took too long; neither stops a change half way. It is carried out by a task of its own
//! ([`Errands`](crate::http::detached_changes::Errands)), which shutdown waits for, together with what the audit says of it.

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
    state::Shared,
};
use crate::audit::trail::{Author, Entry};

/// How long a request may take, until an answer begins.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);
/// GETs that change something: the ancestor's trigger, and the examination that measures clocks by a node it writes.
const GETS_THAT_CHANGE: [&str; 2] = ["/api/jobs/{job}/trigger", "/api/v1/r/{registry}/doctor"];

/// Requests that are no GET, and look at something or are written down where they are answered.
const POSTS_THAT_LOOK: [&str; 8] = [
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
pub(crate) struct Trail(Arc<Met>);

#[derive(Debug, Default)]
struct Met {
    author: OnceLock<Author>,
    is_written: AtomicBool,
}

impl Trail {
    /// Whoever asks is this one.
    pub(crate) fn met(&self, author: Author) {
        // It is the same one, however often they are recognised.
        let _ = self.0.author.set(author);
    }

    /// What they did stands in the audit.
    pub(crate) fn written(&self) {
        self.0.is_written.store(true, Ordering::Relaxed);
    }
}

/// Answers in time, or says that there is no answer yet.
pub(crate) async fn pass(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let trail = Trail::default();
    request.extensions_mut().insert(trail.clone());
    let errand = Errand::of(&request);
    let is_change = errand.is_change;
    let (clock, errands) = (Arc::clone(&shared.clock), shared.errands.clone());
    let work = async move {
        let answer = next.run(request).await;
        if let Some(problem) = answer.extensions().get::<Problem>() {
            errand.refused(&shared, &trail, problem);
        }
        // What was changed is told once it is written down.
        if is_change || shared.audit.is_behind() {
            shared.audit.keep().await;
        }
        answer
    };
    let answer = async {
        if !is_change {
            return work.await;
        }
        let broke_off = || Problem::new(Code::Internal, "it broke off").into_response();
        errands.run(work).await.unwrap_or_else(broke_off)
    };
    tokio::select! {
        answer = answer => answer,
        () = clock.sleep_until(clock.monotonic() + ANSWERED_WITHIN) => Problem::new(
            Code::TimedOut,
            "that took too long; hint: what was begun is brought to its end all the same: look before you ask again",
        )
        .into_response(),
    }
}

/// What somebody wants, as far as the request says.
struct Errand {
    /// Whether it may change something.
    is_change: bool,
    /// Whether it is said to look at something.
    is_look: bool,
    method: Method,
    path: String,
}

impl Errand {
    fn of(request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let method = request.method().clone();
        let is_change = !method.is_safe() || GETS_THAT_CHANGE.contains(&route);
        let is_look = !is_change || POSTS_THAT_LOOK.contains(&route);
        Self { is_change, is_look, method, path: request.uri().path().to_owned() }
    }

    /// Writes down that somebody was not let, or what they wanted to change came to nothing, if that is not written down already.
    fn refused(&self, shared: &Shared, trail: &Trail, problem: &Problem) {
        let is_of_note = !self.is_look || matches!(problem.code, Code::Forbidden | Code::Csrf);
        let is_written = trail.0.is_written.load(Ordering::Relaxed);
        let Some(author) = trail.0.author.get().filter(|_| is_of_note && !is_written) else {
            return;
        };
        let Some(left_out) = shared.refusals.note(&author.username, shared.clock.monotonic())
        else {
            return;
        };
        let mut entry = Entry::by(author.clone(), shared.clock.now(), "refused");
        let registry = self.path.strip_prefix("/api/v1/r/").and_then(|it| it.split('/').next());
        let registry = registry.and_then(|name| shared.registries.get(name));
        entry.registry = registry.map(|place| place.name.clone());
        entry.target = Some(self.path.clone());
        entry.asked = json!({ "method": self.method.as_str(), "code": problem.code });
        if left_out > 0 {
            entry.result = json!({ "leftOut": left_out });
        }
        entry.problem = Some(problem.detail.clone());
        shared.audit.add(entry);
    }
}
