//! The task that owns a member's view and writes in its name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_channel::mpsc as queue;
use futures_util::future::join_all;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    claiming::Parked,
    duties::{Duty, Memory, duties, has_ghosts},
    failover::Taking,
    handle::{Command, Ground, News, Refused},
    holding::Held,
    join::{
        Author, IfAbsent, JoinError, Joining, entry, settle_configuration, stored_configuration,
    },
    presence::Presence,
    releasing::Releasing,
};
use crate::{
    coordination::{
        claim::ClaimCandidate,
        flaw::Flaws,
        latch::HeldLatch,
        ledger::VersionedPage,
        sharding::{CustomStrategies, plan},
        tree::{JobTree, ShardNode, TreeNode},
        trigger::InstanceRequest,
        view::{CachedNode, Document, View},
    },
    job::{Difference, InstanceId, Job},
    registry::{
        Error, Event, ExpectedVersion, Path, Registry, SessionId, SessionState, States, Watch,
        Zxid, ensure_path,
    },
    runtime::{CancelReason, Clock, Monotonic, Randomness},
};

/// How long to wait before trying again what the registry did not do, or what somebody else was in the way of.
const AGAIN: Duration = Duration::from_millis(500);
/// How often one look may find something to do before the loop hears what else is going on.
const ROUNDS: usize = 8;

pub(super) struct Actor {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) strategies: CustomStrategies,
    pub(super) flaws: Flaws,
    pub(super) me: InstanceId,
    pub(super) session: SessionId,
    pub(super) tree: JobTree,
    pub(super) view: View,
    /// How often it changed.
    pub(super) changes: u64,
    watch: Watch,
    states: States,
    pub(super) job: Arc<Job>,
    /// The configuration document `job` was read from, or the one that could not be read.
    config: Option<Document>,
    pub(super) memory: Memory,
    pub(super) presence: Presence,
    /// Pages of the ledger as last seen; a conflict says when one is old. Boxed: a map keeps room for eleven of them.
    pub(super) pages: BTreeMap<u32, Box<VersionedPage>>,
    /// The shards we hold.
    pub(super) held: BTreeMap<u32, Box<Held>>,
    /// Claims of which it is not known whether they came about.
    pub(super) uncertain: BTreeMap<u32, ClaimCandidate>,
    /// Claims that wait until shards are dealt.
    pub(super) parked: Vec<Parked>,
    /// Shards that could not be given back yet.
    pub(super) releasing: Vec<Releasing>,
    /// A taking-over that waits for its turn.
    pub(super) taking: Option<Taking>,
    pub(super) beside: JoinSet<Beside>,
    is_shut_down: bool,
    is_connected: bool,
    is_ready: bool,
    resharding: Arc<AtomicBool>,
    inbox: mpsc::Receiver<Box<Command>>,
    told: queue::UnboundedSender<News>,
}

/// What goes on beside the actor, because it has to wait for others.
pub(super) enum Beside {
    Elected,
    MayTake(Result<Option<HeldLatch>, Error>),
    Passed,
}

