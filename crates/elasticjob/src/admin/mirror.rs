//! A local copy of all jobs of a registry, kept up to date by a watch, so that a list costs no request, however many jobs there are.
//!
//! The watch reports the paths that change. If a path affects the outline of a job, the job is read again (a handful of requests). If it is only a mark
//! of a shard (running, disabled, misfire, awaiting failover), the path alone is enough. The ledger is watched only for jobs whose shards are looked at
//! ([`Mirror::follow_ledger`]), because every fire changes it. Changes are collected for a moment, so that a busy job is read
//! once and published once.
//!
//! While the registry cannot be reached, the mirror keeps its last state and is marked as not current. A caller that changes a job through the same
//! process [refreshes](Mirror::refresh) it before it responds, so that the next list shows the change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use super::followed_ledgers::{FollowedLedgers, LedgerRequests};
use crate::{
    admin::{Admin, AdminError, Instance, Outline},
    coordination::tree::{JobTree, ShardNode, TreeNode},
    job::JobName,
    registry::{Error, Event, Namespace, SessionState},
    runtime::{Clock, Monotonic},
};
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::broadcast;

/// How long changes are collected before the affected jobs are read.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Time between a failed read and the next one.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of jobs or instances read concurrently.
const MAX_IN_FLIGHT: usize = 128;
/// From this number of known instances on, those that have left are dropped whenever the number reaches a power of two.
const PRUNE_THRESHOLD: usize = 1_024;
/// How many changes a subscriber may lag behind before it loses some and has to read everything again.
const CHANGE_BUFFER: usize = 4_096;

/// A change of the mirror, as subscribers receive it.
#[derive(Debug, Clone)]
pub enum Change {
    /// The new outline of a job; none if the job was removed.
    Job(String, Option<Arc<Outline>>),
    /// The shards of this job changed.
    Shards(String),
    /// Everything was read again.
    All,
    /// Whether the registry is connected.
    Connection(bool),
}

/// A local copy of all jobs of a registry; [`follow`](Self::follow) keeps it up to date.
#[derive(Debug)]
pub struct Mirror {
    snapshot: RwLock<Snapshot>,
    changes: broadcast::Sender<Change>,
    ledgers: LedgerRequests,
}

/// The state of the mirror.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Outlines by job name.
    pub jobs: BTreeMap<String, Arc<Outline>>,
    /// Marks of shards, by job name.
    pub activity: BTreeMap<String, Activity>,
    /// Instances by id; an instance describes itself the same way in all its jobs. Some may be gone already.
    pub instances: BTreeMap<String, Instance>,
    /// When the state was last read; none until everything has been read once.
    pub as_of: Option<Timestamp>,
    /// Whether the registry is connected and changes arrive.
    pub is_current: bool,
}

/// Marks of a job's shards, by shard number, kept up to date from the paths that the watch reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// Running shards with their start: the registry's time if the mark existed at the first read, else when the watch reported it.
    pub running: BTreeMap<u32, Timestamp>,
    pub disabled: BTreeSet<u32>,
    /// Shards with a misfire mark.
    pub misfired: BTreeSet<u32>,
    /// Shards that await failover.
    pub waiting: BTreeSet<u32>,
}

impl Default for Mirror {
    fn default() -> Self {
        Self {
            snapshot: RwLock::default(),
            changes: broadcast::Sender::new(CHANGE_BUFFER),
            ledgers: LedgerRequests::default(),
        }
    }
}

