//! Registering, waiting, taking the turn, clearing the gate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::gathering::{Gathering, Registration, has_gone_on, lacking};
use crate::{
    coordination::{
        latch::{self, Turn},
        ledger::Page,
        tree::{JobTree, Part},
    },
    job::RunId,
    registry::{Create, Error, Event, Expected, Op, Path, Registry, Watch, Zxid},
    runtime::{Cancel, CancelReason, Clock, Monotonic},
};

/// How often a write is tried again when somebody else writes at the same time.
const TRIES: usize = 8;
/// How soon to look again at what the watch does not show, disabled shards and the ledger; then half as often each time.
const LOOK: Duration = Duration::from_millis(50);
/// At least this often.
const LOOK_AT_LEAST: Duration = Duration::from_secs(1);
/// How long to queue for the turn before looking again whether it is still wanted.
const QUEUE: Duration = Duration::from_secs(2);
/// How much longer than the listener may take the others wait for the gate to be cleared.
const MARGIN: Duration = Duration::from_secs(5);
/// How long what Java registered stands at least. Having registered, Java looks whether it is there, and never stops looking when it is gone
/// already; it falls asleep after that, and what happens before is not told to it.
const JAVA_LOOKS: Duration = Duration::from_millis(500);
/// And longer for each shard: it looks at one after the other.
const JAVA_LOOKS_AT_ONE: Duration = Duration::from_millis(5);
/// How long taking one's registrations away may take.
const FAREWELL: Duration = Duration::from_secs(10);

/// Which of the two gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Before the first shard runs.
    Started,
    /// After the last one has ended.
    Completed,
}

/// Who arrives at a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// In which run.
    pub run: RunId,
    /// When it was due.
    pub due_at: Timestamp,
    /// With which shards.
    pub shards: Vec<u32>,
    /// Of how many; those that are disabled are not waited for.
    pub total: u32,
}

/// Why not everybody met.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BarrierError {
    /// Some did not come in time.
    #[error(
        "{gate}: not all shards came within {patience:?}, {} not; hint: has every instance of the job this listener, and is none of them stuck?",
        Shards(missing)
    )]
    Late {
        /// Where.
        gate: Gate,
        /// How long was waited.
        patience: Duration,
        /// Those that did not come.
        missing: BTreeSet<u32>,
    },
    /// All came, but whoever had the turn did not clear the gate in time.
    #[error(
        "{gate}: all shards came, but the instance whose turn it was did not clear the gate within {patience:?}"
    )]
    Stuck {
        /// Where.
        gate: Gate,
        /// How long was waited.
        patience: Duration,
    },
    /// Some will not come: they are through with this fire, or at a later one.
    #[error("{gate}: {} went on without waiting", Shards(shards))]
    GoneOn {
        /// Where.
        gate: Gate,
        /// Which.
        shards: BTreeSet<u32>,
    },
    /// Somebody cleared the gate too early.
    #[error(
        "{gate}: somebody cleared the gate before {} came; hint: does a Java instance wait less long than this one?",
        Shards(missing)
    )]
    Cleared {
        /// Where.
        gate: Gate,
        /// Those that had not come.
        missing: BTreeSet<u32>,
    },
    /// The job was removed.
    #[error("the job was removed")]
    Removed,
    /// Others wrote at the same time, again and again.
    #[error("{gate}: somebody else wrote there at every try")]
    Restless {
        /// Where.
        gate: Gate,
    },
    /// We were told to end.
    #[error("waiting for the other shards was cancelled: {0}")]
    Cancelled(CancelReason),
    /// The registry.
    #[error("waiting for the other shards failed")]
    Registry(#[from] Error),
}

/// The gates of one job, as one instance sees them.
#[derive(Debug, Clone)]
pub struct Barrier {
    /// Where they are shared.
    pub registry: Arc<dyn Registry>,
    /// What ends waits.
    pub clock: Arc<dyn Clock>,
    /// Where everything of the job is.
    pub tree: JobTree,
}

