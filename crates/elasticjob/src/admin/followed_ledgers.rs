//! Watches the ledgers of the jobs whose shards clients look at.
//!
//! Every fire changes the ledger of its job, and most of that no client looks at. So a ledger is watched from when its shards were asked for until
//! they have not been asked for in a while. A client that is told of a change asks again.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::Notify;

use super::{handle::Admin, ledger_changes::LedgerChanges};
use crate::{job::JobName, runtime::Monotonic};

/// How long a ledger is watched after its shards were asked for.
const RETENTION: Duration = Duration::from_hours(1);

/// The jobs whose shards were asked for, each with until when its ledger is watched.
#[derive(Debug, Default)]
pub(super) struct LedgerRequests {
    until: Mutex<BTreeMap<JobName, Monotonic>>,
    added: Notify,
}

impl LedgerRequests {
    pub(super) fn add(&self, job: &JobName, now: Monotonic) {
        if self.lock().insert(job.clone(), now + RETENTION).is_none() {
            self.added.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobName, Monotonic>> {
        // No code panics while it holds this lock.
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Following<'a> = Pin<Box<dyn Future<Output = (JobName, Option<LedgerChanges>)> + Send + 'a>>;

/// Watches the ledgers that are asked for.
pub(super) struct FollowedLedgers<'a> {
    admin: &'a Admin,
    requests: &'a LedgerRequests,
    jobs: BTreeSet<JobName>,
    following: FuturesUnordered<Following<'a>>,
}

impl<'a> FollowedLedgers<'a> {
    pub(super) fn new(admin: &'a Admin, requests: &'a LedgerRequests) -> Self {
        let (jobs, following) = (BTreeSet::new(), FuturesUnordered::new());
        Self { admin, requests, jobs, following }
    }

    /// Waits until one of the ledgers changes. Cancel safe.
    pub(super) async fn next(&mut self) -> JobName {
        loop {
            let wanted: Vec<JobName> = self.requests.lock().keys().cloned().collect();
            for job in wanted {
                if self.jobs.insert(job.clone()) {
                    self.follow(job, None);
                }
            }
            tokio::select! {
                () = self.requests.added.notified() => {}
                Some((job, ledger)) = self.following.next() => match ledger {
                    Some(ledger) => {
                        self.follow(job.clone(), Some(ledger));
                        return job;
                    }
                    None => drop(self.jobs.remove(&job)),
                },
            }
        }
    }

    fn follow(&self, job: JobName, ledger: Option<LedgerChanges>) {
        let (admin, requests) = (self.admin, self.requests);
        self.following.push(Box::pin(async move {
            let ledger = next_change(admin, requests, &job, ledger).await;
            (job, ledger)
        }));
    }
}

/// Waits for a change of a ledger; `None` if it is no longer asked for or cannot be watched: it is watched again when it is asked for again.
async fn next_change(
    admin: &Admin,
    requests: &LedgerRequests,
    job: &JobName,
    ledger: Option<LedgerChanges>,
) -> Option<LedgerChanges> {
    let changed = async {
        let mut ledger = match ledger {
            Some(ledger) => ledger,
            None => admin.ledger_changes(job).await?,
        };
        ledger.next().await.map(|()| ledger)
    };
    let expired = async {
        loop {
            let until = requests.lock().get(job).copied();
            match until.filter(|until| *until > admin.clock.monotonic()) {
                Some(until) => admin.clock.sleep_until(until).await,
                None => return,
            }
        }
    };
    let changed = tokio::select! {
        changed = changed => changed,
        () = expired => {
            requests.lock().remove(job);
            return None;
        }
    };
    match changed {
        Ok(ledger) => Some(ledger),
        Err(error) => {
            tracing::debug!(%job, %error, "ledger cannot be watched");
            requests.lock().remove(job);
            None
        }
    }
}