impl Mirror {
    /// Calls `query` with the current state; updates wait until it returns.
    pub fn read<T>(&self, query: impl FnOnce(&Snapshot) -> T) -> T {
        query(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Subscribes to changes from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// A client looks at the shards of this job: for a while, changes of its ledger are published, too.
    pub fn follow_ledger(&self, job: &JobName, now: Monotonic) {
        self.ledgers.add(job, now);
    }

    /// Reads a job again and publishes the change.
    pub async fn refresh(&self, admin: &Admin, job: &str) -> Result<(), AdminError> {
        let outline = admin.outline(job).await?.map(Arc::new);
        self.update_job(job, outline);
        Ok(())
    }

    /// Marks the mirror as not current: the registry does not answer.
    pub fn mark_disconnected(&self) {
        let was_current =
            self.update(|snapshot| std::mem::replace(&mut snapshot.is_current, false));
        if was_current {
            self.publish(Change::Connection(false));
        }
    }

    /// Keeps the mirror up to date until the registry is closed; an error if its namespace cannot be watched.
    pub async fn follow(&self, admin: &Admin) -> Result<(), AdminError> {
        let (registry, clock) = (&*admin.registry, &*admin.clock);
        let namespace = registry.namespace();
        let mut tree = registry.watch(namespace.path()).await?;
        let mut ledgers = FollowedLedgers::new(admin, &self.ledgers);
        let mut states = registry.session().states();
        let mut pending = PendingChanges::default();
        loop {
            let event = tokio::select! {
                // A watch reports nothing while it is disconnected.
                state = states.next() => {
                    if matches!(state, Some(SessionState::Suspended(_) | SessionState::Lost(_))) {
                        self.mark_disconnected();
                    }
                    match state {
                        Some(_) => continue,
                        None => return Ok(()),
                    }
                }
                event = tree.next() => {
                    event.map(|event| self.apply_event(&event, namespace, clock.now(), &mut pending))
                }
                job = ledgers.next() => {
                    pending.shards.insert(job.to_string());
                    Some(())
                }
            };
            if event.is_none() {
                return Ok(());
            }
            // The initial walk of a watch advances only while `next` is awaited, so it is awaited until the watch is current.
            if !tree.is_current() {
                self.mark_disconnected();
                continue;
            }
            let mut delay = DEBOUNCE;
            // Repeats until everything that is known to have changed has been read.
            loop {
                clock.sleep_until(clock.monotonic() + delay).await;
                while let Some(event) = tree.try_next() {
                    self.apply_event(&event, namespace, clock.now(), &mut pending);
                }
                if !tree.is_current() {
                    break;
                }
                match self.read_pending(&mut pending, admin, clock).await {
                    Ok(()) => break,
                    Err(AdminError::Unreachable { source: Error::Closed, .. }) => return Ok(()),
                    Err(error) => {
                        tracing::debug!(%error, "mirror refresh failed, retrying");
                        self.mark_disconnected();
                        delay = RETRY_DELAY;
                    }
                }
            }
        }
    }

    /// Applies a change of a shard's mark at once, and remembers which jobs have to be read again.
    fn apply_event(
        &self,
        event: &Event,
        namespace: &Namespace,
        now: Timestamp,
        pending: &mut PendingChanges,
    ) {
        let (path, since) = match event {
            Event::Init => {
                pending.initial_names = Some(BTreeSet::new());
                self.update(|snapshot| snapshot.activity.clear());
                return;
            }
            Event::InitDone => {
                let names = pending.initial_names.take().unwrap_or_default();
                self.update(|snapshot| snapshot.jobs.retain(|job, _| names.contains(job)));
                pending.jobs.extend(names);
                pending.all_changed = true;
                return;
            }
            Event::InitApply { path, stat, .. } => {
                (path, Some(Timestamp::from_millisecond(stat.changed_at_ms).unwrap_or(now)))
            }
            Event::Apply { path } => (path, Some(now)),
            Event::Delete { path } => (path, None),
        };
        let Some(name) =
            path.relative_to(namespace.path()).and_then(|below| below.split('/').next())
        else {
            return;
        };
        let place = match name.parse::<JobName>() {
            Ok(job) => JobTree::new(namespace, &job).ok().and_then(|tree| tree.node_at(path)),
            Err(_) => Some(TreeNode::Root),
        };
        if let Some(names) = &mut pending.initial_names {
            names.insert(name.to_owned());
        }
        match place {
            Some(
                TreeNode::Root
                | TreeNode::Config
                | TreeNode::Server(_)
                | TreeNode::Instance(_)
                | TreeNode::Shard(_, ShardNode::Owner),
            ) => {
                pending.jobs.insert(name.to_owned());
                pending.shards.insert(name.to_owned());
            }
            Some(TreeNode::Shard(shard, part)) => {
                self.update(|snapshot| snapshot.update_shard(name, since, shard, part));
                pending.shards.insert(name.to_owned());
            }
            Some(TreeNode::FailoverItem(shard)) => {
                self.update(|snapshot| snapshot.update_failover(name, since.is_some(), shard));
                pending.shards.insert(name.to_owned());
            }
            Some(
                TreeNode::Leader
                | TreeNode::Necessary
                | TreeNode::Processing
                | TreeNode::Trigger(_),
            ) => {
                pending.shards.insert(name.to_owned());
            }
            _ => {}
        }
    }

    /// Reads everything that has changed, and publishes it.
    async fn read_pending(
        &self,
        pending: &mut PendingChanges,
        admin: &Admin,
        clock: &dyn Clock,
    ) -> Result<(), AdminError> {
        if pending.initial_names.is_some() {
            return Ok(());
        }
        let all_changed = pending.all_changed;
        let jobs: Vec<String> = pending.jobs.iter().cloned().collect();
        for batch in jobs.chunks(MAX_IN_FLIGHT) {
            let reads = batch.iter().map(|job| async move { (job, admin.outline(job).await) });
            for (job, outline) in join_all(reads).await {
                let outline = outline?.map(Arc::new);
                if all_changed {
                    self.update(|snapshot| snapshot.update_job(job, outline));
                } else {
                    self.update_job(job, outline);
                }
                pending.jobs.remove(job);
            }
        }
        self.read_new_instances(pending, &jobs, admin).await?;
        let now = clock.now();
        let was_current = self.update(|snapshot| {
            snapshot.as_of = Some(now);
            std::mem::replace(&mut snapshot.is_current, true)
        });
        if !was_current {
            self.publish(Change::Connection(true));
        }
        let shards = std::mem::take(&mut pending.shards);
        if std::mem::take(&mut pending.all_changed) {
            self.publish(Change::All);
        } else {
            for job in shards {
                self.publish(Change::Shards(job));
            }
        }
        Ok(())
    }

    /// Reads the documents of instances that are not known yet, once each, in one of their jobs.
    async fn read_new_instances(
        &self,
        pending: &mut PendingChanges,
        jobs: &[String],
        admin: &Admin,
    ) -> Result<(), AdminError> {
        self.read(|snapshot| {
            for (name, outline) in jobs.iter().filter_map(|job| snapshot.jobs.get_key_value(job)) {
                let Ok(job) = name.parse::<JobName>() else { continue };
                let new =
                    outline.instances.iter().filter(|id| !snapshot.instances.contains_key(*id));
                pending.new_instances.extend(new.map(|id| (id.clone(), job.clone())));
            }
        });
        let new_instances: Vec<(String, JobName)> =
            pending.new_instances.clone().into_iter().collect();
        for batch in new_instances.chunks(MAX_IN_FLIGHT) {
            let reads = batch.iter().map(|(id, job)| admin.instance(job, id));
            for ((id, _), instance) in batch.iter().zip(join_all(reads).await) {
                match instance {
                    Ok(Some(instance)) => self.update(|snapshot| snapshot.add_instance(instance)),
                    Err(error @ AdminError::Unreachable { .. }) => return Err(error),
                    // The instance has left, or access is denied.
                    Ok(None) | Err(_) => {}
                }
                pending.new_instances.remove(id);
            }
        }
        Ok(())
    }

    fn update_job(&self, job: &str, outline: Option<Arc<Outline>>) {
        if self.update(|snapshot| snapshot.update_job(job, outline.clone())) {
            self.publish(Change::Job(job.to_owned(), outline));
        }
    }

    fn update<T>(&self, update: impl FnOnce(&mut Snapshot) -> T) -> T {
        update(&mut self.snapshot.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, change: Change) {
        // Sending fails if there is no subscriber.
        let _ = self.changes.send(change);
    }
}

/// Changes that have not been published yet.
#[derive(Debug, Default)]
struct PendingChanges {
    /// Jobs to read again.
    jobs: BTreeSet<String>,
    /// Jobs whose shards changed.
    shards: BTreeSet<String>,
    /// Instances whose documents have not been read yet, each with one of its jobs.
    new_instances: BTreeMap<String, JobName>,
    /// Names reported so far by the watch's initial walk, while it lasts.
    initial_names: Option<BTreeSet<String>>,
    /// The watch has restarted, so everything is read again.
    all_changed: bool,
}

impl Snapshot {
    /// Returns whether the outline changed.
    fn update_job(&mut self, job: &str, outline: Option<Arc<Outline>>) -> bool {
        let Some(outline) = outline else {
            self.activity.remove(job);
            return self.jobs.remove(job).is_some();
        };
        let is_changed = self.jobs.get(job).is_none_or(|known| *known != outline);
        self.jobs.insert(job.to_owned(), outline);
        is_changed
    }

    /// Adds an instance. Drops instances that have left, but only now and then, because that reads the outlines of all jobs.
    fn add_instance(&mut self, instance: Instance) {
        self.instances.insert(instance.id.clone(), instance);
        let present = self.jobs.values().flat_map(|outline| &outline.instances);
        if self.instances.len().is_power_of_two() && self.instances.len() >= PRUNE_THRESHOLD {
            let present: BTreeSet<&String> = present.collect();
            self.instances.retain(|id, _| present.contains(id));
        }
    }

    /// A mark of a shard was created at `since`, or deleted if there is none.
    fn update_shard(&mut self, job: &str, since: Option<Timestamp>, shard: u32, part: ShardNode) {
        let activity = self.activity.entry(job.to_owned()).or_default();
        match (part, since) {
            (ShardNode::Running, None) => drop(activity.running.remove(&shard)),
            // The watch may report a node again that is known already.
            (ShardNode::Running, Some(since)) => {
                activity.running.entry(shard).or_insert(since);
            }
            (ShardNode::Disabled, _) => set_present(&mut activity.disabled, since.is_some(), shard),
            (ShardNode::Misfire, _) => set_present(&mut activity.misfired, since.is_some(), shard),
            _ => {}
        }
    }

    fn update_failover(&mut self, job: &str, is_present: bool, shard: u32) {
        set_present(
            &mut self.activity.entry(job.to_owned()).or_default().waiting,
            is_present,
            shard,
        );
    }
}

fn set_present(shards: &mut BTreeSet<u32>, is_present: bool, shard: u32) {
    if is_present {
        shards.insert(shard);
    } else {
        shards.remove(&shard);
    }
}