/// We are registered, and wait for the others. Must be [withdrawn](Round::withdraw) from if that fails.
#[derive(Debug)]
pub struct Round {
    barrier: Barrier,
    gate: Gate,
    arrival: Arrival,
    ticket: u128,
    patience: Duration,
    deadline: Monotonic,
    watch: Watch,
    gathering: Gathering,
    /// The shards to wait for.
    expected: BTreeSet<u32>,
    /// When each shard got its present owner.
    dealt: BTreeMap<u32, Zxid>,
    /// Shards that are there, but not for this round.
    stale: BTreeSet<u32>,
    /// All were there, as of the last look.
    complete: bool,
}

/// Everybody is there, and the turn is ours: call the listener, then [finish](Last::finish). The others wait meanwhile, so it must be bounded.
#[derive(Debug)]
#[must_use = "the others wait until the gate is cleared"]
pub struct Last {
    barrier: Barrier,
    gate: Gate,
    run: RunId,
    turn: Turn,
    /// What was there when the turn came.
    seen: BTreeSet<(String, Zxid)>,
    /// Not before this is the gate cleared.
    stands_until: Monotonic,
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
    fn made(&self, registration: &Registration) -> bool {
        let is_mine = registration.shard().is_some_and(|shard| self.shards.contains(&shard));
        is_mine && registration.names(&self.run)
    }
}

impl Barrier {
    /// Registers these shards at the gate. What is there of them already was left by somebody who had them before, and is replaced.
    ///
    /// `patience` is for the others to come, and then again for the listener to be called.
    pub async fn register(
        &self,
        gate: Gate,
        arrival: Arrival,
        ticket: u128,
        patience: Duration,
    ) -> Result<Round, BarrierError> {
        let deadline = self.clock.monotonic() + patience;
        let (root, latch) = (gate.root(&self.tree), gate.latch(&self.tree));
        let mut round = Round {
            watch: self.registry.watch(&self.tree.guarantee()).await?,
            gathering: Gathering::new(root, latch),
            expected: (0..arrival.total).collect(),
            dealt: BTreeMap::new(),
            stale: BTreeSet::new(),
            complete: false,
            barrier: self.clone(),
            gate,
            arrival,
            ticket,
            patience,
            deadline,
        };
        round.see_snapshot().await?;
        round.enter().await?;
        // Only after the entry: whoever registers for a shard dealt later than this is not the one we saw.
        round.dealt = self.dealt(round.arrival.total).await?;
        let all = round.expected.clone();
        round.forget_disabled(&all).await?;
        Ok(round)
    }

    /// When each shard got its present owner.
    async fn dealt(&self, total: u32) -> Result<BTreeMap<u32, Zxid>, Error> {
        let owners = (0..total).map(|shard| async move {
            let owner = self.registry.exists(&self.tree.shard(shard, Part::Owner)).await?;
            Ok(owner.map(|owner| (shard, owner.changed)))
        });
        let owners: Vec<Option<(u32, Zxid)>> = try_join_all(owners).await?;
        Ok(owners.into_iter().flatten().collect())
    }

    /// What is at a gate; `None` if it is clear.
    async fn found(&self, gate: Gate) -> Result<Option<Vec<Registration>>, Error> {
        let root = gate.root(&self.tree);
        let Some(names) = self.registry.children(&root).await? else { return Ok(None) };
        let reads = names.into_iter().map(|name| async {
            let node = self.registry.get(&child(&root, &name)).await?;
            Ok(node.map(|node| Registration { name, data: node.data, created: node.stat.created }))
        });
        let found: Vec<Option<Registration>> = try_join_all(reads).await?;
        Ok(Some(found.into_iter().flatten().collect()))
    }

