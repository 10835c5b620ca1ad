//! Registering at a gate, waiting for the other shards, acquiring the latch, clearing the gate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::registrations::{GateMirror, Registration, has_moved_on, uncounted};
use crate::{
    coordination::{
        latch::{self, HeldLatch},
        ledger::LedgerPage,
        tree::{JobTree, ShardNode},
    },
    job::RunId,
    registry::{Create, Error, Event, ExpectedVersion, Op, Path, Registry, Watch, Zxid},
    runtime::{CancelReason, CancelToken, Clock, Monotonic},
};

/// How often a write is tried when other instances write at the same time.
const MAX_TRIES: usize = 8;
/// First interval at which the nodes that the watch does not cover are read, disabled shards and the ledger; it doubles each time.
const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longest interval of that poll.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long to queue for the latch before checking again whether it is still needed.
const LATCH_TIMEOUT: Duration = Duration::from_secs(2);
/// How much longer than the listener's timeout the other instances wait for the gate to be cleared.
const CLEARING_MARGIN: Duration = Duration::from_secs(5);
/// Minimum time for which Java registrations are kept. A Java instance polls for its own registration after creating it, and polls for ever if
/// the registration is already deleted; after that it sleeps, and is not notified of anything that happened before.
const JAVA_POLL_TIME: Duration = Duration::from_millis(500);
/// Additional time for each Java shard: a Java instance polls for its shards one after the other.
const JAVA_POLL_TIME_PER_SHARD: Duration = Duration::from_millis(5);
/// Timeout of deleting registrations.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

/// One of the two gates of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Passed before the first shard runs.
    Started,
    /// Passed after the last shard has ended.
    Completed,
}

/// The shards with which an instance arrives at a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    pub run: RunId,
    pub due_at: Timestamp,
    /// The shards of this instance.
    pub shards: Vec<u32>,
    /// Shard count of the job. Disabled shards are not waited for.
    pub total: u32,
}

/// Why the shards did not all pass the gate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BarrierError {
    /// Some shards did not register in time.
    #[error(
        "{gate}: not all shards registered within {timeout:?}, missing: {}; does every instance of the job have this listener, and is none of them stuck?",
        Shards(missing)
    )]
    TimedOut { gate: Gate, timeout: Duration, missing: BTreeSet<u32> },
    /// All shards registered, but the instance that held the latch did not clear the gate in time.
    #[error(
        "{gate}: all shards registered, but the instance that calls the listener did not clear the gate within {timeout:?}"
    )]
    NotCleared { gate: Gate, timeout: Duration },
    /// Some shards will not register: they have finished this fire, or are at a later one.
    #[error("{gate}: {} continued without waiting", Shards(shards))]
    MovedOn { gate: Gate, shards: BTreeSet<u32> },
    /// Another instance cleared the gate too early.
    #[error(
        "{gate}: another instance cleared the gate before {} registered; does a Java instance have a shorter timeout than this one?",
        Shards(missing)
    )]
    ClearedEarly { gate: Gate, missing: BTreeSet<u32> },
    #[error("the job was removed")]
    JobRemoved,
    /// Other instances wrote at the same time, at every try.
    #[error("{gate}: cannot update the gate, other instances wrote to it at every try")]
    Contended { gate: Gate },
    #[error("waiting for the other shards was cancelled: {0}")]
    Cancelled(CancelReason),
    #[error("waiting for the other shards failed")]
    Registry(#[from] Error),
}

/// The two gates of one job.
#[derive(Debug, Clone)]
pub struct Barrier {
    pub registry: Arc<dyn Registry>,
    /// Measures the timeouts.
    pub clock: Arc<dyn Clock>,
    pub tree: JobTree,
}

/// A registered arrival that waits for the other shards. If the wait fails, it must be [withdrawn](GateWaiter::withdraw).
#[derive(Debug)]
pub struct GateWaiter {
    barrier: Barrier,
    gate: Gate,
    arrival: Arrival,
    ticket: u128,
    timeout: Duration,
    deadline: Monotonic,
    watch: Watch,
    mirror: GateMirror,
    /// The shards to wait for.
    expected: BTreeSet<u32>,
    /// The zxid at which each shard got its present owner.
    assigned: BTreeMap<u32, Zxid>,
    /// Expected shards that are not registered for this run, as last read.
    uncounted: BTreeSet<u32>,
    /// All expected shards were registered, as last read.
    complete: bool,
}

