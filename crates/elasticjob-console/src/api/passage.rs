//! What every request goes through on its way to whoever answers it: it is answered in time, a change that was begun is brought to its end, and what was refused
//! is written down.
//!
//! A client may hang up, and after a minute it is told that it took too long; neither stops a change half way. It is carried out by a task of its own
//! ([`Errands`]), which shutdown waits for, together with what the audit says of it.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
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
use elasticjob::runtime::{Monotonic, Tasks};
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};

use super::{
    audit::{Author, Entry},
    problem::{Code, Problem},
    state::Shared,
};

/// How long a request may take, until an answer begins.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);
/// How many changes may be under way; others wait to be begun.
const MOST_AT_ONCE: usize = 1_024;
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
/// How many refusals of a user are written down in a minute.
const WRITTEN_DOWN: u32 = 10;
const MINUTE: Duration = Duration::from_mins(1);
/// How many users are remembered for it.
const MOST_REFUSED: usize = 10_000;

/// Changes that are under way, whoever still waits for them. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Errands {
    tasks: Arc<Mutex<Tasks>>,
    turns: Arc<Semaphore>,
}

impl Default for Errands {
    fn default() -> Self {
        Self { tasks: Arc::default(), turns: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }
}

impl Errands {
    /// Does it to its end, even if nobody waits for that any more. Nothing if it broke off.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        let (tell, told) = oneshot::channel();
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
            // Perhaps nobody waits for it any more.
            let _ = tell.send(work.await);
            drop(turn);
        });
        told.await.ok()
    }

    /// Waits for those that are under way; after `patience` the rest are ended.
    pub(crate) async fn finish(&self, patience: Duration) {
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        if !tasks.finish(patience).await {
            tracing::warn!("changes were under way that did not come to their end");
        }
    }
}

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

/// Refusals of each user: the first of a minute are written down, and of the others how many there were, so that nobody drowns the audit in them.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<String, Counted>>);

#[derive(Debug)]
struct Counted {
    since: Monotonic,
    count: u32,
    left_out: u64,
}

impl Refusals {
    /// One more. If it is to be written down, how many were not since the last that was.
    fn note(&self, username: &str, now: Monotonic) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_REFUSED {
            all.retain(|_, counted| now.saturating_since(counted.since) < MINUTE);
        }
        let new = || Counted { since: now, count: 0, left_out: 0 };
        let counted = all.entry(username.to_owned()).or_insert_with(new);
        if now.saturating_since(counted.since) >= MINUTE {
            (counted.since, counted.count) = (now, 0);
        }
        counted.count = counted.count.saturating_add(1);
        if counted.count > WRITTEN_DOWN {
            counted.left_out += 1;
            return None;
        }
        Some(std::mem::take(&mut counted.left_out))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn what_was_begun_comes_to_its_end_though_nobody_waits_for_it() {
        let (errands, go_on) = (Errands::default(), Arc::new(Notify::new()));
        let (tell, mut told) = oneshot::channel();
        let (begun, waits) = (Arc::new(Notify::new()), Arc::clone(&go_on));
        let begins = Arc::clone(&begun);
        let work = async move {
            begins.notify_one();
            waits.notified().await;
            tell.send("done").unwrap();
        };

        tokio::select! {
            _ = errands.run(work) => panic!("it cannot be done yet"),
            () = begun.notified() => {}
        }
        assert!(told.try_recv().is_err());
        go_on.notify_one();
        errands.finish(Duration::from_secs(10)).await;

        assert_eq!(told.try_recv(), Ok("done"));
    }

    #[test]
    fn of_many_refusals_in_a_minute_some_are_written_down_and_the_others_counted() {
        let refusals = Refusals::default();
        let at = |seconds| Monotonic::from_start(Duration::from_secs(seconds));
        let written = (0..50).filter(|second| refusals.note("ann", at(*second)).is_some()).count();

        assert_eq!(written, 10);
        assert_eq!(refusals.note("bob", at(50)), Some(0), "each has their own");
        assert_eq!(refusals.note("ann", at(60)), Some(40));
        assert_eq!(refusals.note("ann", at(61)), Some(0));
    }
}
