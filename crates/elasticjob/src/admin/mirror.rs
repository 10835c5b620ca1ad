//! All jobs of a registry, kept up to date from a watch, so that a list costs no request however many jobs there are.
//!
//! The watch says where something changed. Of what a list shows, the job is read anew (a handful of requests); of what only comes and goes (running,
//! waiting to be taken over) the place says enough. Changes are gathered for a moment, so that a busy job is read once and told once.
//!
//! While the registry cannot be reached, the mirror shows what it last saw, and says that it is not current. Whoever changed something through this
//! console has it [looked at](Mirror::look) before the answer, so that the next list shows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use crate::{
    admin::{Admin, AdminError, Instance, Outline},
    coordination::tree::{JobTree, Part, Place},
    job::JobName,
    registry::{Error, Event, Namespace, Path, SessionState},
    runtime::Clock,
};
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::broadcast;

/// How long changes are gathered before they are told.
const GATHER: Duration = Duration::from_millis(100);
/// How long after a failed look the next one comes.
const AGAIN: Duration = Duration::from_secs(1);
/// How many jobs are read at once.
const IN_FLIGHT: usize = 128;
/// From so many instances on, those who left are looked for whenever there are twice as many.
const MANY: usize = 1_024;
/// How many changes a listener may be behind before it has to look at everything again.
const BACKLOG: usize = 4_096;

/// What happened, for those who listen.
#[derive(Debug, Clone)]
pub enum Change {
    /// What a list says of a job; nothing if it is gone.
    Job(String, Option<Arc<Outline>>),
    /// Something about a job's shards.
    Shards(String),
    /// Everything was read anew.
    All,
    /// The registry answers, or does not.
    Connection(bool),
}

/// All jobs of a registry.
#[derive(Debug)]
pub struct Mirror {
    seen: RwLock<Seen>,
    tell: broadcast::Sender<Change>,
}

/// What the mirror shows.
#[derive(Debug, Default)]
pub struct Seen {
    /// By name.
    pub jobs: BTreeMap<String, Arc<Outline>>,
    /// What comes and goes, by job.
    pub bustle: BTreeMap<String, Bustle>,
    /// What instances say of themselves, by id: the same in all their jobs. Some may be gone.
    pub instances: BTreeMap<String, Instance>,
    /// Since when it is so; nothing before everything was read once.
    pub as_of: Option<Timestamp>,
    /// Whether changes are being told.
    pub is_current: bool,
}

/// What comes and goes in a job: shards, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bustle {
    /// Each with when it began, by the registry's clock, or was first seen to run.
    pub running: BTreeMap<u32, Timestamp>,
    /// Shards that are disabled.
    pub disabled: BTreeSet<u32>,
    /// Shards with a misfire mark.
    pub misfired: BTreeSet<u32>,
    /// Shards that await failover.
    pub waiting: BTreeSet<u32>,
}

impl Default for Mirror {
    fn default() -> Self {
        Self { seen: RwLock::default(), tell: broadcast::Sender::new(BACKLOG) }
    }
}

impl Mirror {
    /// What there is to see now.
    pub fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What happens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Change> {
        self.tell.subscribe()
    }

    /// Reads a job anew.
    pub async fn look(&self, admin: &Admin, job: &str) -> Result<(), AdminError> {
        let outline = admin.outline(job).await?.map(Arc::new);
        self.show(job, outline);
        Ok(())
    }

    /// The registry does not answer.
    pub fn cut_off(&self) {
        let was_current = self.change(|seen| std::mem::replace(&mut seen.is_current, false));
        if was_current {
            self.say(Change::Connection(false));
        }
    }

