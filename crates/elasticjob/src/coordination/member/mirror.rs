//! The member's copy of its job: the tree, the configuration, and the ledger pages it has read.
//!
//! One watch feeds it. The copy is current as of the member's own last write, once [`Mirror::refresh`] has returned: on one connection every
//! change committed before a write is delivered before the write is answered. So an act writes, refreshes, and decides again from what it sees.
//!
//! The mirror decides nothing. A few changes matter beyond the state they lead to, because that state does not show what happened in
//! between; [`Mirror::take_observations`] hands them to [`Recovery`](super::recovery::Recovery).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::Mutex;

use super::{
    assignment::Assignment, busy_shards::BusyGuard, context::Context, handle::MemberEvent,
    ledger_pages::LedgerPages,
};
use crate::{
    coordination::{
        claim::TransactionBuilder,
        clock_skew,
        ledger::{CLOCK_TOLERANCE, VersionedPage, with_tolerance},
        tree::{JobTree, ShardNode, TreeNode},
        view::{CachedNode, Document, ShardView, View},
    },
    job::{InstanceId, Job},
    problem::Hint,
    registry::{Committed, Error, Event, Op, Path, Version, Watch},
    runtime::Monotonic,
};

pub(super) struct Mirror {
    context: Context,
    /// Never locked: the mutex makes references to the mirror `Send`, which a watch alone is not.
    watch: Mutex<Watch>,
    view: View,
    /// Number of events applied so far.
    changes: u64,
    /// Number of snapshots begun so far: one, and one after each gap in the watch.
    snapshots: u64,
    observations: Vec<Observation>,
    job: Arc<Job>,
    /// The configuration document `job` was read from, or a newer one that could not be read.
    config: Option<Document>,
    /// `config` could not be read.
    is_unreadable: bool,
    pages: LedgerPages,
}

/// A change whose history matters and cannot be derived from the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Observation {
    /// There was a gap in the watch: earlier observations no longer count.
    SnapshotBegan,
    /// The snapshot after a gap is complete. These shards are flagged for failover and running.
    SnapshotComplete {
        running: BTreeSet<u32>,
    },
    /// An instance node was deleted. If it is a Java instance: the shards it was running.
    InstanceGone {
        id: String,
        java_ran: Option<BTreeSet<u32>>,
        at: Monotonic,
    },
    InstanceSeen {
        id: String,
        at: Monotonic,
    },
    /// A shard that is flagged for failover started to run.
    RanWhileFlagged(u32),
    Flagged {
        shard: u32,
        at: Monotonic,
    },
    Unflagged(u32),
}

