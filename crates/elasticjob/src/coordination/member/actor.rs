//! The task that owns a member's view and writes in its name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    duties::{Duty, Memory, duties, is_enabled, leads},
    handle::{Claimed, Command, News, Refused},
    join::{JoinError, Joining, entry, settle_configuration},
};
use crate::{
    coordination::{
        claim::{Claimant, Refusal, Stakes},
        latch,
        ledger::{Page, Seen, State},
        sharding::{Dealer, plan},
        tree::{JobTree, Part, Place},
        view::{Document, Known, View},
    },
    job::{Difference, FencingToken, Fire, InstanceId, Job, Strategy},
    registry::{
        Committed, Create, Done, Error, Event, Expected, Op, Registry, SessionId, SessionState,
        States, Version, Watch, Zxid, plant,
    },
    runtime::{Clock, Monotonic, Randomness},
};

/// How long a candidate queues for leadership before it looks again whether that is still needed.
const ELECTION: Duration = Duration::from_secs(10);
/// How long to wait before trying again what the registry did not do.
const AGAIN: Duration = Duration::from_millis(500);
/// How often one look may find something to do before the loop hears what else is going on.
const ROUNDS: usize = 8;

pub(super) struct Actor {
    registry: Arc<dyn Registry>,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    dealer: Option<Arc<dyn Dealer>>,
    me: InstanceId,
    session: SessionId,
    tree: JobTree,
    view: View,
    watch: Watch,
    states: States,
    job: Job,
    /// The configuration document `job` was read from, or the one that could not be read.
    config: Option<Document>,
    memory: Memory,
    /// Pages of the ledger as last seen; a conflict says when one is old.
    pages: BTreeMap<u32, Seen>,
    /// The transaction of each claim we hold.
    claims: BTreeMap<u32, Zxid>,
    /// Claims that wait until shards are dealt.
    parked: Vec<Parked>,
    elections: JoinSet<()>,
    is_shut_down: bool,
    inbox: mpsc::Receiver<Box<Command>>,
    told: mpsc::UnboundedSender<News>,
}

struct Parked {
    fire: Fire,
    until: Monotonic,
    reply: oneshot::Sender<Result<Claimed, Refused>>,
}

/// What came of one try to claim.
enum Attempt {
    Settled(Result<Claimed, Refused>),
    /// Shards are being dealt: try again when that is over.
    Wait,
}

