//! Keeps the lease of one session: while shards run, so that it does not expire under them, and while a short session is idle, so that a run can
//! start.
//!
//! A contact with the registry extends the lease only once another request has followed it to the registry's leader. Pings do not reach the
//! leader, and a claim confirms only what was sent well before it. So with short sessions, an idle instance would find its lease too short to
//! start anything when a fire comes due or another instance dies. One keeper serves all runs of a session: they share its lease.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::run_lease::margin;
use crate::{
    registry::{Registry, Session},
    runtime::{Clock, Monotonic},
};

/// Idle sessions at least this long need no refresh: pings are a third of the timeout apart and count at most 1.25 s later, so the last ping before
/// a claim leaves half of the timeout, which is enough to start.
const LONG_SESSION: Duration = Duration::from_secs(10);

/// The runs of a session, whose lease is kept as long as there are any. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct LeaseUsers(Arc<RunCount>);

#[derive(Debug, Default)]
struct RunCount {
    running: AtomicUsize,
    began: Notify,
}

/// A run that needs the lease until it is dropped.
#[derive(Debug)]
pub(super) struct LeaseUse(Arc<RunCount>);

impl LeaseUsers {
    pub(super) fn begin(&self) -> LeaseUse {
        if self.0.running.fetch_add(1, Ordering::Relaxed) == 0 {
            self.0.began.notify_one();
        }
        LeaseUse(Arc::clone(&self.0))
    }

    fn is_any(&self) -> bool {
        self.0.running.load(Ordering::Relaxed) > 0
    }
}

impl Drop for LeaseUse {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Syncs with the leader every sixth of the timeout while shards run, and whenever the lease of a short session becomes too short to start a run.
/// Never returns.
pub(super) async fn run(registry: Arc<dyn Registry>, clock: Arc<dyn Clock>, users: LeaseUsers) {
    let mut last_renewal = Monotonic::from_start(Duration::ZERO);
    loop {
        let session = registry.session();
        let now = clock.monotonic();
        let is_used = users.is_any();
        let for_runs = is_used.then(|| next_while_running(&session, now));
        // Also while shards run: their renewals alone would leave the next fire of another job a few milliseconds too little.
        let to_start = (session.timeout() < LONG_SESSION)
            .then(|| too_short_at(&session).max(last_renewal + session.timeout() / 12));
        let at = for_runs.into_iter().chain(to_start).min();
        tokio::select! {
            biased;
            () = sleep_until(&*clock, at) => {}
            // A run has begun: from now on the lease is kept for it.
            () = users.0.began.notified(), if !is_used => continue,
        }
        // An idle long session needs nothing.
        if users.is_any() || session.timeout() < LONG_SESSION {
            last_renewal = clock.monotonic();
            renew(&*registry, &*clock, last_renewal + session.timeout() / 6).await;
        }
    }
}

/// While the lease is about to end, the last moment counts: an answer in time saves the runs.
fn next_while_running(session: &Session, now: Monotonic) -> Monotonic {
    let (next, end) = (now + session.timeout() / 6, session.deadline() - margin(session.timeout()));
    if end > now { next.min(end) } else { next }
}

fn too_short_at(session: &Session) -> Monotonic {
    let timeout = session.timeout();
    session.deadline() - (margin(timeout) * 2 + timeout / 6)
}

/// Syncs. While the registry is unreachable, a sync waits, but at most until then.
async fn renew(registry: &dyn Registry, clock: &dyn Clock, until: Monotonic) {
    tokio::select! {
        answer = registry.sync() => if let Err(error) = answer {
            tracing::debug!(%error, "lease renewal failed");
        },
        () = clock.sleep_until(until) => {}
    }
}

async fn sleep_until(clock: &dyn Clock, at: Option<Monotonic>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