    /// Takes away what this arrival registered.
    async fn leave(&self, gate: Gate, arrival: &Arrival) -> Result<(), BarrierError> {
        let root = gate.root(&self.tree);
        for _ in 0..TRIES {
            let Some(found) = self.found(gate).await? else { return Ok(()) };
            let (mine, others): (Vec<_>, Vec<_>) =
                found.iter().partition(|registration| arrival.made(registration));
            if mine.is_empty() {
                return Ok(());
            }
            let mine = mine.into_iter().map(|registration| child(&root, &registration.name));
            let mut ops: Vec<Op> = mine.map(delete).collect();
            if others.is_empty() {
                ops.push(delete(root.clone()));
            }
            match self.registry.multi(ops).await {
                Ok(_) => return Ok(()),
                // Somebody came or went since it was read: look again.
                Err(Error::Member { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(BarrierError::Restless { gate })
    }

    fn check(&self) -> Op {
        Op::Check { path: self.tree.config(), expected: Expected::Any }
    }
}

impl Round {
    /// Waits until every enabled shard is there. `Some` if the turn to call the listener is ours, `None` if somebody else's was and the
    /// gate is open.
    pub async fn all(&mut self, cancel: &Cancel) -> Result<Option<Last>, BarrierError> {
        let clock = Arc::clone(&self.barrier.clock);
        // At once, too: who is out of step has to learn it soon, or it would never be in step again.
        let (mut look, mut pause) = (clock.monotonic(), LOOK);
        loop {
            self.drain();
            if self.watch.is_current()
                && let Some(open) = self.judge().await?
            {
                return Ok(open);
            }
            let now = clock.monotonic();
            if now >= self.deadline {
                return Err(self.late());
            }
            if now >= look {
                (look, pause) = (now + pause, (pause * 2).min(LOOK_AT_LEAST));
                self.look_for_the_missing().await?;
                continue;
            }
            tokio::select! {
                event = self.watch.next() => match event {
                    Some(event) => self.gathering.apply(&event),
                    None => return Err(Error::Closed.into()),
                },
                () = clock.sleep_until(look.min(self.deadline)) => {}
                reason = cancel.cancelled() => return Err(BarrierError::Cancelled(reason)),
            }
        }
    }

    /// Takes our registrations away, and nobody else's. Whatever stays because the registry is out of reach says which run it was of.
    pub async fn withdraw(self) {
        let (barrier, gate, arrival) = (self.barrier, self.gate, self.arrival);
        let clock = Arc::clone(&barrier.clock);
        let withdrawn = tokio::select! {
            withdrawn = barrier.leave(gate, &arrival) => withdrawn,
            () = clock.sleep_until(clock.monotonic() + FAREWELL) => {
                Err(BarrierError::Restless { gate })
            }
        };
        if let Err(error) = withdrawn {
            tracing::warn!(run = %arrival.run, %error, "could not leave the gate properly");
        }
    }

    /// `Some` when it is decided.
    async fn judge(&mut self) -> Result<Option<Option<Last>>, BarrierError> {
        let root = self.root();
        let own = self.arrival.shards.iter().map(|shard| child(&root, shard));
        if own.into_iter().any(|path| !self.gathering.contains(&path)) {
            // Whoever clears a gate puts back what was there for a later round; that it was away says nothing.
            let found = self.barrier.found(self.gate).await?.unwrap_or_default();
            return if self.is_there(&found) { Ok(None) } else { self.opened().await.map(Some) };
        }
        if !self.gathering.missing(&self.expected).is_empty() {
            self.complete = false;
            return Ok(None);
        }
        if !self.complete && self.is_complete().await?.is_some() {
            self.complete = true;
            self.deadline = self.barrier.clock.monotonic() + self.patience + MARGIN;
        }
        if self.complete && !self.gathering.is_queued() {
            return Ok(self.take_turn().await?.map(Some));
        }
        Ok(None)
    }

    /// What is there, if that is everybody.
    async fn is_complete(&mut self) -> Result<Option<Vec<Registration>>, BarrierError> {
        let found = self.barrier.found(self.gate).await?.unwrap_or_default();
        let lacking = lacking(&self.expected, &found, &self.arrival.run, &self.dealt);
        let complete = lacking.is_empty() && self.is_there(&found);
        let ahead = found.iter().filter(|there| there.is_ahead(&self.arrival.run));
        let shards: BTreeSet<u32> = ahead.filter_map(Registration::shard).collect();
        let shards = &shards & &lacking;
        if !shards.is_empty() && self.is_there(&found) {
            return Err(BarrierError::GoneOn { gate: self.gate, shards });
        }
        self.stale = lacking;
        Ok(complete.then_some(found))
    }

    fn is_there(&self, found: &[Registration]) -> bool {
        let mine = found.iter().filter(|registration| self.arrival.made(registration)).count();
        mine == self.arrival.shards.len()
    }

    /// Our registrations are gone: rightly so if all were there.
    async fn opened(&mut self) -> Result<Option<Last>, BarrierError> {
        let never = self.gathering.never(&self.expected);
        self.forget_disabled(&never).await?;
        let missing = self.gathering.never(&self.expected);
        if missing.is_empty() {
            Ok(None)
        } else {
            Err(BarrierError::Cleared { gate: self.gate, missing })
        }
    }

    /// Queues, and looks again: somebody else may have had the turn.
    async fn take_turn(&mut self) -> Result<Option<Last>, BarrierError> {
        let registry = Arc::clone(&self.barrier.registry);
        let latch = self.gate.latch(&self.barrier.tree);
        let Some(turn) = latch::queue(&*registry, &latch, self.ticket, QUEUE).await? else {
            self.drain();
            return Ok(None);
        };
        match self.is_complete().await {
            Ok(Some(found)) => Ok(Some(Last {
                barrier: self.barrier.clone(),
                gate: self.gate,
                run: self.arrival.run.clone(),
                turn,
                stands_until: self.barrier.clock.monotonic() + java_looks(&found),
                seen: found.into_iter().map(|there| (there.name, there.created)).collect(),
            })),
            Ok(None) => {
                self.complete = false;
                turn.pass(&*registry).await;
                Ok(None)
            }
            Err(error) => {
                turn.pass(&*registry).await;
                Err(error)
            }
        }
    }

    /// Those that are not there may have been disabled, or may never come.
    async fn look_for_the_missing(&mut self) -> Result<(), BarrierError> {
        if self.complete {
            return Ok(());
        }
        let missing = self.missing();
        self.forget_disabled(&missing).await?;
        let missing: Vec<u32> = missing.intersection(&self.expected).copied().collect();
        let barrier = &self.barrier;
        let pages = missing
            .iter()
            .map(|shard| async { barrier.registry.get(&barrier.tree.page(*shard)).await });
        let pages = missing.iter().zip(try_join_all(pages).await?);
        let gone_on = pages.filter_map(|(shard, page)| {
            let page = Page::read(&page?.data).ok()?;
            has_gone_on(&page, &self.arrival.run, self.arrival.due_at).then_some(*shard)
        });
        let gone_on: BTreeSet<u32> = gone_on.collect();
        // The gate may have been opened before the page was written; then this was seen before the page was.
        self.drain();
        let shards = &gone_on & &self.missing();
        let is_waiting = self.arrival.shards.iter().all(|shard| {
            self.watch.is_current() && self.gathering.contains(&child(&self.root(), shard))
        });
        if is_waiting && !shards.is_empty() {
            return Err(BarrierError::GoneOn { gate: self.gate, shards });
        }
        Ok(())
    }

    fn missing(&self) -> BTreeSet<u32> {
        &self.gathering.missing(&self.expected) | &self.stale
    }

    /// Does not wait for those of `shards` that are disabled.
    async fn forget_disabled(&mut self, shards: &BTreeSet<u32>) -> Result<(), BarrierError> {
        let barrier = &self.barrier;
        let looks = shards.iter().map(|shard| async {
            let disabled = barrier.tree.shard(*shard, Part::Disabled);
            Ok::<_, Error>(barrier.registry.exists(&disabled).await?.map(|_| *shard))
        });
        for disabled in try_join_all(looks).await?.into_iter().flatten() {
            // One that is ours runs: it was disabled after its fire had begun.
            if !self.arrival.shards.contains(&disabled) {
                self.expected.remove(&disabled);
                self.stale.remove(&disabled);
            }
        }
        Ok(())
    }

    fn late(&self) -> BarrierError {
        let (gate, patience) = (self.gate, self.patience);
        if self.complete {
            BarrierError::Stuck { gate, patience }
        } else {
            BarrierError::Late { gate, patience, missing: self.missing() }
        }
    }

    async fn see_snapshot(&mut self) -> Result<(), BarrierError> {
        let clock = Arc::clone(&self.barrier.clock);
        loop {
            tokio::select! {
                event = self.watch.next() => match event {
                    Some(Event::InitDone) => return Ok(()),
                    Some(event) => self.gathering.apply(&event),
                    None => return Err(Error::Closed.into()),
                },
                () = clock.sleep_until(self.deadline) => return Err(self.late()),
            }
        }
    }

    /// Registers, all shards at once, unless the job is gone.
    async fn enter(&mut self) -> Result<(), BarrierError> {
        let barrier = self.barrier.clone();
        let root = self.root();
        let label = self.arrival.run.to_string();
        for _ in 0..TRIES {
            self.drain();
            let mut ops = vec![barrier.check()];
            for parent in [barrier.tree.guarantee(), root.clone()] {
                if !self.gathering.contains(&parent) {
                    ops.push(Op::Create(Create::persistent(&parent, "")));
                }
            }
            for shard in &self.arrival.shards {
                let path = child(&root, shard);
                if self.gathering.contains(&path) {
                    ops.push(delete(path.clone()));
                }
                ops.push(Op::Create(Create::persistent(&path, label.clone())));
            }
            self.gathering.begin();
            match barrier.registry.multi(ops).await {
                Ok(_) => {
                    self.drain();
                    return Ok(());
                }
                Err(Error::Member { index: 0, .. }) => return Err(BarrierError::Removed),
                // Somebody else was there at the same time: look again. A refusal is a write, too, so there is something to see.
                Err(Error::Member { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(BarrierError::Restless { gate: self.gate })
    }

    fn drain(&mut self) {
        while let Some(event) = self.watch.try_next() {
            self.gathering.apply(&event);
        }
    }

    fn root(&self) -> Path {
        self.gate.root(&self.barrier.tree)
    }
}

impl Last {
    /// Clears the gate, so that everybody goes on, and passes the turn. Who registered for a later round since stays registered.
    /// Beside Java it takes a moment, so that Java has seen that it is registered.
    pub async fn finish(self) -> Result<(), BarrierError> {
        let clock = Arc::clone(&self.barrier.clock);
        clock.sleep_until(self.stands_until).await;
        let cleared = tokio::select! {
            cleared = self.clear() => cleared,
            () = clock.sleep_until(clock.monotonic() + FAREWELL) => {
                Err(BarrierError::Restless { gate: self.gate })
            }
        };
        self.turn.pass(&*self.barrier.registry).await;
        cleared
    }

    async fn clear(&self) -> Result<(), BarrierError> {
        let root = self.gate.root(&self.barrier.tree);
        for _ in 0..TRIES {
            // Somebody lost patience and cleared it.
            let Some(found) = self.barrier.found(self.gate).await? else { return Ok(()) };
            let mut ops = vec![self.turn.check(), self.barrier.check()];
            ops.extend(found.iter().map(|there| delete(child(&root, &there.name))));
            // Java waits for the root to go, so it goes even if it has to come back.
            ops.push(delete(root.clone()));
            let later: Vec<_> = found.iter().filter(|there| self.is_later(there)).collect();
            if !later.is_empty() {
                ops.push(Op::Create(Create::persistent(&root, "")));
                ops.extend(later.into_iter().map(|there| {
                    let path = child(&root, &there.name);
                    Op::Create(Create::persistent(&path, there.data.clone()))
                }));
            }
            match self.barrier.registry.multi(ops).await {
                Ok(_) => return Ok(()),
                Err(Error::Member { index: 0, .. }) => return Err(Error::SessionExpired.into()),
                Err(Error::Member { index: 1, .. }) => return Err(BarrierError::Removed),
                // Somebody came or went since it was read: look again.
                Err(Error::Member { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(BarrierError::Restless { gate: self.gate })
    }

    /// Made since the turn came, and not for this round.
    fn is_later(&self, there: &Registration) -> bool {
        !self.seen.contains(&(there.name.clone(), there.created)) && !there.names(&self.run)
    }
}

/// How long Java may need to see what it has registered.
fn java_looks(found: &[Registration]) -> Duration {
    let count = found.iter().filter(|there| there.is_of_java()).count();
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if count == 0 { Duration::ZERO } else { JAVA_LOOKS + JAVA_LOOKS_AT_ONE * count }
}

fn child(root: &Path, name: impl fmt::Display) -> Path {
    root.join(name).expect("a number, or a name from the registry")
}

fn delete(path: Path) -> Op {
    Op::Delete { path, expected: Expected::Any }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gate::Started => "before the run",
            Gate::Completed => "after the run",
        })
    }
}

/// Shards, for people.
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
        registry::{memory::MemoryServer, plant},
        testing::ManualClock,
    };

    async fn barrier(clock: &ManualClock) -> Barrier {
        let server = MemoryServer::new(Arc::new(clock.clone()));
        let registry = server.join("shop".parse().unwrap()).await.unwrap();
        let tree = JobTree::new(registry.namespace(), &"settle".parse().unwrap()).unwrap();
        plant(&registry, &tree.config()).await.unwrap();
        Barrier { registry: Arc::new(registry), clock: Arc::new(clock.clone()), tree }
    }

    fn arrival(shards: &[u32], total: u32) -> Arrival {
        let due_at = Timestamp::UNIX_EPOCH;
        let run = RunId::scheduled("settle".parse().unwrap(), due_at);
        Arrival { run, due_at, shards: shards.to_vec(), total }
    }

    #[tokio::test]
    async fn a_wait_ends_when_its_time_has_come_and_not_before() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let barrier = barrier(&clock).await;
        let (arrival, patience) = (arrival(&[0, 2], 4), Duration::from_mins(1));
        let mut round = barrier.register(Gate::Started, arrival, 1, patience).await.unwrap();
        let cancel = Cancel::new();
        let mut waiting = Box::pin(round.all(&cancel));

        clock.advance(Duration::from_secs(59));
        for _ in 0..100 {
            assert!((&mut waiting).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(1));
        let late = waiting.await.unwrap_err();

        assert_eq!(
            late.to_string(),
            "before the run: not all shards came within 60s, shards 1, 3 not; \
             hint: has every instance of the job this listener, and is none of them stuck?"
        );
    }

    #[tokio::test]
    async fn what_java_registered_stands_until_java_has_seen_it() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let barrier = barrier(&clock).await;
        let patience = Duration::from_mins(1);
        let mut round =
            barrier.register(Gate::Started, arrival(&[0], 2), 1, patience).await.unwrap();
        let registry = Arc::clone(&barrier.registry);
        let java = child(&barrier.tree.started(), 1);
        registry.create(Create::persistent(&java, "")).await.unwrap();
        let last = round.all(&Cancel::new()).await.unwrap().expect("nobody else is there");

        let mut finishing = Box::pin(last.finish());
        clock.advance(JAVA_LOOKS);
        for _ in 0..100 {
            assert!((&mut finishing).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert!(registry.exists(&java).await.unwrap().is_some());
        clock.advance(JAVA_LOOKS_AT_ONE);
        finishing.await.unwrap();

        assert!(registry.exists(&barrier.tree.started()).await.unwrap().is_none());
    }
}
