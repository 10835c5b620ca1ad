//! Group commit: units of one session that are committed at the same time share a request.
//!
//! A **unit** is one job's claim, release, mark or entry: a multi whose nodes no other waiting unit writes ([`Registry::commit_unit`]). A unit that finds
//! nothing under way is sent at once and alone, so a single fire waits for nothing. Units that come meanwhile wait for the next answer and are then
//! sent as one batch, so their number grows with the load and with the registry's own time for a request. A batch is limited, so that no unit
//! waits behind a giant; as long as full batches wait, a few of them are under way at once, so that the registry does not idle between two.
//!
//! Each unit gets its own part of the answer: see [`batch`]. If the answer is lost, the whole batch was committed or nothing of it was, and one node
//! tells which: see [`settlement`].
//!
//! Units that create ephemeral nodes name a session, and a request has one session only. So a batch contains units of one session, or units that
//! name none.
//!
//! All other requests pass straight through. A caller that awaits its unit before its next request sees its own writes in order.

mod batch;
mod settlement;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::{mpsc, oneshot};

use self::batch::{Unit, commit};
use super::{
    Registry,
    children_watch::ChildrenWatch,
    error::Error,
    limits::Limits,
    operation::{Committed, Create, ExpectedVersion, Op},
    path::{Namespace, Path},
    session::{Session, SessionId},
    stat::{Node, Stat},
    translate,
    watch::Watch,
};
use crate::runtime::Tasks;

/// What a batch may contain, unless the registry allows less.
const BATCH_LIMITS: Limits = Limits { bytes: 128 << 10, operations: 512 };
/// How many batches may be under way at once. A batch that is not full waits until none is.
const MAX_BATCHES: usize = 4;

/// Combines the units of one registry connection. Dropping it ends what it has under way.
pub struct Combiner {
    registry: Arc<dyn Registry>,
    queue: mpsc::UnboundedSender<Unit>,
    _tasks: Tasks,
}

impl Combiner {
    /// Must be called on a runtime.
    pub fn new(registry: Arc<dyn Registry>) -> Self {
        let (queue, units) = mpsc::unbounded_channel();
        let mut tasks = Tasks::new();
        tasks.spawn(run(Arc::clone(&registry), units));
        Self { registry, queue, _tasks: tasks }
    }
}

/// Units of one session, or units that name none.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Unit>,
    /// Number of batches under way.
    in_flight: usize,
}

impl Lane {
    /// The next batch to send, if one may be sent now.
    fn next_batch(&mut self, limits: Limits) -> Option<Vec<Unit>> {
        self.waiting.retain(Unit::is_awaited);
        let count = self.fitting(limits);
        let is_full = count < self.waiting.len();
        let may_send = self.in_flight == 0 || (is_full && self.in_flight < MAX_BATCHES);
        if count == 0 || !may_send {
            return None;
        }
        self.in_flight += 1;
        Some(self.waiting.drain(..count).collect())
    }

    /// How many of the waiting units, from the first, fit into one batch. The first one always does: what is too large alone is refused by the
    /// registry, which names it.
    fn fitting(&self, limits: Limits) -> usize {
        let (mut operations, mut bytes) = (0, 0);
        let fits = self.waiting.iter().take_while(|unit| {
            operations += unit.ops.len();
            bytes += unit.ops.iter().map(Op::size).sum::<usize>();
            operations <= limits.operations && bytes <= limits.bytes
        });
        fits.count().max(1).min(self.waiting.len())
    }
}

/// Sends the units until the combiner is dropped.
async fn run(registry: Arc<dyn Registry>, mut units: mpsc::UnboundedReceiver<Unit>) {
    let mut lanes: BTreeMap<Option<SessionId>, Lane> = BTreeMap::new();
    let mut in_flight = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(session) = in_flight.next() => {
                let lane = lanes.entry(session).or_default();
                lane.in_flight -= 1;
            }
            unit = units.recv() => match unit {
                Some(unit) => lanes.entry(unit.session).or_default().waiting.push_back(unit),
                None => return,
            },
        }
        while let Ok(unit) = units.try_recv() {
            lanes.entry(unit.session).or_default().waiting.push_back(unit);
        }
        let limits = BATCH_LIMITS.min(registry.limits());
        for (session, lane) in &mut lanes {
            while let Some(batch) = lane.next_batch(limits) {
                let (session, registry) = (*session, Arc::clone(&registry));
                in_flight.push(async move {
                    commit(&*registry, batch).await;
                    session
                });
            }
        }
        lanes.retain(|_, lane| lane.in_flight > 0);
    }
}

#[async_trait]
impl Registry for Combiner {
    fn namespace(&self) -> &Namespace {
        self.registry.namespace()
    }

    fn session(&self) -> Session {
        self.registry.session()
    }

    fn limits(&self) -> Limits {
        self.registry.limits()
    }

    async fn commit_unit(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let (reply, answer) = oneshot::channel();
        let session = ops.iter().find_map(translate::session_of);
        // It fails only after a panic of the task, and then the answer says so.
        let _ = self.queue.send(Unit { ops, session, reply });
        answer.await.unwrap_or(Err(Error::Closed))
    }

    async fn create(&self, node: Create) -> Result<Committed, Error> {
        self.registry.create(node).await
    }

    async fn set(
        &self,
        path: &Path,
        data: Bytes,
        expected: ExpectedVersion,
    ) -> Result<Committed, Error> {
        self.registry.set(path, data, expected).await
    }

    async fn delete(&self, path: &Path, expected: ExpectedVersion) -> Result<Committed, Error> {
        self.registry.delete(path, expected).await
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.registry.multi(ops).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.registry.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.registry.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.registry.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.registry.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        self.registry.watch(prefix).await
    }

    async fn watch_children(&self, parent: &Path) -> Result<ChildrenWatch, Error> {
        self.registry.watch_children(parent).await
    }

    async fn another_session(&self) -> Result<Option<Arc<dyn Registry>>, Error> {
        self.registry.another_session().await
    }

    fn ephemeral_room(&self) -> usize {
        self.registry.ephemeral_room()
    }

    async fn close(&self) {
        self.registry.close().await;
    }
}

impl fmt::Debug for Combiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.registry.fmt(f)
    }
}