impl Actor {
    pub(super) async fn join(
        ground: Ground,
        joining: Joining,
        inbox: mpsc::Receiver<Box<Command>>,
        told: queue::UnboundedSender<News>,
        resharding: Arc<AtomicBool>,
    ) -> Result<(Self, Vec<Difference>), JoinError> {
        let Ground { registry, clock, randomness, strategies, flaws } = ground;
        let name = joining.local.name.clone();
        let outage = |source| JoinError::Registry { job: name.to_string(), source };
        let tree = JobTree::new(registry.namespace(), &name).map_err(|error| {
            outage(Error::Invalid {
                path: registry.namespace().path().clone(),
                reason: error.to_string(),
            })
        })?;
        let session = registry.session();
        let Joining { local, handler, author, .. } = &joining;
        let (job, drift) = match author {
            Author::Program => {
                settle_configuration(&*registry, &tree, local, handler, IfAbsent::Store).await?
            }
            Author::Registry => {
                (stored_configuration(&*registry, &tree, &name, handler).await?, Vec::new())
            }
        };
        ensure_path(&*registry, tree.ledger()).await.map_err(outage)?;
        let watch = registry.watch(tree.root()).await.map_err(outage)?;
        let mut memory = Memory::default();
        memory.look_again_at(clock.monotonic(), &*randomness);
        let mut actor = Self {
            states: session.states(),
            session: session.id(),
            me: joining.instance.id.clone(),
            view: View::new(tree.clone()),
            changes: 0,
            tree,
            watch,
            presence: Presence::new(&job),
            job: Arc::new(job),
            config: None,
            memory,
            pages: BTreeMap::new(),
            held: BTreeMap::new(),
            uncertain: BTreeMap::new(),
            parked: Vec::new(),
            releasing: Vec::new(),
            taking: None,
            beside: JoinSet::new(),
            is_shut_down: false,
            is_connected: true,
            is_ready: false,
            resharding,
            registry,
            clock,
            randomness,
            strategies,
            flaws,
            inbox,
            told,
        };
        actor.enter(&joining).await.map_err(outage)?;
        actor.config = actor.view.config.as_ref().and_then(CachedNode::document).cloned();
        Ok((actor, drift))
    }

    pub(super) fn job(&self) -> &Arc<Job> {
        &self.job
    }