    /// Follows a registry until it is closed, or its namespace cannot be watched.
    pub async fn follow(&self, admin: &Admin) -> Result<(), AdminError> {
        let (registry, clock) = (&*admin.registry, &*admin.clock);
        let namespace = registry.namespace();
        let ledger = namespace.sibling("ledger").map_err(|error| AdminError::Invalid {
            problem: error.to_string(),
            hint: "choose another namespace".to_owned(),
        })?;
        let mut tree = registry.watch(namespace.path()).await?;
        let mut pages = registry.watch(ledger.path()).await?;
        let mut states = registry.session().states();
        let mut gathered = Gathered::default();
        loop {
            let event = tokio::select! {
                // A watch says nothing while it is cut off.
                state = states.next() => {
                    if matches!(state, Some(SessionState::Suspended(_) | SessionState::Lost(_))) {
                        self.cut_off();
                    }
                    match state {
                        Some(_) => continue,
                        None => return Ok(()),
                    }
                }
                event = tree.next() => {
                    event.map(|event| self.note(&event, namespace, clock.now(), &mut gathered))
                }
                event = pages.next() => event.map(|event| gathered.page(&event, ledger.path())),
            };
            if event.is_none() {
                return Ok(());
            }
            // A snapshot is walked while it is waited for, and only then.
            if !tree.is_current() || !pages.is_current() {
                if !tree.is_current() {
                    self.cut_off();
                }
                continue;
            }
            let mut pause = GATHER;
            // Until all that is known to have changed was read.
            loop {
                clock.sleep_until(clock.monotonic() + pause).await;
                while let Some(event) = tree.try_next() {
                    self.note(&event, namespace, clock.now(), &mut gathered);
                }
                while let Some(event) = pages.try_next() {
                    gathered.page(&event, ledger.path());
                }
                if !tree.is_current() {
                    break;
                }
                match self.catch_up(&mut gathered, admin, clock).await {
                    Ok(()) => break,
                    Err(AdminError::Unreachable { source: Error::Closed, .. }) => return Ok(()),
                    Err(error) => {
                        tracing::debug!(%error, "a registry cannot be read: trying again");
                        self.cut_off();
                        pause = AGAIN;
                    }
                }
            }
        }
    }

    /// Takes note of a change in the tree.
    fn note(&self, event: &Event, namespace: &Namespace, now: Timestamp, gathered: &mut Gathered) {
        let (path, since) = match event {
            Event::Init => {
                gathered.snapshot = Some(BTreeSet::new());
                self.change(|seen| seen.bustle.clear());
                return;
            }
            Event::InitDone => {
                let names = gathered.snapshot.take().unwrap_or_default();
                self.change(|seen| seen.jobs.retain(|job, _| names.contains(job)));
                gathered.jobs.extend(names);
                gathered.is_whole = true;
                return;
            }
            Event::InitApply { path, stat } => {
                (path, Some(Timestamp::from_millisecond(stat.changed_at_ms).unwrap_or(now)))
            }
            Event::Apply { path } => (path, Some(now)),
            Event::Delete { path } => (path, None),
        };
        let Some(name) = path.below(namespace.path()).and_then(|below| below.split('/').next())
        else {
            return;
        };
        let place = match name.parse::<JobName>() {
            Ok(job) => JobTree::new(namespace, &job).ok().and_then(|tree| tree.place(path)),
            Err(_) => Some(Place::Root),
        };
        if let Some(snapshot) = &mut gathered.snapshot {
            snapshot.insert(name.to_owned());
        }
        match place {
            Some(
                Place::Root
                | Place::Config
                | Place::Server(_)
                | Place::Instance(_)
                | Place::Shard(_, Part::Owner),
            ) => {
                gathered.jobs.insert(name.to_owned());
                gathered.shards.insert(name.to_owned());
            }
            Some(Place::Shard(shard, part)) => {
                self.change(|seen| seen.bustle(name, since, shard, part));
                gathered.shards.insert(name.to_owned());
            }
            Some(Place::FailoverItem(shard)) => {
                self.change(|seen| seen.waiting(name, since.is_some(), shard));
                gathered.shards.insert(name.to_owned());
            }
            Some(Place::Leader | Place::Necessary | Place::Processing | Place::Trigger(_)) => {
                gathered.shards.insert(name.to_owned());
            }
            _ => {}
        }
    }

    /// Reads what has to be read anew, and tells.
    async fn catch_up(
        &self,
        gathered: &mut Gathered,
        admin: &Admin,
        clock: &dyn Clock,
    ) -> Result<(), AdminError> {
        if gathered.snapshot.is_some() {
            return Ok(());
        }
        let is_whole = gathered.is_whole;
        let jobs: Vec<String> = gathered.jobs.iter().cloned().collect();
        for batch in jobs.chunks(IN_FLIGHT) {
            let looks = batch.iter().map(|job| async move { (job, admin.outline(job).await) });
            for (job, outline) in join_all(looks).await {
                let outline = outline?.map(Arc::new);
                if is_whole {
                    self.change(|seen| seen.put(job, outline));
                } else {
                    self.show(job, outline);
                }
                gathered.jobs.remove(job);
            }
        }
        self.meet(gathered, &jobs, admin).await?;
        let now = clock.now();
        let was_current = self.change(|seen| {
            seen.as_of = Some(now);
            std::mem::replace(&mut seen.is_current, true)
        });
        if !was_current {
            self.say(Change::Connection(true));
        }
        let shards = std::mem::take(&mut gathered.shards);
        if std::mem::take(&mut gathered.is_whole) {
            self.say(Change::All);
        } else {
            for job in shards {
                self.say(Change::Shards(job));
            }
        }
        Ok(())
    }