impl Mirror {
    pub(super) fn new(context: Context, watch: Watch, job: Job) -> Self {
        Self {
            view: View::new(context.tree.clone()),
            context,
            watch: Mutex::new(watch),
            changes: 0,
            snapshots: 0,
            observations: Vec::new(),
            job: Arc::new(job),
            config: None,
            is_unreadable: false,
            pages: LedgerPages::default(),
        }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Gives up the copy and its watch.
    pub(super) fn into_context(self) -> Context {
        self.context
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    pub(super) fn shard(&self, shard: u32) -> Option<&ShardView> {
        self.view.shards.get(&shard)
    }

    pub(super) fn job(&self) -> &Arc<Job> {
        &self.job
    }

    pub(super) fn tree(&self) -> &JobTree {
        &self.context.tree
    }

    pub(super) fn own_id(&self) -> &InstanceId {
        &self.context.own_id
    }

    pub(super) fn now(&self) -> Monotonic {
        self.context.clock.monotonic()
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn snapshots(&self) -> u64 {
        self.snapshots
    }

    pub(super) fn assignment(&self) -> Assignment<'_> {
        Assignment { view: &self.view, job: &self.job, own_id: &self.context.own_id }
    }

    /// Waits for the next change and applies it; `false` once the registry is closed. Cancel safe.
    pub(super) async fn next_change(&mut self) -> bool {
        match self.watch.get_mut().next().await {
            Some(event) => {
                self.apply(&event);
                true
            }
            None => false,
        }
    }

    /// Applies every change the watch has delivered and reads what has to be read: view and job are then current as of the last own write.
    pub(super) async fn refresh(&mut self) -> Result<(), Error> {
        loop {
            while let Some(event) = self.watch.get_mut().try_next() {
                self.apply(&event);
            }
            let dirty = self.view.dirty_paths();
            if dirty.is_empty() || !self.view.is_current() {
                self.update_job();
                return Ok(());
            }
            self.read(&dirty).await?;
        }
    }

    /// Like [`refresh`](Self::refresh), but if there was a gap, waits at most `timeout` for the snapshot after it.
    pub(super) async fn refresh_after_gap(&mut self, timeout: Duration) -> Result<(), Error> {
        self.refresh().await?;
        let clock = Arc::clone(&self.context.clock);
        let until = clock.monotonic() + timeout;
        while !self.view.is_current() {
            tokio::select! {
                biased;
                is_open = self.next_change() => if !is_open { break },
                () = clock.sleep_until(until) => break,
            }
        }
        self.refresh().await
    }

    /// Discards the view and takes a new snapshot.
    pub(super) async fn reload(&mut self) -> Result<(), Error> {
        *self.watch.get_mut() = self.context.registry.watch(self.context.tree.root()).await?;
        while let Some(event) = self.watch.get_mut().next().await {
            let is_complete = event == Event::InitDone;
            self.apply(&event);
            if is_complete {
                break;
            }
        }
        self.refresh().await
    }

    /// Reads these nodes. One that we may not read concerns only what depends on it.
    pub(super) async fn read(&mut self, paths: &[Path]) -> Result<(), Error> {
        let nodes = join_all(paths.iter().map(|path| self.context.registry.get(path))).await;
        for (path, node) in paths.iter().zip(nodes) {
            match node {
                Ok(node) => self.view.record_read(path, node),
                Err(error @ Error::NotAuthorised { .. }) => {
                    let hint = error.hint().unwrap_or_default();
                    tracing::error!(job = %self.job.name, %path, %error, %hint, "node cannot be read, what depends on it does not run");
                    self.view.record_denied(path);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// See [`View::retry_denied`].
    pub(super) fn retry_denied(&mut self) {
        self.view.retry_denied();
    }

    /// Takes over the stored configuration if it has changed, and tells the owner.
    fn update_job(&mut self) {
        let Some(document) = self.view.config.as_ref().and_then(CachedNode::document) else {
            return;
        };
        if self.config.as_ref() == Some(document) {
            return;
        }
        self.config = Some(document.clone());
        let limit = self.context.shard_limit;
        match Job::read_within(limit, &self.job.name, &document.data) {
            Ok(job) if job == *self.job => {
                if std::mem::take(&mut self.is_unreadable) {
                    self.context.send(MemberEvent::Configured(Arc::clone(&self.job)));
                }
            }
            Ok(job) => {
                self.is_unreadable = false;
                self.job = Arc::new(job);
                self.context.send(MemberEvent::Configured(Arc::clone(&self.job)));
            }
            Err(error) => {
                self.is_unreadable = true;
                let hint = error.hint().unwrap_or_default();
                tracing::error!(job = %self.job.name, %error, %hint, "new configuration is unreadable, keeping the previous one");
                self.context.send(MemberEvent::Unreadable(error.to_string()));
            }
        }
    }

    pub(super) async fn write(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.context.registry.multi(ops).await
    }

    /// Writes a claim, a release, a mark or an entry, which may share its request with those of other jobs.
    pub(super) async fn commit(&self, unit: Vec<Op>) -> Result<Committed, Error> {
        self.context.registry.commit_unit(unit).await
    }

    /// Returns once everything that was committed before is visible to [`refresh`](Self::refresh).
    pub(super) async fn sync(&self) -> Result<(), Error> {
        self.context.registry.sync().await
    }

    /// See [`View::expect_echo`].
    pub(super) fn expect_echo(&mut self, path: Path, document: Document) {
        self.view.expect_echo(path, document);
    }

    /// The registry has answered that there is nothing at this path.
    pub(super) fn learn_absent(&mut self, path: &Path) {
        self.view.record_read(path, None);
    }

    /// Whether this instance is alive: it is a member of the job, or its process still exists.
    pub(super) async fn is_alive(&self, id: &InstanceId) -> Result<bool, Error> {
        if self.view.instances.contains_key(id.as_str()) {
            return Ok(true);
        }
        let process = self.context.tree.process(id);
        Ok(!id.is_java() && self.context.registry.exists(&process).await?.is_some())
    }

    /// Builds transactions that depend on the current configuration; `None` while it is unread.
    pub(super) fn transactions(&self) -> Option<TransactionBuilder<'_>> {
        Some(self.transactions_for(self.view.config.as_ref()?.document()?.version))
    }

    pub(super) fn transactions_for(&self, config_version: Version) -> TransactionBuilder<'_> {
        TransactionBuilder {
            tree: &self.context.tree,
            instance: &self.context.own_id,
            session: self.context.session.id(),
            config_version,
            monitor: self.job.monitor,
            failover: self.job.failover,
        }
    }

    /// Keeps this process from claiming these shards again.
    pub(super) fn occupy(&self, shards: impl Iterator<Item = u32>) -> Arc<BusyGuard> {
        Arc::new(self.context.busy.occupy(shards.collect()))
    }

    pub(super) fn pages(&mut self) -> &mut LedgerPages {
        &mut self.pages
    }

    /// The ledger page of a shard, read if it is not known; `None` if it cannot be parsed.
    pub(super) async fn page(&mut self, shard: u32) -> Result<Option<VersionedPage>, Error> {
        self.fetch_pages(&[shard]).await?;
        Ok(self.pages.get(shard))
    }

    /// The ledger page of a shard, read again.
    pub(super) async fn reread_page(&mut self, shard: u32) -> Result<Option<VersionedPage>, Error> {
        self.pages.forget(shard);
        self.page(shard).await
    }

    /// See [`LedgerPages::deny`].
    /// This node may not be changed: what depends on it is left alone until the next look.
    pub(super) fn record_denied(&mut self, path: &Path) {
        self.view.record_denied(path);
    }

    pub(super) fn deny_page(&mut self, shard: u32, error: &Error) {
        self.pages.deny(&self.job.name, shard, error);
    }

    pub(super) async fn fetch_pages(&mut self, shards: &[u32]) -> Result<(), Error> {
        let Self { context, pages, view, job, .. } = self;
        pages.fetch(context, view, job, shards).await
    }

    /// The time by which the pages of these shards are judged. It is that of our clock, unless a page names a fire that is not due by it: then a
    /// clock was ahead when the page was written, or ours is behind, and only the registry's clock can tell. It is also asked if a page was
    /// written before its fire was due: the registry may be behind.
    pub(super) async fn time_for_pages(&mut self, shards: &[u32]) -> Result<Timestamp, Error> {
        self.fetch_pages(shards).await?;
        let now = self.context.clock.now();
        let latest = with_tolerance(now);
        let mut is_registry_ahead = false;
        for shard in self.pages.due_after(shards, latest) {
            let mut seen = self.pages.get(shard);
            if seen.as_ref().is_none_or(|seen| seen.written_at.is_none()) {
                seen = self.reread_page(shard).await?;
            }
            let written_at = seen.and_then(|seen| seen.written_at);
            is_registry_ahead |= written_at.is_some_and(|written_at| written_at > latest);
        }
        let doubtful = self.pages.due_after_written(shards, latest);
        if !is_registry_ahead && doubtful.is_empty() {
            return Ok(now);
        }
        let Context { registry, clock, tree, .. } = &self.context;
        let skew = match clock_skew::measure(&**registry, &**clock, tree).await {
            Ok(skew) => skew,
            // The job has been removed.
            Err(Error::Operation { .. }) => return Ok(now),
            Err(error) => return Err(error),
        };
        // The registry is behind: its times say nothing about the clocks of instances.
        if skew > CLOCK_TOLERANCE {
            for shard in doubtful {
                self.pages.correct_written_at(shard, skew);
            }
        }
        let registry_now = self.context.clock.now().saturating_sub(skew).unwrap_or(now);
        Ok(if is_registry_ahead { registry_now } else { now })
    }

    pub(super) fn take_observations(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.observations)
    }

    fn apply(&mut self, event: &Event) {
        self.changes += 1;
        self.snapshots += u64::from(*event == Event::Init);
        let place = self.view.apply(event);
        let at = self.context.clock.monotonic();
        let observation = match (event, place) {
            (Event::Init, _) => Observation::SnapshotBegan,
            (Event::InitDone, _) => {
                let is_running = |shard: &&u32| {
                    self.view.shards.get(shard).is_some_and(|view| view.running.is_some())
                };
                let running = self.view.failover_items.iter().filter(is_running).copied();
                Observation::SnapshotComplete { running: running.collect() }
            }
            (Event::Delete { .. }, Some(TreeNode::Instance(id))) => {
                Observation::InstanceGone { java_ran: self.ran_by_java(&id), id, at }
            }
            (Event::Apply { .. }, Some(TreeNode::Instance(id))) => {
                Observation::InstanceSeen { id, at }
            }
            (Event::Apply { .. }, Some(TreeNode::Shard(shard, ShardNode::Running)))
                if self.view.failover_items.contains(&shard) =>
            {
                Observation::RanWhileFlagged(shard)
            }
            (Event::Delete { .. }, Some(TreeNode::FailoverItem(shard))) => {
                Observation::Unflagged(shard)
            }
            (_, Some(TreeNode::FailoverItem(shard))) => Observation::Flagged { shard, at },
            _ => return,
        };
        self.observations.push(observation);
    }

    /// The shards that the owner `id`, if it is a Java instance, is running.
    fn ran_by_java(&self, id: &str) -> Option<BTreeSet<u32>> {
        if !id.parse().is_ok_and(|id: InstanceId| id.is_java()) {
            return None;
        }
        let shards = self.view.shards.iter();
        let ran = shards.filter(|(_, view)| {
            let is_owner = view.owner.as_ref().and_then(CachedNode::text) == Some(id);
            is_owner && view.running.is_some() && view.failovering.is_none()
        });
        Some(ran.map(|(shard, _)| *shard).collect())
    }
}