/// All shards are registered, and this instance holds the latch: the caller has to call the listener and then [finish](ListenerTurn::finish). The other
/// instances wait meanwhile, so the listener needs a timeout.
#[derive(Debug)]
#[must_use = "the other instances wait until the gate is cleared"]
pub struct ListenerTurn {
    barrier: Barrier,
    gate: Gate,
    run: RunId,
    latch: HeldLatch,
    /// The registrations that existed when the latch was acquired, by name and creation zxid.
    counted: BTreeSet<(String, Zxid)>,
    /// The gate must not be cleared before this time.
    keep_until: Monotonic,
}

impl Gate {
    fn root(self, tree: &JobTree) -> Path {
        match self {
            Gate::Started => tree.started(),
            Gate::Completed => tree.completed(),
        }
    }

    fn latch(self, tree: &JobTree) -> Path {
        match self {
            Gate::Started => tree.started_latch(),
            Gate::Completed => tree.completed_latch(),
        }
    }
}

impl Arrival {
    fn has_made(&self, registration: &Registration) -> bool {
        let is_own = registration.shard().is_some_and(|shard| self.shards.contains(&shard));
        is_own && registration.has_run_id(&self.run)
    }
}

impl Barrier {
    /// Registers the shards of `arrival` at the gate. Existing registrations of these shards were left by former owners and are replaced.
    ///
    /// `timeout` applies to the wait for the other shards, and then again to the call of the listener.
    pub async fn register(
        &self,
        gate: Gate,
        arrival: Arrival,
        ticket: u128,
        timeout: Duration,
    ) -> Result<GateWaiter, BarrierError> {
        let deadline = self.clock.monotonic() + timeout;
        let (root, latch) = (gate.root(&self.tree), gate.latch(&self.tree));
        let mut waiter = GateWaiter {
            watch: self.registry.watch(&self.tree.guarantee()).await?,
            mirror: GateMirror::new(root, latch),
            expected: (0..arrival.total).collect(),
            assigned: BTreeMap::new(),
            uncounted: BTreeSet::new(),
            complete: false,
            barrier: self.clone(),
            gate,
            arrival,
            ticket,
            timeout,
            deadline,
        };
        waiter.read_snapshot().await?;
        waiter.register().await?;
        // Read only after registering: a shard that is reassigned later than this may be registered by an owner other than the one read here.
        waiter.assigned = self.read_assigned(waiter.arrival.total).await?;
        let all = waiter.expected.clone();
        waiter.exclude_disabled(&all).await?;
        Ok(waiter)
    }

    /// The zxid at which each shard got its present owner.
    async fn read_assigned(&self, total: u32) -> Result<BTreeMap<u32, Zxid>, Error> {
        let owners = (0..total).map(|shard| async move {
            let owner = self.registry.exists(&self.tree.shard(shard, ShardNode::Owner)).await?;
            Ok(owner.map(|owner| (shard, owner.changed)))
        });
        let owners: Vec<Option<(u32, Zxid)>> = try_join_all(owners).await?;
        Ok(owners.into_iter().flatten().collect())
    }

    /// The registrations at a gate; `None` if the gate is clear.
    async fn read_registrations(&self, gate: Gate) -> Result<Option<Vec<Registration>>, Error> {
        let root = gate.root(&self.tree);
        let Some(names) = self.registry.children(&root).await? else { return Ok(None) };
        let reads = names.into_iter().map(|name| async {
            let node = self.registry.get(&child(&root, &name)).await?;
            Ok(node.map(|node| Registration { name, data: node.data, created: node.stat.created }))
        });
        let registrations: Vec<Option<Registration>> = try_join_all(reads).await?;
        Ok(Some(registrations.into_iter().flatten().collect()))
    }