impl Actor {
    pub(super) async fn join(
        registry: Arc<dyn Registry>,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
        dealer: Option<Arc<dyn Dealer>>,
        joining: Joining,
        inbox: mpsc::Receiver<Box<Command>>,
        told: mpsc::UnboundedSender<News>,
    ) -> Result<(Self, Vec<Difference>), JoinError> {
        let name = joining.local.name.clone();
        let outage = |source| JoinError::Registry { job: name.to_string(), source };
        let tree = JobTree::new(registry.namespace(), &name).map_err(|error| {
            outage(Error::Invalid {
                path: registry.namespace().path().clone(),
                reason: error.to_string(),
            })
        })?;
        let session = registry.session();
        let (job, drift) = settle_configuration(&*registry, &tree, &joining).await?;
        plant(&*registry, tree.ledger()).await.map_err(outage)?;
        let watch = registry.watch(tree.root()).await.map_err(outage)?;
        let mut actor = Self {
            states: session.states(),
            session: session.id(),
            me: joining.instance.id.clone(),
            view: View::new(tree.clone()),
            tree,
            watch,
            job,
            config: None,
            memory: Memory::default(),
            pages: BTreeMap::new(),
            claims: BTreeMap::new(),
            parked: Vec::new(),
            elections: JoinSet::new(),
            is_shut_down: false,
            registry,
            clock,
            randomness,
            dealer,
            inbox,
            told,
        };
        actor.enter(&joining).await.map_err(outage)?;
        actor.config = actor.view.config.as_ref().and_then(Known::read).cloned();
        Ok((actor, drift))
    }

    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    async fn enter(&mut self, joining: &Joining) -> Result<(), Error> {
        loop {
            while !self.view.is_current() {
                let event = self.watch.next().await.ok_or(Error::Closed)?;
                self.view.apply(&event);
            }
            self.catch_up().await?;
            let ops = entry(&self.view, &self.job, &joining.instance, self.session);
            match self.registry.multi(ops).await {
                Ok(_) => return self.catch_up().await,
                // Somebody made what we were about to make. Our own name is ours alone, so it is not that.
                Err(Error::Member { cause, .. }) if matches!(&*cause, Error::Exists { path } if *path != self.tree.instance(&self.me)) =>
                {
                    self.registry.sync().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Until the member leaves, is shut down, or its session ends. Boxed, because a future has room twice for what it is given.
    pub(super) async fn run(mut self: Box<Self>) {
        loop {
            let again = match self.keep_house().await {
                Ok(()) => None,
                Err(error) => {
                    tracing::warn!(job = %self.job.name, instance = %self.me, %error, "could not keep house; trying again");
                    Some(self.clock.monotonic() + AGAIN)
                }
            };
            let clock = Arc::clone(&self.clock);
            let wake = self.parked.iter().map(|parked| parked.until).chain(again).min();
            tokio::select! {
                biased;
                state = self.states.next() => match state {
                    Some(SessionState::Lost(_) | SessionState::Renewed { .. }) | None => {
                        let _ = self.told.send(News::SessionLost);
                        return;
                    }
                    Some(SessionState::Connected(_) | SessionState::Suspended(_)) => {}
                },
                event = self.watch.next() => match event {
                    Some(event) => drop(self.view.apply(&event)),
                    None => return,
                },
                command = self.inbox.recv() => match command.map(|command| *command) {
                    Some(Command::Leave { reply }) => {
                        self.leave().await;
                        let _ = reply.send(());
                        return;
                    }
                    Some(command) => self.obey(command).await,
                    None => return,
                },
                Some(_) = self.elections.join_next() => self.memory.electing = false,
                () = async { clock.sleep_until(wake.expect("guarded")).await }, if wake.is_some() => {}
            }
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Claim { fire, patience, reply } => {
                let until = self.clock.monotonic() + patience;
                self.parked.push(Parked { fire, until, reply });
            }
            Command::Release { fire, ended, reply } => {
                let _ = reply.send(self.release(&fire, ended).await);
            }
            Command::Leave { .. } => {}
        }
    }

    /// Takes everything the watch has told and reads what has to be read: the view is current as of our last write.
    async fn catch_up(&mut self) -> Result<(), Error> {
        loop {
            while let Some(event) = self.watch.try_next() {
                self.view.apply(&event);
            }
            let mut dirty = self.view.dirty();
            // Of the claims, ours have to be known: whether they are still there decides what we may give back.
            let unread = self.claims.keys().filter(|shard| self.is_unread(**shard));
            dirty.extend(unread.map(|shard| self.tree.shard(*shard, Part::Running)));
            if dirty.is_empty() || !self.view.is_current() {
                return Ok(());
            }
            let nodes = join_all(dirty.iter().map(|path| self.registry.get(path))).await;
            for (path, node) in dirty.iter().zip(nodes) {
                self.view.learn(path, node?);
            }
        }
    }

    /// Does what there is to do.
    async fn keep_house(&mut self) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            self.catch_up().await?;
            self.configure();
            let todo = duties(&self.view, &self.me, &self.job, &self.memory);
            if todo.is_empty() {
                break;
            }
            for duty in todo {
                match duty {
                    Duty::ShutDown => {
                        self.shut_down().await?;
                        return Ok(());
                    }
                    Duty::TakeTrigger => self.take_trigger().await?,
                    Duty::Elect => self.elect(),
                    Duty::Abdicate => self.abdicate().await?,
                    Duty::Deal => {
                        if !self.deal().await? {
                            return self.settle_parked().await;
                        }
                    }
                }
            }
        }
        self.settle_parked().await
    }

    /// Somebody took us out. Nothing new is started; what runs is still released, until the owner leaves.
    async fn shut_down(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_shut_down, true) {
            let _ = self.told.send(News::ShutDown);
        }
        for parked in std::mem::take(&mut self.parked) {
            let _ = parked.reply.send(Err(Refused::Left));
        }
        self.abdicate().await
    }

    fn configure(&mut self) {
        let Some(document) = self.view.config.as_ref().and_then(Known::read) else { return };
        if self.config.as_ref() == Some(document) {
            return;
        }
        self.config = Some(document.clone());
        match Job::read(&self.job.name, &document.data) {
            Ok(job) if job == self.job => {}
            Ok(job) => {
                self.job = job;
                let _ = self.told.send(News::Configured(Box::new(self.job.clone())));
            }
            Err(error) => {
                tracing::error!(job = %self.job.name, %error, "the new configuration cannot be read; the last one goes on");
                let _ = self.told.send(News::Unreadable(error.to_string()));
            }
        }
    }

    async fn take_trigger(&mut self) -> Result<(), Error> {
        match self.registry.delete(&self.tree.trigger(&self.me), Expected::Any).await {
            Ok(_) => drop(self.told.send(News::Triggered)),
            Err(Error::Absent { .. }) => {}
            Err(error) => return Err(error),
        }
        self.catch_up().await
    }

    fn elect(&mut self) {
        self.memory.electing = true;
        let (registry, tree, me) = (Arc::clone(&self.registry), self.tree.clone(), self.me.clone());
        let (session, ticket) = (self.session, self.randomness.bits());
        self.elections.spawn(async move {
            if let Err(error) = elect(&*registry, &tree, &me, session, ticket).await {
                tracing::warn!(instance = %me, %error, "an election did not come to an end");
            }
        });
    }

    async fn abdicate(&mut self) -> Result<(), Error> {
        if leads(&self.view, &self.me) == Some(true) {
            match self.registry.delete(&self.tree.leader(), Expected::Any).await {
                Ok(_) | Err(Error::Absent { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.catch_up().await
    }

    /// Deals the shards; `false` if it has to wait for somebody else's dealing to end.
    async fn deal(&mut self) -> Result<bool, Error> {
        let here = Op::Check { path: self.tree.instance(&self.me), expected: Expected::Any };
        if self.view.processing {
            return Ok(false);
        }
        let processing = Create::ephemeral(&self.tree.processing(), "", self.session);
        match self.registry.multi(vec![here.clone(), Op::Create(processing)]).await {
            Ok(_) => {}
            Err(Error::Member { .. }) => return self.catch_up().await.map(|()| true),
            Err(error) => return Err(error),
        }
        // From here on nobody starts anything new, and what is seen now was committed before.
        self.catch_up().await?;
        self.configure();
        let done = Op::Delete { path: self.tree.processing(), expected: Expected::Any };
        let dealer: &dyn Dealer = match &self.dealer {
            Some(dealer) => &**dealer,
            None => &Strategy::of(&self.job),
        };
        let now_ms = self.clock.now().as_millisecond();
        let leader = self.view.leader.clone();
        let planned = plan(&self.view, &self.job, dealer, now_ms)
            .filter(|_| leads(&self.view, &self.me) == Some(true));
        let Some(planned) = planned else {
            self.registry.multi(vec![done]).await?;
            return self.catch_up().await.map(|()| false);
        };
        let mut ops = vec![here, Op::Check { path: self.tree.leader(), expected: Expected::Any }];
        ops.extend(planned.ops);
        if self.view.necessary {
            ops.push(Op::Delete { path: self.tree.necessary(), expected: Expected::Any });
        }
        ops.push(done.clone());
        match self.registry.multi(ops).await {
            Ok(_) => {
                tracing::info!(job = %self.job.name, instances = planned.instances.len(), shards = planned.owners.len(), "shards dealt");
                self.memory.dealt_for = Some((planned.instances, self.job.shards.get()));
                self.memory.later = planned.later;
            }
            Err(Error::Member { index, cause }) => {
                tracing::debug!(index, %cause, "the tree changed while shards were dealt: looking again");
                match self.registry.multi(vec![done]).await {
                    Ok(_) | Err(Error::Member { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
        self.catch_up().await?;
        if self.view.leader != leader {
            // Somebody else leads by now and may have dealt before us: they have to deal again.
            self.memory.dealt_for = None;
            let flag = Op::Create(Create::persistent(&self.tree.necessary(), ""));
            match self.registry.multi(vec![flag]).await {
                Ok(_) | Err(Error::Member { .. }) => {}
                Err(error) => return Err(error),
            }
            self.catch_up().await?;
        }
        Ok(true)
    }

    /// Tries every claim that waits.
    async fn settle_parked(&mut self) -> Result<(), Error> {
        for parked in std::mem::take(&mut self.parked) {
            let late = self.clock.monotonic() >= parked.until;
            match self.claim(&parked.fire).await {
                Attempt::Settled(answer) => drop(parked.reply.send(answer)),
                Attempt::Wait if late => drop(parked.reply.send(Err(Refused::Resharding))),
                Attempt::Wait => self.parked.push(parked),
            }
        }
        Ok(())
    }

    async fn claim(&mut self, fire: &Fire) -> Attempt {
        match self.try_claim(fire).await {
            Ok(attempt) => attempt,
            Err(error) => Attempt::Settled(Err(error.into())),
        }
    }

    async fn try_claim(&mut self, fire: &Fire) -> Result<Attempt, Error> {
        self.catch_up().await?;
        if !self.is_settled() {
            return Ok(Attempt::Wait);
        }
        let mut stakes = Stakes(Vec::new());
        for shard in self.mine() {
            stakes.0.push((shard, self.page(shard).await?));
        }
        let mut stakes = stakes.still_due(fire);
        let committed = loop {
            if stakes.0.is_empty() {
                return Ok(Attempt::Settled(Err(Refused::Nothing)));
            }
            let Some(claimant) = self.claimant() else { return Ok(Attempt::Wait) };
            let error = match self.registry.multi(claimant.claim(fire, &stakes)).await {
                Ok(committed) => break committed,
                Err(error) => error,
            };
            match claimant.refusal(&error, &stakes) {
                Some(Refusal::Configuration) => {
                    self.catch_up().await?;
                    return Ok(Attempt::Wait);
                }
                Some(Refusal::Running(shard)) => {
                    self.mark_missed(shard).await?;
                    stakes = stakes.without(shard);
                }
                Some(Refusal::Page(shard)) => {
                    self.pages.remove(&shard);
                    let seen = self.page(shard).await?;
                    stakes = stakes.with_page(shard, &seen).still_due(fire);
                }
                None => return Err(error),
            }
        };
        let shards: Vec<(u32, Version)> =
            stakes.0.iter().map(|(shard, _)| *shard).zip(self.written(&committed)).collect();
        self.recognise(&shards, committed.zxid);
        for (shard, version) in &shards {
            self.claims.insert(*shard, committed.zxid);
            let before = self.pages.remove(shard).unwrap_or_default();
            let page = before.page.started(fire, &self.me);
            self.pages.insert(*shard, Seen { page, version: Some(*version) });
        }
        self.keep_what_is_ours(fire, Claimed { shards, token: FencingToken::new(committed.zxid.0) })
            .await
    }

    /// What our claim created needs no reading: its notifications stand before its answer. Except where something has gone meanwhile.
    fn recognise(&mut self, claimed: &[(u32, Version)], created: Zxid) {
        let mut gone = BTreeSet::new();
        while let Some(event) = self.watch.try_next() {
            match (self.view.apply(&event), event) {
                (Some(Place::Shard(shard, Part::Running)), Event::Delete { .. }) => {
                    gone.insert(shard);
                }
                (_, Event::Init) => return,
                _ => {}
            }
        }
        for (shard, _) in claimed.iter().filter(|(shard, _)| !gone.contains(shard)) {
            self.view.claimed(*shard, &self.me, created);
        }
    }

    /// The claim's answer was a sync: whatever moved before it is seen now, and what is not ours any more is given back.
    async fn keep_what_is_ours(&mut self, fire: &Fire, claimed: Claimed) -> Result<Attempt, Error> {
        self.catch_up().await?;
        let mine = if self.is_settled() { self.mine_or_claimed() } else { Vec::new() };
        let (keep, give_back): (Vec<_>, Vec<_>) =
            claimed.shards.into_iter().partition(|(shard, _)| mine.contains(shard));
        if !give_back.is_empty() {
            let ended =
                give_back.into_iter().map(|(shard, version)| (shard, version, State::Withdrawn));
            self.release(fire, ended.collect()).await?;
        }
        if keep.is_empty() {
            return Ok(Attempt::Wait);
        }
        Ok(Attempt::Settled(Ok(Claimed { shards: keep, token: claimed.token })))
    }

    async fn release(
        &mut self,
        fire: &Fire,
        ended: Vec<(u32, Version, State)>,
    ) -> Result<(), Error> {
        self.catch_up().await?;
        let pages: Vec<(u32, Page, Version)> = ended
            .into_iter()
            .map(|(shard, version, state)| {
                let running = self.pages.get(&shard).cloned().unwrap_or_default().page;
                let page = Page { state, ..running.started(fire, &self.me) };
                (shard, page, version)
            })
            .collect();
        let Some(claimant) = self.claimant() else { return Err(Error::Closed) };
        let together: Vec<_> =
            pages.iter().filter(|(shard, _, _)| self.is_my_claim(*shard)).cloned().collect();
        let released = if together.is_empty() {
            Ok(None)
        } else {
            self.registry.multi(claimant.release(&together)).await.map(Some)
        };
        let mut written = Vec::new();
        match released {
            Ok(None) => {}
            Ok(Some(committed)) => written.extend(self.written(&committed)),
            // One of them changed under us: each for itself, so that the others are not held up.
            Err(Error::Member { .. }) => {
                for page in &together {
                    match self.registry.multi(claimant.release(std::slice::from_ref(page))).await {
                        Ok(_) => {}
                        Err(Error::Member { cause, .. }) => {
                            tracing::warn!(job = %self.job.name, shard = page.0, %cause, "a claim was taken away while it ran");
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error) => return Err(error),
        }
        for (shard, _, _) in &pages {
            self.claims.remove(shard);
            self.pages.remove(shard);
        }
        // What we wrote ourselves need not be read for the next fire.
        for ((shard, page, _), version) in together.into_iter().zip(written) {
            self.pages.insert(shard, Seen { page, version: Some(version) });
        }
        self.catch_up().await
    }

    /// Leadership first, then ourselves; whatever fails ends with the session.
    async fn leave(&mut self) {
        let result = async {
            self.catch_up().await?;
            self.abdicate().await?;
            self.registry.delete(&self.tree.instance(&self.me), Expected::Any).await
        }
        .await;
        if let Err(error) = result {
            tracing::warn!(job = %self.job.name, instance = %self.me, %error, "could not leave properly");
        }
    }

    async fn mark_missed(&mut self, shard: u32) -> Result<(), Error> {
        let ops = vec![
            Op::Check { path: self.tree.shard(shard, Part::Running), expected: Expected::Any },
            Op::Create(Create::persistent(&self.tree.shard(shard, Part::Misfire), "")),
        ];
        match self.registry.multi(ops).await {
            // It is marked already, or the run is over: then there is nothing to mark.
            Ok(_) | Err(Error::Member { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn page(&mut self, shard: u32) -> Result<Seen, Error> {
        if let Some(seen) = self.pages.get(&shard) {
            return Ok(seen.clone());
        }
        let path = self.tree.page(shard);
        let seen = match self.registry.get(&path).await? {
            None => Seen::default(),
            Some(node) => Seen {
                page: Page::read(&node.data)
                    .map_err(|error| Error::Invalid { path, reason: error.to_string() })?,
                version: Some(node.stat.version),
            },
        };
        self.pages.insert(shard, seen.clone());
        Ok(seen)
    }

    /// The versions of the pages a multi wrote, in order.
    fn written(&self, committed: &Committed) -> Vec<Version> {
        let pages = committed.done.iter().filter_map(|done| match done {
            Done::Set(version) => Some(*version),
            Done::Created(path) if path.parent().as_ref() == Some(self.tree.ledger()) => {
                Some(Version(0))
            }
            Done::Created(_) | Done::Deleted | Done::Checked => None,
        });
        pages.collect()
    }

    fn claimant(&self) -> Option<Claimant<'_>> {
        Some(Claimant {
            tree: &self.tree,
            me: &self.me,
            session: self.session,
            config: self.view.config.as_ref()?.read()?.version,
            monitor: self.job.monitor,
            failover: self.job.failover,
        })
    }

    /// Whether who owns what is certain: nobody deals, nobody is about to, every shard has an owner.
    fn is_settled(&self) -> bool {
        let view = &self.view;
        view.is_current()
            && !view.necessary
            && !view.processing
            && (0..self.job.shards.get()).all(|shard| {
                view.shards
                    .get(&shard)
                    .is_some_and(|shard| shard.owner.as_ref().and_then(Known::read).is_some())
            })
    }

    /// Shards that are ours and may run.
    fn mine(&self) -> Vec<u32> {
        self.owned().filter(|shard| !self.claims.contains_key(shard)).collect()
    }

    /// The same, with those we have just claimed.
    fn mine_or_claimed(&self) -> Vec<u32> {
        self.owned().collect()
    }

    fn owned(&self) -> impl Iterator<Item = u32> {
        let enabled = is_enabled(&self.view, &self.me, &self.job) == Some(true);
        let shards = self.view.shards.range(..self.job.shards.get()).filter(move |_| enabled);
        shards
            .filter(|(_, shard)| {
                !shard.disabled
                    && shard.failover.is_none()
                    && shard.owner.as_ref().and_then(Known::text) == Some(self.me.as_str())
            })
            .map(|(shard, _)| *shard)
    }

    fn is_unread(&self, shard: u32) -> bool {
        self.view.shards.get(&shard).is_some_and(|shard| shard.running == Some(Known::Dirty))
    }

    /// Whether `running` is still what our claim created, or was never written.
    fn is_my_claim(&self, shard: u32) -> bool {
        let Some(claim) = self.claims.get(&shard) else { return false };
        if self.job.monitor == crate::job::Monitor::Nothing {
            return true;
        }
        let running = self.view.shards.get(&shard).and_then(|shard| shard.running.as_ref());
        running.and_then(Known::read).is_some_and(|running| running.created == *claim)
    }
}

/// Queues, and becomes leader unless somebody is.
async fn elect(
    registry: &dyn Registry,
    tree: &JobTree,
    me: &InstanceId,
    session: SessionId,
    ticket: u128,
) -> Result<(), Error> {
    let Some(turn) = latch::queue(registry, &tree.election_latch(), ticket, ELECTION).await? else {
        return Ok(());
    };
    let ops = vec![
        turn.check(),
        Op::Check { path: tree.instance(me), expected: Expected::Any },
        Op::Create(Create::ephemeral(&tree.leader(), me.to_string(), session)),
    ];
    let elected = registry.multi(ops).await;
    turn.pass(registry).await;
    match elected {
        Ok(_) => {
            tracing::info!(instance = %me, "leads");
            Ok(())
        }
        // Somebody else leads, or we are not there any more.
        Err(Error::Member { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
