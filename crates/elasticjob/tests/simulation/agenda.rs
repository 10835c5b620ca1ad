//! What will happen, and when.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use elasticjob::{registry::SessionId, runtime::Monotonic};

/// Something that happens to the cluster.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// The server ends a session it has not heard of, if that is still so.
    Expire { node: usize, session: SessionId, silence: u64 },
    /// A process has died of itself.
    Crashed { node: usize },
    /// A connection is repaired.
    Heal { node: usize },
    /// A process goes on.
    Thaw { node: usize },
    /// A slow line is quick again, and one that was late in telling is not.
    Recover { node: usize },
    /// A process begins in this place.
    Start { slot: usize },
    /// A process is asked to leave.
    Stop { node: usize },
    /// Whatever the dice say.
    Mischief,
    /// A disabled job, shard or server is enabled again.
    Enable { job: usize },
    /// No more faults.
    Calm,
    /// Everybody has to have come to rest.
    Settled,
    /// It is over.
    End,
}

/// What will happen. Clones are the same agenda.
#[derive(Debug, Clone, Default)]
pub(super) struct Agenda(Arc<Shared>);

#[derive(Debug, Default)]
struct Acts {
    count: u64,
    by_time: BTreeMap<(Monotonic, u64), Act>,
}

#[derive(Debug, Default)]
struct Shared {
    acts: Mutex<Acts>,
    changed: Notify,
}

impl Agenda {
    /// Later ones of the same instant happen later.
    pub(super) fn add(&self, then: Monotonic, act: Act) {
        let mut acts = self.lock();
        acts.count += 1;
        let number = acts.count;
        acts.by_time.insert((then, number), act);
        self.0.changed.notify_one();
    }

    pub(super) fn next_at(&self) -> Option<Monotonic> {
        self.lock().by_time.keys().next().map(|(then, _)| *then)
    }

    pub(super) fn take(&self, now: Monotonic) -> Option<Act> {
        let mut acts = self.lock();
        let entry = acts.by_time.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Acts> {
        self.0.acts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
