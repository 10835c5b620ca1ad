//! The schedule of a simulation: actions on the cluster, ordered by time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use elasticjob::{
    registry::{Path, SessionId},
    runtime::Monotonic,
};

/// An action on the simulated cluster.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// The server ends a session, unless it has heard from the process since the silence with this number began.
    Expire { node: usize, session: SessionId, silence: u64 },
    /// A process crashed during a request.
    Crashed { node: usize },
    /// A cut connection is repaired.
    Heal { node: usize },
    /// A frozen process continues.
    Thaw { node: usize },
    /// A slow connection becomes fast again, and notifications are no longer held back.
    Recover { node: usize },
    /// The wall clock of this slot is right again.
    SetClock { slot: usize },
    /// The registry's clock is right again, and so are those of all slots.
    SetAllClocks,
    /// A process starts at the address of this slot.
    Start { slot: usize },
    /// A process is shut down gracefully.
    Stop { node: usize },
    /// All processes are killed at once.
    KillAll,
    /// A random fault, or a change by an operator.
    InjectFault,
    /// A process is killed if some shards of its run have ended and others have not.
    KillInMidRun,
    /// Another program writes into the nodes of a job.
    ForeignWrite,
    /// A hostile configuration is stored.
    StoreHostileConfig,
    /// The configuration of a job is valid again.
    MendConfig { job: usize },
    /// The unreadable pages of a job are reset.
    ResetShards { job: usize },
    /// A random node leaves a job while its process lives on.
    LeaveJob,
    /// A node joins the job again that it has left.
    Rejoin { node: usize },
    /// Nothing of this node may be left in the job that it has left.
    CheckLeft { node: usize },
    /// A console deletes a node that is in use, or another program creates one where none is expected.
    MisuseConsole,
    /// Such a node is deleted.
    DeleteNote { path: Path },
    /// An operator triggers a job, or cancels a run.
    TriggerOrCancel,
    /// A disabled job is enabled again, with its shards and servers.
    Enable { job: usize },
    /// The fault phase ends.
    EndFaults,
    /// The cluster must have settled by now.
    ConfigDecision,
    /// The simulation ends.
    End,
}

/// The actions still to come. Clones share the same queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Schedule(Arc<Inner>);

#[derive(Debug, Default)]
struct Queue {
    count: u64,
    by_time: BTreeMap<(Monotonic, u64), Action>,
}

#[derive(Debug, Default)]
struct Inner {
    queue: Mutex<Queue>,
    changed: Notify,
}

impl Schedule {
    /// Actions for the same instant are performed in the order in which they were added.
    pub(super) fn add(&self, then: Monotonic, action: Action) {
        let mut queue = self.lock();
        queue.count += 1;
        let number = queue.count;
        queue.by_time.insert((then, number), action);
        self.0.changed.notify_one();
    }

    pub(super) fn next_at(&self) -> Option<Monotonic> {
        self.lock().by_time.keys().next().map(|(then, _)| *then)
    }

    /// Removes and returns the next action if it is due.
    pub(super) fn take_due(&self, now: Monotonic) -> Option<Action> {
        let mut queue = self.lock();
        let entry = queue.by_time.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