    async fn enter(&mut self, joining: &Joining) -> Result<(), Error> {
        loop {
            while !self.view.is_current() {
                let event = self.watch.next().await.ok_or(Error::Closed)?;
                self.apply(&event);
            }
            self.catch_up().await?;
            self.memory.note_leftovers(&self.view, &self.me);
            // Our name is ours alone: if it is there, we entered and the answer was lost.
            if self.view.instances.contains_key(self.me.as_str()) {
                return Ok(());
            }
            let ops = entry(&self.view, &self.job, &joining.instance, self.session);
            match self.registry.multi(ops).await {
                Ok(_) => return self.catch_up().await,
                // Somebody made what we were about to make.
                Err(Error::Operation { cause, .. }) if matches!(&*cause, Error::Exists { .. }) => {
                    self.registry.sync().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Until the member leaves, is shut down, or its session ends.
    pub(super) async fn run(mut self: Box<Self>) {
        loop {
            let kept = self.keep_house().await;
            if let Err(error) = &kept {
                tracing::warn!(job = %self.job.name, instance = %self.me, %error, "could not keep house; trying again");
                // A claim does not wait longer than it may because something else could not be done.
                self.settle_parked().await;
            }
            self.tell_what_there_is();
            let clock = Arc::clone(&self.clock);
            let (now, next) = (clock.monotonic(), self.next_look());
            let wake = match kept {
                Ok(false) => Some(now),
                // What should have been done by now could not be: there is no hurry.
                Ok(true) => next.map(|when| if when > now { when } else { now + AGAIN }),
                Err(_) => Some(now + AGAIN),
            };
            tokio::select! {
                biased;
                state = self.states.next() => match state {
                    Some(SessionState::Lost(_) | SessionState::Renewed { .. }) | None => {
                        self.tell(News::SessionLost);
                        return;
                    }
                    Some(SessionState::Suspended(_)) => {
                        self.is_connected = false;
                        self.is_ready = false;
                        self.tell(News::OutOfReach);
                    }
                    Some(SessionState::Connected(_)) => self.is_connected = true,
                },
                event = self.watch.next() => match event {
                    Some(event) => self.apply(&event),
                    None => return,
                },
                command = self.inbox.recv() => match command.map(|command| *command) {
                    Some(Command::Leave { reply }) => {
                        self.leave().await;
                        Self::answer(reply, ());
                        return;
                    }
                    Some(command) => self.obey(command).await,
                    None => return,
                },
                Some(done) = self.beside.join_next() => match done {
                    Ok(Beside::MayTake(turn)) => self.take(turn).await,
                    Ok(Beside::Passed) => {}
                    Ok(Beside::Elected) | Err(_) => self.memory.electing = false,
                },
                () = async { clock.sleep_until(wake.expect("guarded")).await }, if wake.is_some() => {}
            }
        }
    }

    /// When there is something to do even if nothing happens. Whoever sees nothing, or is shut down, looks after nobody else: what is
    /// overdue then would be overdue for ever.
    fn next_look(&self) -> Option<Monotonic> {
        let soon = self.clock.monotonic() + AGAIN;
        let waits = !self.parked.is_empty() || !self.releasing.is_empty();
        let looks = self.view.is_current() && !self.is_shut_down;
        let parked = self.parked.iter().map(|parked| parked.until);
        parked
            .chain(waits.then_some(soon))
            .chain(self.memory.next_tick.filter(|_| looks))
            .chain(self.memory.next_doubt().filter(|_| looks))
            .chain(self.memory.blinks.next(self.clock.monotonic()).filter(|_| looks))
            .chain(self.memory.unblocks_at.filter(|_| looks))
            .min()
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Claim { request, reply } => {
                let until = self.clock.monotonic() + request.patience;
                self.parked.push(Parked { request, until, reply });
            }
            Command::Take { cancel, busy, reply } => self.queue_to_take(cancel, busy, reply),
            Command::Release { ended, reply } => {
                self.begin_release(&ended);
                self.releasing.push(Releasing { ended, reply: Some(reply) });
            }
            Command::LastDue { reply } => {
                let _ = reply.send(self.last_due().await.unwrap_or_default());
            }
            Command::Leave { .. } => {}
        }
    }

    pub(super) fn tell(&self, news: News) {
        let _ = self.told.unbounded_send(news);
    }

    fn apply(&mut self, event: &Event) {
        self.changes += 1;
        let place = self.view.apply(event);
        match (event, place) {
            (Event::Init, _) => {
                self.memory.is_suspicious = true;
                self.memory.blinks.forget();
            }
            (Event::Delete { .. }, Some(TreeNode::Instance(id))) => {
                self.memory.is_suspicious = true;
                self.note_blink(&id);
            }
            (Event::Apply { .. }, Some(TreeNode::Instance(id))) => {
                self.memory.blinks.back(&id, self.clock.monotonic());
            }
            (Event::Apply { .. }, Some(TreeNode::Shard(shard, ShardNode::Running)))
                if self.view.failover_items.contains(&shard) =>
            {
                self.memory.ran_since_flagged.insert(shard);
            }
            // Whoever has a flagged shard in hand makes up for what was lost; if they are dead themselves it is flagged anew.
            (Event::InitDone, _) => {
                let is_held = |shard: &&u32| {
                    self.view.shards.get(shard).is_some_and(|view| view.running.is_some())
                };
                let held = self.view.failover_items.iter().filter(is_held);
                self.memory.ran_since_flagged.extend(held);
            }
            (_, Some(TreeNode::FailoverItem(shard))) => {
                self.memory.ran_since_flagged.remove(&shard);
                match event {
                    Event::Delete { .. } => self.memory.blinks.settled(shard),
                    _ => self.memory.blinks.flagged(shard, self.clock.monotonic()),
                }
            }
            _ => {}
        }
    }

    /// The node of an instance went: what it ran, if it is Java's, may go on.
    fn note_blink(&mut self, id: &str) {
        if !id.parse().is_ok_and(|id: InstanceId| id.is_java()) {
            return;
        }
        let shards = self.view.shards.iter();
        let ran = shards.filter(|(_, view)| {
            let is_owner = view.owner.as_ref().and_then(CachedNode::text) == Some(id);
            is_owner && view.running.is_some() && view.failovering.is_none()
        });
        let ran = ran.map(|(shard, _)| *shard).collect();
        self.memory.blinks.gone(id, ran, self.clock.monotonic());
    }

    /// Takes everything the watch has told and reads what has to be read: the view is current as of our last write.
    pub(super) async fn catch_up(&mut self) -> Result<(), Error> {
        loop {
            while let Some(event) = self.watch.try_next() {
                self.apply(&event);
            }
            let dirty = self.view.dirty_paths();
            if dirty.is_empty() || !self.view.is_current() {
                self.tell_streams();
                return Ok(());
            }
            self.read(&dirty).await?;
        }
    }

    /// Streams have to end when shards are dealt, and when what they work on belongs to somebody else by now: it can move only when its run
    /// is over. What the leader will decide follows from what everybody sees.
    fn tell_streams(&mut self) {
        if self.held.is_empty() {
            self.memory.planned = None;
        } else {
            let ground: (BTreeSet<String>, u32) =
                (self.view.instances.keys().cloned().collect(), self.job.shards.get());
            if self.memory.planned.as_ref().is_none_or(|(known, _)| *known != ground) {
                let now_ms = self.clock.now().as_millisecond();
                let plan = plan(&self.view, &self.job, &self.strategies, now_ms);
                let later = plan.map(|plan| plan.deferred).unwrap_or_default();
                let moves = later.iter().any(|shard| self.held.contains_key(shard));
                self.memory.planned = Some((ground, moves));
            }
        }
        let moves = self.memory.planned.as_ref().is_some_and(|(_, moves)| *moves);
        self.resharding.store(self.view.necessary || moves, Ordering::Relaxed);
    }

    /// Forgets everything and looks again.
    pub(super) async fn look_anew(&mut self) -> Result<(), Error> {
        self.watch = self.registry.watch(self.tree.root()).await?;
        while let Some(event) = self.watch.next().await {
            let is_whole = event == Event::InitDone;
            self.apply(&event);
            if is_whole {
                break;
            }
        }
        self.catch_up().await
    }

    pub(super) async fn read(&mut self, paths: &[Path]) -> Result<(), Error> {
        let nodes = join_all(paths.iter().map(|path| self.registry.get(path))).await;
        for (path, node) in paths.iter().zip(nodes) {
            self.view.record_read(path, node?);
        }
        Ok(())
    }

    /// Does what there is to do, until there is nothing more or it has to wait; `false` if there may be more.
    async fn keep_house(&mut self) -> Result<bool, Error> {
        for _ in 0..ROUNDS {
            self.catch_up().await?;
            let seen = self.changes;
            self.configure();
            self.unmonitor().await?;
            self.watch_claims().await?;
            self.presence.note(&self.view, &self.job, self.clock.now());
            self.settle_releases().await?;
            self.settle_uncertain().await?;
            let now = self.clock.monotonic();
            self.memory.note_dealing(&self.view, &self.me, now);
            let todo = duties(&self.view, &self.me, &self.job, &self.memory, now);
            let mut waits = todo.is_empty();
            for duty in todo {
                match duty {
                    Duty::ShutDown => {
                        self.shut_down().await?;
                        waits = true;
                    }
                    Duty::TakeTrigger => self.take_trigger().await?,
                    Duty::Elect => self.elect(),
                    Duty::Abdicate => self.abdicate().await?,
                    Duty::Unblock => self.unblock().await?,
                    Duty::Bury => self.bury().await?,
                    Duty::Tidy => self.tidy().await?,
                    Duty::Deal => waits = !self.deal().await?,
                }
            }
            self.settle_parked().await;
            self.mourn().await?;
            if waits && self.changes == seen {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tells the owner what there is to do for it. Whatever is not done is told again when it is new.
    fn tell_what_there_is(&mut self) {
        let is_ready = !self.is_shut_down
            && self.is_connected
            && self.is_settled()
            && !has_ghosts(&self.view, &self.job);
        if is_ready {
            let dealt = self.dealt_to_me();
            // What was dealt in one go looks settled before and after; what was due while it was somebody else's may not have run.
            if !self.is_ready || !dealt.is_subset(&self.memory.told_dealt) {
                self.tell(News::Ready);
            }
            self.memory.told_dealt = dealt;
        }
        self.is_ready = is_ready;
        let missed: BTreeSet<u32> = if is_ready { self.missed() } else { BTreeSet::new() };
        if !missed.is_subset(&self.memory.told_missed) {
            self.tell(News::Missed);
        }
        self.memory.told_missed = missed;
        let orphans = self.orphans();
        if !orphans.is_subset(&self.memory.told_orphans) {
            self.tell(News::Orphaned);
        }
        self.memory.told_orphans = orphans;
    }

    /// Somebody took us out. Nothing new is started; what runs is still released, until the owner leaves.
    async fn shut_down(&mut self) -> Result<(), Error> {
        // When a session ends all its nodes go, and a server may tell that before it says so. Whoever shuts us down takes only one.
        if !self.is_shut_down && self.registry.exists(&self.tree.process(&self.me)).await?.is_none()
        {
            for parked in std::mem::take(&mut self.parked) {
                let _ = parked.reply.send(Err(Refused::Registry(Error::SessionExpired)));
            }
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_shut_down, true) {
            self.tell(News::ShutDown);
        }
        for parked in std::mem::take(&mut self.parked) {
            let _ = parked.reply.send(Err(Refused::Left));
        }
        if let Some(taking) = self.taking.take() {
            let _ = taking.reply.send(Err(Refused::Left));
        }
        self.abdicate().await
    }

    pub(super) fn configure(&mut self) {
        let Some(document) = self.view.config.as_ref().and_then(CachedNode::document) else {
            return;
        };
        if self.config.as_ref() == Some(document) {
            return;
        }
        self.config = Some(document.clone());
        match Job::read(&self.job.name, &document.data) {
            Ok(job) if job == *self.job => {}
            Ok(job) => {
                self.job = Arc::new(job);
                self.tell(News::Configured(Arc::clone(&self.job)));
            }
            Err(error) => {
                tracing::error!(job = %self.job.name, %error, "the new configuration cannot be read; the last one goes on");
                self.tell(News::Unreadable(error.to_string()));
            }
        }
    }

    async fn take_trigger(&mut self) -> Result<(), Error> {
        let path = self.tree.trigger(&self.me);
        let node = self.registry.get(&path).await?;
        let is_new = |(created, _): &(Zxid, InstanceRequest)| {
            node.as_ref().is_none_or(|node| node.stat.created != *created)
        };
        // One whose taking away was not answered: it is gone, so it was ours.
        if let Some((_, trigger)) = self.memory.trigger.take_if(|before| is_new(before)) {
            self.heed(trigger);
        }
        match node {
            Some(node) => {
                let trigger = InstanceRequest::read(&node.data);
                match self.registry.delete(&path, ExpectedVersion::Version(node.stat.version)).await
                {
                    Ok(_) => {
                        self.memory.trigger = None;
                        self.heed(trigger);
                    }
                    // Somebody else took it away, or says something else by now.
                    Err(Error::NotFound { .. } | Error::Conflict { .. }) => {
                        self.memory.trigger = None;
                    }
                    Err(error) => {
                        if error.is_outage() {
                            self.memory.trigger = Some((node.stat.created, trigger));
                        }
                        return Err(error);
                    }
                }
            }
            // Before the watch is heard: another one may have come since.
            None => self.view.record_read(&path, None),
        }
        self.catch_up().await
    }

    fn heed(&self, trigger: InstanceRequest) {
        match trigger {
            InstanceRequest::Run(ask) => self.tell(News::Triggered(Box::new(ask))),
            InstanceRequest::Cancel(shards) => self.cancel(&shards),
        }
    }

    fn cancel(&self, shards: &BTreeSet<u32>) {
        let asked =
            self.held.iter().filter(|(shard, _)| shards.is_empty() || shards.contains(shard));
        for (_, held) in asked {
            held.hold.cancel().cancel(CancelReason::Requested);
        }
    }

    /// Leadership first, then ourselves; whatever fails ends with the session.
    async fn leave(&mut self) {
        let result = async {
            self.catch_up().await?;
            self.settle_releases().await?;
            self.abdicate().await?;
            self.registry.delete(&self.tree.instance(&self.me), ExpectedVersion::Any).await
        }
        .await;
        match result {
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => {
                tracing::warn!(job = %self.job.name, instance = %self.me, %error, "could not leave properly");
            }
        }
        // Elections and turns end here, before the process may go on with the same name.
        self.beside.shutdown().await;
    }

    /// Hands an answer back; nobody may be waiting for it any more.
    pub(super) fn answer<T>(reply: oneshot::Sender<T>, answer: T) {
        let _ = reply.send(answer);
    }
}
