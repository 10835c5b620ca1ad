//! What every request goes through on its way to whoever answers it: it is answered in time, and a change that was begun is brought to its end.
//!
//! A client may hang up, and after a minute it is told that it took too long; neither stops a change half way. It is carried out by a task of its own
//! ([`Errands`]), which shutdown waits for, together with what the audit says of it.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use elasticjob::runtime::Tasks;
use tokio::sync::{Semaphore, oneshot};

use super::{
    problem::{Code, Problem},
    state::Shared,
};

/// How long a request may take, until an answer begins.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);
/// How many changes may be under way; others wait to be begun.
const MOST_AT_ONCE: usize = 1_024;
/// GETs that change something: the ancestor's trigger, and the examination that measures clocks by a node it writes.
const GETS_THAT_CHANGE: [&str; 2] = ["/api/jobs/{job}/trigger", "/api/v1/r/{registry}/doctor"];

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

/// Answers in time, or says that there is no answer yet.
pub(crate) async fn pass(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let changes = changes(&request);
    let (clock, errands) = (Arc::clone(&shared.clock), shared.errands.clone());
    let work = async move {
        let answer = next.run(request).await;
        // What was changed is told once it is written down.
        if changes || shared.audit.is_behind() {
            shared.audit.keep().await;
        }
        answer
    };
    let answer = async {
        if !changes {
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

/// Whether a request may change something.
fn changes(request: &Request) -> bool {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    !request.method().is_safe() || path.is_some_and(|path| GETS_THAT_CHANGE.contains(&path))
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
}