    /// Deletes the registrations of this arrival.
    async fn deregister(&self, gate: Gate, arrival: &Arrival) -> Result<(), BarrierError> {
        let root = gate.root(&self.tree);
        for _ in 0..MAX_TRIES {
            let Some(registrations) = self.read_registrations(gate).await? else {
                return Ok(());
            };
            let (own, others): (Vec<_>, Vec<_>) =
                registrations.iter().partition(|registration| arrival.has_made(registration));
            if own.is_empty() {
                return Ok(());
            }
            let own = own.into_iter().map(|registration| child(&root, &registration.name));
            let mut ops: Vec<Op> = own.map(delete).collect();
            if others.is_empty() {
                ops.push(delete(root.clone()));
            }
            match self.registry.multi(ops).await {
                Ok(_) => return Ok(()),
                // A registration was created or deleted since the gate was read: read again.
                Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(BarrierError::Contended { gate })
    }

    /// The operation that makes a transaction fail if the job was removed.
    fn check_job(&self) -> Op {
        Op::Check { path: self.tree.config(), expected: ExpectedVersion::Any }
    }
}

impl GateWaiter {
    /// Waits until every enabled shard is registered. `Some` if this instance has to call the listener; `None` if another instance has called it
    /// and cleared the gate.
    pub async fn wait(
        &mut self,
        cancel: &CancelToken,
    ) -> Result<Option<ListenerTurn>, BarrierError> {
        let clock = Arc::clone(&self.barrier.clock);
        // The first poll is immediate: an instance that is out of step with the others must notice it soon, or it would never be in step again.
        let (mut next_poll, mut interval) = (clock.monotonic(), FIRST_POLL_INTERVAL);
        loop {
            self.drain();
            if self.watch.is_current()
                && let Some(decision) = self.decide().await?
            {
                return Ok(decision);
            }
            let now = clock.monotonic();
            if now >= self.deadline {
                return Err(self.timeout_error());
            }
            if now >= next_poll {
                (next_poll, interval) = (now + interval, (interval * 2).min(MAX_POLL_INTERVAL));
                self.check_missing().await?;
                continue;
            }
            tokio::select! {
                biased;
                event = self.watch.next() => match event {
                    Some(event) => self.mirror.apply(&event),
                    None => return Err(Error::Closed.into()),
                },
                () = clock.sleep_until(next_poll.min(self.deadline)) => {}
                reason = cancel.cancelled() => return Err(BarrierError::Cancelled(reason)),
            }
        }
    }

    /// Deletes the registrations of this arrival and no others. Those that remain because the registry is unreachable carry their run id, so they
    /// do not count for a later run.
    pub async fn withdraw(self) {
        let (barrier, gate, arrival) = (self.barrier, self.gate, self.arrival);
        let clock = Arc::clone(&barrier.clock);
        let withdrawn = tokio::select! {
            biased;
            withdrawn = barrier.deregister(gate, &arrival) => withdrawn,
            () = clock.sleep_until(clock.monotonic() + CLEANUP_TIMEOUT) => {
                Err(BarrierError::Contended { gate })
            }
        };
        if let Err(error) = withdrawn {
            tracing::warn!(run_id = %arrival.run, %error, "deleting registrations failed");
        }
    }

    /// `Some` when the wait is over.
    async fn decide(&mut self) -> Result<Option<Option<ListenerTurn>>, BarrierError> {
        let root = self.root();
        let own = self.arrival.shards.iter().map(|shard| child(&root, shard));
        if own.into_iter().any(|path| !self.mirror.contains(&path)) {
            // An instance that clears the gate re-creates the registrations of a later run, so a deletion alone proves nothing.
            let registrations =
                self.barrier.read_registrations(self.gate).await?.unwrap_or_default();
            return if self.is_registered(&registrations) {
                Ok(None)
            } else {
                self.accept_cleared().await.map(Some)
            };
        }
        if !self.mirror.missing(&self.expected).is_empty() {
            self.complete = false;
            return Ok(None);
        }
        if !self.complete && self.read_complete().await?.is_some() {
            self.complete = true;
            self.deadline = self.barrier.clock.monotonic() + self.timeout + CLEARING_MARGIN;
        }
        if self.complete && !self.mirror.is_latch_queued() {
            return Ok(self.acquire_latch().await?.map(Some));
        }
        Ok(None)
    }

    /// Reads the registrations and returns them if all expected shards are registered for this run.
    async fn read_complete(&mut self) -> Result<Option<Vec<Registration>>, BarrierError> {
        let registrations = self.barrier.read_registrations(self.gate).await?.unwrap_or_default();
        let uncounted =
            uncounted(&self.expected, &registrations, &self.arrival.run, &self.assigned);
        let is_complete = uncounted.is_empty() && self.is_registered(&registrations);
        let later = registrations
            .iter()
            .filter(|registration| registration.is_of_later_fire(&self.arrival.run));
        let shards: BTreeSet<u32> = later.filter_map(Registration::shard).collect();
        let shards = &shards & &uncounted;
        if !shards.is_empty() && self.is_registered(&registrations) {
            return Err(BarrierError::MovedOn { gate: self.gate, shards });
        }
        self.uncounted = uncounted;
        Ok(is_complete.then_some(registrations))
    }

    /// Whether all shards of this arrival are registered.
    fn is_registered(&self, registrations: &[Registration]) -> bool {
        let own =
            registrations.iter().filter(|registration| self.arrival.has_made(registration)).count();
        own == self.arrival.shards.len()
    }

    /// The registrations of this arrival are gone. That is right if all shards were registered, and an error otherwise.
    async fn accept_cleared(&mut self) -> Result<Option<ListenerTurn>, BarrierError> {
        let missing = self.mirror.never_registered(&self.expected);
        self.exclude_disabled(&missing).await?;
        let missing = self.mirror.never_registered(&self.expected);
        if missing.is_empty() {
            Ok(None)
        } else {
            Err(BarrierError::ClearedEarly { gate: self.gate, missing })
        }
    }

    /// Queues for the latch, and then checks the gate again: another instance may have called the listener meanwhile.
    async fn acquire_latch(&mut self) -> Result<Option<ListenerTurn>, BarrierError> {
        let registry = Arc::clone(&self.barrier.registry);
        let path = self.gate.latch(&self.barrier.tree);
        let Some(latch) = latch::acquire(&*registry, &path, self.ticket, LATCH_TIMEOUT).await?
        else {
            self.drain();
            return Ok(None);
        };
        match self.read_complete().await {
            Ok(Some(registrations)) => Ok(Some(ListenerTurn {
                barrier: self.barrier.clone(),
                gate: self.gate,
                run: self.arrival.run.clone(),
                latch,
                keep_until: self.barrier.clock.monotonic() + java_poll_time(&registrations),
                counted: registrations
                    .into_iter()
                    .map(|registration| (registration.name, registration.created))
                    .collect(),
            })),
            Ok(None) => {
                self.complete = false;
                latch.release(&*registry).await;
                Ok(None)
            }
            Err(error) => {
                latch.release(&*registry).await;
                Err(error)
            }
        }
    }

    /// Checks whether missing shards have been disabled, or will never register.
    async fn check_missing(&mut self) -> Result<(), BarrierError> {
        if self.complete {
            return Ok(());
        }
        let missing = self.missing();
        self.exclude_disabled(&missing).await?;
        let missing: Vec<u32> = missing.intersection(&self.expected).copied().collect();
        let barrier = &self.barrier;
        let pages = missing
            .iter()
            .map(|shard| async { barrier.registry.get(&barrier.tree.ledger_page(*shard)).await });
        let pages = missing.iter().zip(try_join_all(pages).await?);
        let moved_on = pages.filter_map(|(shard, page)| {
            let page = LedgerPage::read(&page?.data).ok()?;
            has_moved_on(&page, &self.arrival.run, self.arrival.due_at).then_some(*shard)
        });
        let moved_on: BTreeSet<u32> = moved_on.collect();
        // If the gate was cleared before a page was written, the watch reported it before the page was read.
        self.drain();
        let shards = &moved_on & &self.missing();
        let is_waiting = self.arrival.shards.iter().all(|shard| {
            self.watch.is_current() && self.mirror.contains(&child(&self.root(), shard))
        });
        if is_waiting && !shards.is_empty() {
            return Err(BarrierError::MovedOn { gate: self.gate, shards });
        }
        Ok(())
    }

    fn missing(&self) -> BTreeSet<u32> {
        &self.mirror.missing(&self.expected) | &self.uncounted
    }

    /// Stops waiting for those of `shards` that are disabled.
    async fn exclude_disabled(&mut self, shards: &BTreeSet<u32>) -> Result<(), BarrierError> {
        let barrier = &self.barrier;
        let reads = shards.iter().map(|shard| async {
            let disabled = barrier.tree.shard(*shard, ShardNode::Disabled);
            Ok::<_, Error>(barrier.registry.exists(&disabled).await?.map(|_| *shard))
        });
        for disabled in try_join_all(reads).await?.into_iter().flatten() {
            // A shard of this arrival runs: it was disabled after its fire had started.
            if !self.arrival.shards.contains(&disabled) {
                self.expected.remove(&disabled);
                self.uncounted.remove(&disabled);
            }
        }
        Ok(())
    }

    fn timeout_error(&self) -> BarrierError {
        let (gate, timeout) = (self.gate, self.timeout);
        if self.complete {
            BarrierError::NotCleared { gate, timeout }
        } else {
            BarrierError::TimedOut { gate, timeout, missing: self.missing() }
        }
    }

    async fn read_snapshot(&mut self) -> Result<(), BarrierError> {
        let clock = Arc::clone(&self.barrier.clock);
        loop {
            tokio::select! {
                biased;
                event = self.watch.next() => match event {
                    Some(Event::InitDone) => return Ok(()),
                    Some(event) => self.mirror.apply(&event),
                    None => return Err(Error::Closed.into()),
                },
                () = clock.sleep_until(self.deadline) => return Err(self.timeout_error()),
            }
        }
    }

    /// Registers all shards of this arrival in one transaction, unless the job was removed.
    async fn register(&mut self) -> Result<(), BarrierError> {
        let barrier = self.barrier.clone();
        let root = self.root();
        let run_id = self.arrival.run.to_string();
        for _ in 0..MAX_TRIES {
            self.drain();
            let mut ops = vec![barrier.check_job()];
            for parent in [barrier.tree.guarantee(), root.clone()] {
                if !self.mirror.contains(&parent) {
                    ops.push(Op::Create(Create::persistent(&parent, "")));
                }
            }
            for shard in &self.arrival.shards {
                let path = child(&root, shard);
                if self.mirror.contains(&path) {
                    ops.push(delete(path.clone()));
                }
                ops.push(Op::Create(Create::persistent(&path, run_id.clone())));
            }
            self.mirror.start();
            match barrier.registry.multi(ops).await {
                Ok(_) => {
                    self.drain();
                    return Ok(());
                }
                Err(Error::Operation { index: 0, .. }) => return Err(BarrierError::JobRemoved),
                // Another instance wrote at the same time: try again. A refused write is also a sync, so the watch has reported that change.
                Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(BarrierError::Contended { gate: self.gate })
    }

    /// Applies all events that the watch has reported.
    fn drain(&mut self) {
        while let Some(event) = self.watch.try_next() {
            self.mirror.apply(&event);
        }
    }

    fn root(&self) -> Path {
        self.gate.root(&self.barrier.tree)
    }
}

impl ListenerTurn {
    /// Clears the gate, so that all instances continue, and leaves the latch. Registrations made since for a later run are kept. With Java
    /// registrations this waits for a moment first, so that the Java instances see their own registrations.
    pub async fn finish(self) -> Result<(), BarrierError> {
        let clock = Arc::clone(&self.barrier.clock);
        clock.sleep_until(self.keep_until).await;
        let cleared = tokio::select! {
            cleared = self.clear() => cleared,
            () = clock.sleep_until(clock.monotonic() + CLEANUP_TIMEOUT) => {
                Err(BarrierError::Contended { gate: self.gate })
            }
        };
        self.latch.release(&*self.barrier.registry).await;
        cleared
    }

    async fn clear(&self) -> Result<(), BarrierError> {
        let root = self.gate.root(&self.barrier.tree);
        for _ in 0..MAX_TRIES {
            // If the gate is already clear, another instance timed out and cleared it.
            let Some(registrations) = self.barrier.read_registrations(self.gate).await? else {
                return Ok(());
            };
            let mut ops = vec![self.latch.check(), self.barrier.check_job()];
            ops.extend(
                registrations.iter().map(|registration| delete(child(&root, &registration.name))),
            );
            // Java waits for the deletion of the root, so it is deleted even if it has to be re-created.
            ops.push(delete(root.clone()));
            let later: Vec<_> =
                registrations.iter().filter(|registration| self.is_later(registration)).collect();
            if !later.is_empty() {
                ops.push(Op::Create(Create::persistent(&root, "")));
                ops.extend(later.into_iter().map(|registration| {
                    let path = child(&root, &registration.name);
                    Op::Create(Create::persistent(&path, registration.data.clone()))
                }));
            }
            match self.barrier.registry.multi(ops).await {
                Ok(_) => return Ok(()),
                Err(Error::Operation { index: 0, .. }) => return Err(Error::SessionExpired.into()),
                Err(Error::Operation { index: 1, .. }) => return Err(BarrierError::JobRemoved),
                // A registration was created or deleted since the gate was read: read again.
                Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(BarrierError::Contended { gate: self.gate })
    }

    /// Whether a registration was made after the latch was acquired, and not for this run.
    fn is_later(&self, registration: &Registration) -> bool {
        !self.counted.contains(&(registration.name.clone(), registration.created))
            && !registration.has_run_id(&self.run)
    }
}

/// How long Java instances may need to see their own registrations.
fn java_poll_time(registrations: &[Registration]) -> Duration {
    let count = registrations.iter().filter(|registration| registration.is_from_java()).count();
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if count == 0 { Duration::ZERO } else { JAVA_POLL_TIME + JAVA_POLL_TIME_PER_SHARD * count }
}

fn child(root: &Path, name: impl fmt::Display) -> Path {
    root.join(name).expect("a number, or a name from the registry")
}

fn delete(path: Path) -> Op {
    Op::Delete { path, expected: ExpectedVersion::Any }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gate::Started => "before the run",
            Gate::Completed => "after the run",
        })
    }
}

/// Displays shard numbers in messages.
struct Shards<'a>(&'a BTreeSet<u32>);

impl fmt::Display for Shards<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        let noun = if numbers.len() == 1 { "shard" } else { "shards" };
        write!(f, "{noun} {}", numbers.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::{
        registry::{ensure_path, memory::MemoryServer},
        testing::ManualClock,
    };

    async fn barrier(clock: &ManualClock) -> Barrier {
        let server = MemoryServer::new(Arc::new(clock.clone()));
        let registry = server.join("shop".parse().unwrap()).await.unwrap();
        let tree = JobTree::new(registry.namespace(), &"settle".parse().unwrap()).unwrap();
        ensure_path(&registry, &tree.config()).await.unwrap();
        Barrier { registry: Arc::new(registry), clock: Arc::new(clock.clone()), tree }
    }

    fn arrival(shards: &[u32], total: u32) -> Arrival {
        let due_at = Timestamp::UNIX_EPOCH;
        let run = RunId::scheduled("settle".parse().unwrap(), due_at);
        Arrival { run, due_at, shards: shards.to_vec(), total }
    }

    #[tokio::test]
    async fn wait_ends_at_its_deadline_and_not_before() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let barrier = barrier(&clock).await;
        let (arrival, timeout) = (arrival(&[0, 2], 4), Duration::from_mins(1));
        let mut waiter = barrier.register(Gate::Started, arrival, 1, timeout).await.unwrap();
        let cancel = CancelToken::new();
        let mut waiting = Box::pin(waiter.wait(&cancel));

        clock.advance(Duration::from_secs(59));
        for _ in 0..100 {
            assert!((&mut waiting).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(1));
        let late = waiting.await.unwrap_err();

        assert_eq!(
            late.to_string(),
            "before the run: not all shards registered within 60s, missing: shards 1, 3; \
             does every instance of the job have this listener, and is none of them stuck?"
        );
    }

    #[tokio::test]
    async fn java_registration_is_kept_until_java_has_seen_it() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let barrier = barrier(&clock).await;
        let timeout = Duration::from_mins(1);
        let mut waiter =
            barrier.register(Gate::Started, arrival(&[0], 2), 1, timeout).await.unwrap();
        let registry = Arc::clone(&barrier.registry);
        let java = child(&barrier.tree.started(), 1);
        registry.create(Create::persistent(&java, "")).await.unwrap();
        let turn = waiter
            .wait(&CancelToken::new())
            .await
            .unwrap()
            .expect("no other instance queues for the latch");

        let mut finishing = Box::pin(turn.finish());
        clock.advance(JAVA_POLL_TIME);
        for _ in 0..100 {
            assert!((&mut finishing).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert!(registry.exists(&java).await.unwrap().is_some());
        clock.advance(JAVA_POLL_TIME_PER_SHARD);
        finishing.await.unwrap();

        assert!(registry.exists(&barrier.tree.started()).await.unwrap().is_none());
    }
}