    /// Asks those who came what they say of themselves: once each, in one of their jobs.
    async fn meet(
        &self,
        gathered: &mut Gathered,
        jobs: &[String],
        admin: &Admin,
    ) -> Result<(), AdminError> {
        self.seen(|seen| {
            for (name, outline) in jobs.iter().filter_map(|job| seen.jobs.get_key_value(job)) {
                let Ok(job) = name.parse::<JobName>() else { continue };
                let new = outline.instances.iter().filter(|id| !seen.instances.contains_key(*id));
                gathered.newcomers.extend(new.map(|id| (id.clone(), job.clone())));
            }
        });
        let newcomers: Vec<(String, JobName)> = gathered.newcomers.clone().into_iter().collect();
        for batch in newcomers.chunks(IN_FLIGHT) {
            let looks = batch.iter().map(|(id, job)| admin.instance(job, id));
            for ((id, _), instance) in batch.iter().zip(join_all(looks).await) {
                match instance {
                    Ok(Some(instance)) => self.change(|seen| seen.meet(instance)),
                    Err(error @ AdminError::Unreachable { .. }) => return Err(error),
                    // It left, or it is not ours to look at.
                    Ok(None) | Err(_) => {}
                }
                gathered.newcomers.remove(id);
            }
        }
        Ok(())
    }

    fn show(&self, job: &str, outline: Option<Arc<Outline>>) {
        if self.change(|seen| seen.put(job, outline.clone())) {
            self.say(Change::Job(job.to_owned(), outline));
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut self.seen.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn say(&self, change: Change) {
        // Perhaps nobody listens.
        let _ = self.tell.send(change);
    }
}

/// What changed and was not told yet.
#[derive(Debug, Default)]
struct Gathered {
    /// Jobs to be read anew.
    jobs: BTreeSet<String>,
    /// Jobs of whose shards something is to be told.
    shards: BTreeSet<String>,
    /// Instances of which is not known yet what they say of themselves, each with a job of theirs.
    newcomers: BTreeMap<String, JobName>,
    /// What a snapshot showed so far, while there is one.
    snapshot: Option<BTreeSet<String>>,
    /// Everything is to be read anew.
    is_whole: bool,
}

impl Gathered {
    /// Takes note of a change in the ledger.
    fn page(&mut self, event: &Event, ledger: &Path) {
        if let Event::Apply { path } | Event::Delete { path } = event
            && let Some(below) = path.below(ledger)
            && let Some((job, _)) = below.split_once('/')
        {
            self.shards.insert(job.to_owned());
        }
    }
}

impl Seen {
    /// Says whether that is news.
    fn put(&mut self, job: &str, outline: Option<Arc<Outline>>) -> bool {
        let Some(outline) = outline else {
            self.bustle.remove(job);
            return self.jobs.remove(job).is_some();
        };
        let is_news = self.jobs.get(job).is_none_or(|known| *known != outline);
        self.jobs.insert(job.to_owned(), outline);
        is_news
    }

    /// Somebody said something of themselves. Those who left are forgotten once there are many of them.
    fn meet(&mut self, instance: Instance) {
        self.instances.insert(instance.id.clone(), instance);
        let there = self.jobs.values().flat_map(|outline| &outline.instances);
        if self.instances.len().is_power_of_two() && self.instances.len() >= MANY {
            let there: BTreeSet<&String> = there.collect();
            self.instances.retain(|id, _| there.contains(id));
        }
    }

    /// Something of a shard is there since then, or no longer.
    fn bustle(&mut self, job: &str, since: Option<Timestamp>, shard: u32, part: Part) {
        let bustle = self.bustle.entry(job.to_owned()).or_default();
        match (part, since) {
            (Part::Running, None) => drop(bustle.running.remove(&shard)),
            // A change may be told that was seen already.
            (Part::Running, Some(since)) => {
                bustle.running.entry(shard).or_insert(since);
            }
            (Part::Disabled, _) => note(&mut bustle.disabled, since.is_some(), shard),
            (Part::Misfire, _) => note(&mut bustle.misfired, since.is_some(), shard),
            _ => {}
        }
    }

    fn waiting(&mut self, job: &str, is_there: bool, shard: u32) {
        note(&mut self.bustle.entry(job.to_owned()).or_default().waiting, is_there, shard);
    }
}

fn note(shards: &mut BTreeSet<u32>, is_there: bool, shard: u32) {
    if is_there {
        shards.insert(shard);
    } else {
        shards.remove(&shard);
    }
}
