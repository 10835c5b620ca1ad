//! Triggers: which of them have shards for this instance, what becomes of shards that cannot run, and which runs are to be cancelled.
//!
//! What is stored is authoritative ([`trigger`](crate::coordination::trigger)), so an instance that stops or dies loses nothing: the next owner of
//! its shards lists the triggers and finds what has no entry yet. Triggers are listed when a doorbell rings, when we gain a shard, when we join or
//! reconnect, and from time to time while one of them is open. A regular fire costs no request here.
//!
//! A shard that cannot run gets an entry with the reason from its owner. The *steward* acts for all others: the leader, or the first Rust
//! instance if no Rust instance leads. The steward also notes that a trigger has ended, and removes old ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::{
    assignment::Assignment, handle::MemberEvent, mirror::Mirror, skip_conditions::SkipConditions,
};
use crate::{
    coordination::{
        flaw::Flaw,
        ledger::LedgerState,
        shard_ranges::ShardRanges,
        trigger::{
            Cancellation, Doorbell, ShardEntry, SkipReason, Trigger, TriggerError, TriggerRequest,
            TriggeredRun,
        },
        view::CachedNode,
    },
    job::{Failover, InstanceId, Monitor, Outcome, RunId, ShardLimit, ShardSelection},
    registry::{Create, Error, ExpectedVersion, Node, Op, Path, Version, Zxid, ensure_path},
    runtime::Monotonic,
};

/// Time between two lists while a trigger is open.
const LIST_INTERVAL: Duration = Duration::from_secs(30);
/// How long to wait before the next list after another instance was faster.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long triggers that have ended are kept, and cancellations.
const RETENTION: SignedDuration = SignedDuration::from_hours(24);
/// How many of them are kept, and how many nodes they may have together.
const MAX_CLOSED: usize = 100;
const MAX_CLOSED_NODES: usize = 10_000;
/// How many nodes are read at once. Each may be as large as the registry allows.
const READS_AT_ONCE: usize = 64;
/// A cancellation is kept at least for so long, so that an instance that takes the shard over finds it.
const CANCELLATION_RETENTION: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Default)]
pub(super) struct Triggers {
    /// What is to be read.
    unread: Option<Reading>,
    /// When to read everything again although nothing has happened.
    list_at: Option<Monotonic>,
    /// Triggers of which a shard has neither outcome nor reason, by the name of their node.
    open: BTreeMap<String, OpenTrigger>,
    /// Triggers that have ended, and cancellations.
    closed: BTreeMap<String, ClosedNode>,
    /// Nodes that cannot be read or changed. They are reported once and left alone.
    set_aside: BTreeSet<String>,
    cancellations: BTreeMap<String, Cancellation>,
    /// The cancellations have changed since they were handed out.
    has_new_cancellations: bool,
    /// The owners that the steward has told of a trigger which they had left alone.
    reminded: BTreeSet<(String, String)>,
    /// The shards of each trigger that the owner was told of.
    announced: BTreeMap<String, BTreeSet<u32>>,
    /// Number of changes of the mirror that the open triggers were last compared with.
    compared_at: Option<u64>,
    /// The snapshot of the watch that we last listed for.
    snapshot: u64,
    owned: BTreeSet<u32>,
    instances: BTreeSet<String>,
    is_steward: bool,
    /// A doorbell of Java ElasticJob waits until the owners are certain.
    is_java_waiting: bool,
}

/// Which triggers are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reading {
    /// Those that are not known.
    New,
    /// Those that are open, too.
    All,
}

#[derive(Debug)]
struct OpenTrigger {
    trigger: Trigger,
    version: Version,
    /// The transaction that accepted it: triggers run in this order, whatever the clocks of consoles showed.
    created: Zxid,
    /// When it was accepted, by the registry's clock.
    accepted_at: Timestamp,
    entries: BTreeMap<u32, SeenEntry>,
}

#[derive(Debug)]
struct SeenEntry {
    /// `None` if it cannot be parsed: what became of the shard is not known, and it does not run.
    entry: Option<ShardEntry>,
    version: Version,
}

#[derive(Debug)]
struct ClosedNode {
    /// When it was closed, by the registry's clock.
    at: Timestamp,
    nodes: usize,
    is_cancellation: bool,
}

impl OpenTrigger {
    fn pending(&self) -> impl Iterator<Item = u32> {
        self.trigger.shards.iter().filter(|shard| !self.entries.contains_key(shard))
    }

    /// When shards that have not started are skipped. The clock of the console may be wrong, so only the time that it allowed counts.
    fn expires_at(&self) -> Timestamp {
        let Trigger { requested_at, expires_at, .. } = self.trigger;
        let allowed = expires_at.duration_since(requested_at);
        self.accepted_at.saturating_add(allowed).unwrap_or(Timestamp::MAX)
    }

    fn has_ended(&self) -> bool {
        self.trigger.shards.iter().all(|shard| {
            let seen = self.entries.get(&shard);
            seen.is_some_and(|seen| seen.entry.as_ref().is_none_or(ShardEntry::is_over))
        })
    }
}

impl Triggers {
    /// Notes what has changed since the last look. To be called before [`is_due`](Self::is_due).
    pub(super) fn observe(&mut self, mirror: &Mirror) {
        let assignment = mirror.assignment();
        if !assignment.view.triggers.contains(assignment.own_id.as_str()) {
            self.is_java_waiting = false;
        }
        if mirror.context().flaws.has(Flaw::ForgetTriggers) {
            return;
        }
        let is_steward = is_steward(&assignment);
        let mut must_read_all =
            mirror.snapshots() != self.snapshot || (is_steward && !self.is_steward);
        (self.snapshot, self.is_steward) = (mirror.snapshots(), is_steward);
        if assignment.is_settled() {
            let owned = owned(&assignment);
            must_read_all |= !owned.is_subset(&self.owned);
            self.owned = owned;
        }
        if !self.open.is_empty() {
            let view = assignment.view;
            must_read_all |= self.instances.iter().any(|id| !view.instances.contains_key(id));
            self.instances = view.instances.keys().cloned().collect();
        }
        if must_read_all {
            self.must_read(Reading::All);
        }
    }

    fn must_read(&mut self, reading: Reading) {
        self.unread = self.unread.max(Some(reading));
    }

    /// Whether there is something to do. Pure.
    pub(super) fn is_due(&self, mirror: &Mirror) -> bool {
        let assignment = mirror.assignment();
        let rings = assignment.view.triggers.contains(assignment.own_id.as_str());
        rings && (!self.is_java_waiting || can_answer_java(mirror))
            || self.unread.is_some()
            || self.list_at.is_some_and(|at| mirror.now() >= at)
            || !self.open.is_empty() && self.compared_at != Some(mirror.changes())
    }

    pub(super) fn next_duty_at(&self) -> Option<Monotonic> {
        self.list_at
    }

    /// Answers the doorbell, lists the triggers if that is due, and does what follows from them. `in_hand` are the shards that this instance has
    /// claimed, or may have.
    pub(super) async fn act(
        &mut self,
        mirror: &mut Mirror,
        in_hand: &BTreeSet<u32>,
    ) -> Result<(), Error> {
        let acted = self.try_act(mirror, in_hand).await;
        if acted.is_err() {
            // What was not done is found again.
            self.must_read(Reading::All);
        }
        acted
    }

    async fn try_act(&mut self, mirror: &mut Mirror, in_hand: &BTreeSet<u32>) -> Result<(), Error> {
        self.answer_doorbell(mirror).await?;
        if self.list_at.is_some_and(|at| mirror.now() >= at) {
            self.must_read(Reading::All);
        }
        let reading = self.unread.take();
        match reading {
            None => {}
            Some(Reading::New) => self.list(mirror, Reading::New).await?,
            Some(Reading::All) => {
                self.list_at = None;
                self.announced.clear();
                self.list(mirror, Reading::All).await?;
                self.mark_lost(mirror, in_hand).await?;
                self.remind_owners(mirror).await?;
            }
        }
        self.compared_at = Some(mirror.changes());
        if !self.open.is_empty() {
            self.skip(mirror).await?;
            self.announce(mirror);
            self.end(mirror, reading).await?;
        }
        if self.is_steward {
            self.remove_old(mirror).await?;
        }
        self.schedule(mirror);
        Ok(())
    }

    /// All cancellations, if they have changed since they were handed out last.
    pub(super) fn take_cancellations(&mut self) -> Option<Vec<Cancellation>> {
        let is_new = std::mem::take(&mut self.has_new_cancellations);
        is_new.then(|| self.cancellations.values().cloned().collect())
    }

    /// A shard was taken over, which may be part of a run that was cancelled.
    pub(super) fn shard_taken_over(&mut self) {
        self.must_read(Reading::New);
    }

    async fn answer_doorbell(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        let assignment = mirror.assignment();
        let rings = assignment.view.triggers.contains(assignment.own_id.as_str());
        if !rings || self.is_java_waiting && !can_answer_java(mirror) {
            return Ok(());
        }
        let path = mirror.tree().trigger(mirror.own_id());
        let node = match mirror.context().registry.get(&path).await {
            Err(error) if error.is_denial() => return leave_alone(mirror, &path, &error).await,
            node => node?,
        };
        let Some(node) = node else {
            // Before the watch is drained: it may ring again.
            mirror.learn_absent(&path);
            return mirror.refresh().await;
        };
        let expected = ExpectedVersion::Version(node.stat.version);
        let mut ops = vec![Op::Delete { path: path.clone(), expected }];
        match Doorbell::read(&node.data) {
            Ok(Doorbell::Look) => {}
            Err(error) => {
                let data = String::from_utf8_lossy(&node.data[..node.data.len().min(200)]);
                tracing::error!(job = %mirror.job().name, %path, %error, ?data, hint = "trigger the job with `elasticjob job trigger`", "trigger refused, nothing runs because of it");
            }
            Ok(Doorbell::RunAll) => {
                if !can_answer_java(mirror) {
                    self.is_java_waiting = true;
                    return Ok(());
                }
                let shards = ours(&mirror.assignment());
                // Only we claim our shards, so this is still true when the doorbell is deleted.
                self.list(mirror, Reading::All).await?;
                if shards.is_empty() {
                    tracing::info!(job = %mirror.job().name, "triggered by Java ElasticJob, no shard is ours");
                } else if !self.has_unstarted(&shards) {
                    ops.extend(java_trigger(mirror, shards).into_iter().flatten());
                }
            }
        }
        self.is_java_waiting = false;
        // What was stored before the doorbell is deleted is seen by a list after that.
        self.must_read(Reading::New);
        match mirror.write(ops).await {
            Ok(_) => {}
            Err(Error::Operation { cause, .. }) if is_race(&cause) => {
                // It was deleted or changed by another program, the configuration has changed, or the parent of the triggers is missing.
                let parent = mirror.tree().accepted_triggers();
                ensure_path(&*mirror.context().registry, &parent).await?;
                mirror.sync().await?;
            }
            Err(error) if error.is_refusal() && !error.is_temporary() => {
                return leave_alone(mirror, &path, &error).await;
            }
            Err(error) => return Err(error),
        }
        mirror.refresh().await
    }

    /// Whether a trigger without content, of which none of these shards has started, is open: it also answers another one.
    fn has_unstarted(&self, shards: &BTreeSet<u32>) -> bool {
        self.open.values().any(|open| {
            let Trigger { is_whole, by, parameter, .. } = &open.trigger;
            let pending: BTreeSet<u32> = open.pending().collect();
            *is_whole && by.is_none() && parameter.is_none() && shards.is_subset(&pending)
        })
    }

    /// Reads triggers and cancellations, except those that are known to be closed.
    async fn list(&mut self, mirror: &Mirror, reading: Reading) -> Result<(), Error> {
        let (tree, registry) = (mirror.tree().clone(), &mirror.context().registry);
        let parent = tree.accepted_triggers();
        let names = match registry.children(&parent).await {
            Err(error) if error.is_denial() => {
                tracing::error!(job = %mirror.job().name, path = %parent, %error, "triggers cannot be listed");
                return Ok(());
            }
            names => names?.unwrap_or_default(),
        };
        let listed: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        self.open.retain(|name, _| listed.contains(name.as_str()));
        self.closed.retain(|name, _| listed.contains(name.as_str()));
        self.set_aside.retain(|name| listed.contains(name.as_str()));
        self.reminded.retain(|(name, _)| listed.contains(name.as_str()));
        let count = self.cancellations.len();
        self.cancellations.retain(|name, _| listed.contains(name.as_str()));
        self.has_new_cancellations |= self.cancellations.len() != count;
        let is_unread = |name: &&String| {
            !self.closed.contains_key(*name)
                && !self.set_aside.contains(*name)
                && (reading == Reading::All || !self.open.contains_key(*name))
        };
        let nodes: Vec<(&String, Path)> = names
            .iter()
            .filter(is_unread)
            .filter_map(|name| Some((name, parent.join(name).ok()?)))
            .collect();
        for nodes in nodes.chunks(READS_AT_ONCE) {
            self.read(mirror, nodes).await?;
        }
        Ok(())
    }

    /// Reads triggers and cancellations, and the entries of those that are open.
    async fn read(&mut self, mirror: &Mirror, nodes: &[(&String, Path)]) -> Result<(), Error> {
        let registry = &mirror.context().registry;
        let read = join_all(nodes.iter().map(|(_, path)| registry.get(path))).await;
        let mut open = Vec::new();
        for ((name, path), node) in nodes.iter().zip(read) {
            let node = match node {
                Err(error) if error.is_denial() => {
                    self.report(mirror, name, path, &error);
                    continue;
                }
                node => node?,
            };
            let Some(node) = node else { continue };
            match self.note(name, &node, mirror.context().shard_limit) {
                Ok(None) => {}
                Ok(Some(trigger)) => {
                    let known = self.open.remove(*name).map(|open| open.entries);
                    open.push((*name, node.stat, trigger, known.unwrap_or_default()));
                }
                Err(error) => self.report(mirror, name, path, &error),
            }
        }
        for (name, stat, trigger, known) in open {
            let accepted_at =
                Timestamp::from_millisecond(stat.changed_at_ms).unwrap_or(trigger.requested_at);
            let (version, created) = (stat.version, stat.created);
            let entries = read_entries(mirror, name, &trigger, stat.children, known).await?;
            let open = OpenTrigger { trigger, version, created, accepted_at, entries };
            self.open.insert(name.clone(), open);
        }
        Ok(())
    }

    /// Notes a node as it was read; returns a trigger that is open.
    fn note(
        &mut self,
        name: &str,
        node: &Node,
        limit: ShardLimit,
    ) -> Result<Option<Trigger>, TriggerError> {
        let changed_at = |or| Timestamp::from_millisecond(node.stat.changed_at_ms).unwrap_or(or);
        if Cancellation::has_name(name) {
            let cancellation = Cancellation::read(&node.data)?;
            let at = changed_at(cancellation.requested_at);
            self.closed.insert(name.to_owned(), ClosedNode { at, nodes: 1, is_cancellation: true });
            self.cancellations.insert(name.to_owned(), cancellation);
            self.has_new_cancellations = true;
            return Ok(None);
        }
        let is_run = name.parse().is_ok_and(|run: RunId| !run.is_scheduled());
        if !is_run {
            return Err(TriggerError { problem: format!("{name:?} is no run id") });
        }
        let trigger = Trigger::read(&node.data)?;
        let Some(ended_at) = trigger.ended_at else {
            // Each of its shards gets an entry, so it may have no more than a job.
            return match trigger.shards.last().filter(|last| !limit.allows(*last)) {
                Some(last) => {
                    Err(TriggerError { problem: format!("shard {last} is above the limit") })
                }
                None => Ok(Some(trigger)),
            };
        };
        self.open.remove(name);
        let (at, nodes) = (changed_at(ended_at), 1 + node.stat.children);
        self.closed.insert(name.to_owned(), ClosedNode { at, nodes, is_cancellation: false });
        Ok(None)
    }

    /// A node cannot be used: it concerns only itself.
    fn report(&mut self, mirror: &Mirror, name: &str, path: &Path, error: &dyn std::fmt::Display) {
        tracing::error!(job = %mirror.job().name, %path, %error, "trigger is unreadable, it does not run");
        self.open.remove(name);
        self.set_aside.insert(name.to_owned());
    }

    /// Marks entries as lost whose instance died, if no instance takes their run over: no other instance would tell how they ended. Also our own, if we
    /// do not hold the shard any more.
    async fn mark_lost(
        &mut self,
        mirror: &mut Mirror,
        in_hand: &BTreeSet<u32>,
    ) -> Result<(), Error> {
        let mut claimed = Vec::new();
        for (name, open) in &self.open {
            for (shard, seen) in &open.entries {
                let Some(ShardEntry::Claimed { owner, attempt }) = &seen.entry else { continue };
                let is_ours = owner == mirror.own_id();
                let is_absent = !mirror.view().instances.contains_key(owner.as_str());
                if is_ours && !in_hand.contains(shard) || !is_ours && is_absent && self.is_steward {
                    let lost = ShardEntry::Ended {
                        owner: owner.clone(),
                        attempt: *attempt,
                        outcome: Outcome::Lost,
                    };
                    claimed.push((name.clone(), *shard, owner.clone(), lost, seen.version));
                }
            }
        }
        for (name, shard, owner, lost, version) in claimed {
            let is_ours = owner == *mirror.own_id();
            if !is_ours && mirror.is_alive(&owner).await? {
                continue;
            }
            let Some(seen) = mirror.reread_page(shard).await? else { continue };
            // What the page says is in the view as well.
            mirror.refresh().await?;
            let unread = mirror.view().dirty_holders_of(shard);
            mirror.read(&unread).await?;
            let is_of_run = seen.page.run.as_ref().is_some_and(|run| run.to_string() == name);
            let job = mirror.job();
            // By the nodes that name it, the loss is found and flagged.
            let is_shown = mirror.shard(shard).is_some_and(|view| {
                view.holders().iter().any(|(_, holder)| {
                    holder.as_ref().is_some_and(|holder| holder.text() == Some(owner.as_str()))
                })
            });
            let is_taken_over = is_of_run
                && shard < job.shards.get()
                && job.failover == Failover::TakeOver
                && job.monitor == Monitor::Executions
                && (seen.page.state == LedgerState::Running && is_shown
                    // The page may be older than the flag.
                    || mirror.view().failover_items.contains(&shard));
            let is_still_ours = is_ours && is_of_run && seen.page.state == LedgerState::Running;
            if is_taken_over || is_still_ours {
                continue;
            }
            tracing::warn!(job = %mirror.job().name, run_id = name, shard, instance = %owner, "triggered shard lost");
            let set = Op::Set {
                path: mirror.tree().trigger_entry(&name, shard),
                data: lost.to_bytes().into(),
                expected: ExpectedVersion::Version(version),
            };
            if self.write(mirror, &name, vec![set]).await? {
                self.note_entry(&name, shard, lost, Version(version.0.wrapping_add(1)));
            }
        }
        Ok(())
    }

    /// Gives an entry with the reason to shards that cannot run.
    async fn skip(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        let Some(transactions) = mirror.transactions() else { return Ok(()) };
        let config = transactions.config_check();
        let assignment = mirror.assignment();
        let limits = mirror.context().registry.limits();
        let conditions = SkipConditions::of(mirror);
        let mut skipped: BTreeMap<String, Vec<(u32, SkipReason)>> = BTreeMap::new();
        for (name, open) in &self.open {
            for shard in open.pending() {
                let is_ours = assignment.owner(shard) == Some(assignment.own_id.as_str());
                let reason = if self.is_cancelled(name, shard) {
                    Some(SkipReason::Cancelled)
                } else {
                    conditions.skip_reason(open.created, open.expires_at(), shard)
                };
                let reason = reason.filter(|_| is_ours || self.is_steward);
                if let Some(reason) = reason {
                    skipped.entry(name.clone()).or_default().push((shard, reason));
                }
            }
        }
        for (name, shards) in skipped {
            let trigger = mirror.tree().accepted_trigger(&name);
            let checks =
                [config.clone(), Op::Check { path: trigger, expected: ExpectedVersion::Any }];
            let creates: Vec<Op> = shards
                .iter()
                .map(|(shard, reason)| {
                    let data = ShardEntry::Skipped(*reason).to_bytes();
                    let path = mirror.tree().trigger_entry(&name, *shard);
                    Op::Create(Create::persistent(&path, data))
                })
                .collect();
            let mut rest = &shards[..];
            for batch in limits.batches(&checks, &creates) {
                let (these, others) = rest.split_at(batch.len());
                rest = others;
                if !self.write(mirror, &name, [&checks, batch].concat()).await? {
                    break;
                }
                for (shard, reason) in these {
                    self.note_entry(&name, *shard, ShardEntry::Skipped(*reason), Version(0));
                }
                for reason in SkipReason::ALL {
                    let skipped: ShardRanges = these
                        .iter()
                        .filter(|(_, why)| *why == reason)
                        .map(|(shard, _)| *shard)
                        .collect();
                    if !skipped.is_empty() {
                        tracing::warn!(job = %mirror.job().name, run_id = name, shards = %skipped, reason = reason.as_str(), "triggered shards skipped");
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells the owner which triggers have shards that are ours to run.
    fn announce(&mut self, mirror: &Mirror) {
        let assignment = mirror.assignment();
        if !assignment.is_settled() {
            return;
        }
        let (ours, conditions) = (ours(&assignment), SkipConditions::of(mirror));
        let mut open: Vec<(&String, &OpenTrigger)> = self.open.iter().collect();
        open.sort_by_key(|(_, open)| open.created);
        for (name, open) in open {
            let is_ours = |shard: &u32| {
                ours.contains(shard)
                    && conditions.skip_reason(open.created, open.expires_at(), *shard).is_none()
                    && !self.is_cancelled(name, *shard)
            };
            let pending: BTreeSet<u32> = open.pending().filter(is_ours).collect();
            let announced = self.announced.entry(name.clone()).or_default();
            if !pending.is_subset(announced) {
                send(mirror, name, &open.trigger);
            }
            *announced = pending;
        }
    }

    /// Rings for owners that have left a trigger alone: they may not know of it, if they joined while it was accepted, or if another program has
    /// deleted their doorbell. Each is told once.
    async fn remind_owners(&mut self, mirror: &Mirror) -> Result<(), Error> {
        let assignment = mirror.assignment();
        if !self.is_steward || !assignment.is_settled() {
            return Ok(());
        }
        let now = mirror.context().clock.now();
        let mut owners = BTreeSet::new();
        for (name, open) in &self.open {
            if now.duration_since(open.accepted_at).unsigned_abs() < LIST_INTERVAL {
                continue;
            }
            for owner in open.pending().filter_map(|shard| assignment.owner(shard)) {
                let is_rust = owner.parse::<InstanceId>().is_ok_and(|id| !id.is_java());
                let is_member = assignment.view.instances.contains_key(owner);
                let is_told = owner == assignment.own_id.as_str()
                    || assignment.view.triggers.contains(owner)
                    || self.reminded.contains(&(name.clone(), owner.to_owned()));
                if is_rust && is_member && !is_told {
                    owners.insert((name.clone(), owner.to_owned()));
                }
            }
        }
        for (name, owner) in owners {
            let note = Doorbell::note(&name);
            let create = Op::Create(Create::persistent(&mirror.tree().trigger(&owner), note));
            let path = mirror.tree().instance(&owner);
            let check = Op::Check { path, expected: ExpectedVersion::Any };
            match mirror.write(vec![check, create]).await {
                // It rings already, or has left.
                Ok(_) | Err(Error::Operation { .. }) => drop(self.reminded.insert((name, owner))),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn is_cancelled(&self, name: &str, shard: u32) -> bool {
        self.cancellations.values().any(|cancellation| {
            cancellation.shards.contains(shard) && cancellation.run.to_string() == name
        })
    }

    /// Notes on triggers whose every shard has an outcome or a reason that they have ended.
    async fn end(&mut self, mirror: &mut Mirror, reading: Option<Reading>) -> Result<(), Error> {
        let flaws = mirror.context().flaws;
        // The steward does not know of a trigger that Java rang at another instance: that one finds it open when it reads everything again.
        let is_ours = self.is_steward || reading == Some(Reading::All);
        if !is_ours || flaws.has(Flaw::NeverEndTriggers) {
            return Ok(());
        }
        let now = mirror.context().clock.now();
        let ended = self.open.iter().filter(|(_, open)| {
            open.has_ended() || flaws.has(Flaw::EndTriggersEarly) && !open.entries.is_empty()
        });
        let ended: Vec<String> = ended.map(|(name, _)| name.clone()).collect();
        for name in ended {
            let Some(open) = self.open.get(&name) else { continue };
            let mut trigger = open.trigger.clone();
            trigger.ended_at = Some(now);
            let nodes = 1 + open.entries.len();
            let set = Op::Set {
                path: mirror.tree().accepted_trigger(&name),
                data: trigger.to_bytes().into(),
                expected: ExpectedVersion::Version(open.version),
            };
            if self.write(mirror, &name, vec![set]).await? {
                self.open.remove(&name);
                self.closed.insert(name, ClosedNode { at: now, nodes, is_cancellation: false });
            }
        }
        Ok(())
    }

    /// Removes what is closed for long, or is too much.
    async fn remove_old(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        let old = self.old(mirror.context().clock.now());
        let limits = mirror.context().registry.limits();
        for name in old {
            self.closed.remove(&name);
            let path = mirror.tree().accepted_trigger(&name);
            let below = mirror.context().registry.children(&path).await?.unwrap_or_default();
            let paths =
                below.iter().filter_map(|shard| path.join(shard).ok()).chain([path.clone()]);
            let deletes: Vec<Op> =
                paths.map(|path| Op::Delete { path, expected: ExpectedVersion::Any }).collect();
            for batch in limits.batches(&[], &deletes) {
                match mirror.write(batch.to_vec()).await {
                    Ok(_) => {}
                    Err(error) if error.is_refusal() && !error.is_temporary() => {
                        tracing::debug!(job = %mirror.job().name, %path, %error, "old trigger not removed");
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Closed nodes that are not to be kept. Pure.
    fn old(&self, now: Timestamp) -> Vec<String> {
        let mut closed: Vec<(&String, &ClosedNode)> = self.closed.iter().collect();
        closed.sort_by_key(|(_, node)| std::cmp::Reverse(node.at));
        let (mut count, mut nodes) = (0, 0);
        let old = closed.into_iter().filter(|(_, node)| {
            count += 1;
            nodes += node.nodes;
            let age = now.duration_since(node.at);
            let is_needed = node.is_cancellation && age < CANCELLATION_RETENTION;
            let is_too_much = count > MAX_CLOSED || nodes > MAX_CLOSED_NODES;
            age >= RETENTION || is_too_much && !is_needed
        });
        old.map(|(name, _)| name.clone()).collect()
    }

    fn schedule(&mut self, mirror: &Mirror) {
        if mirror.context().flaws.has(Flaw::ForgetTriggers) {
            return;
        }
        let now = mirror.now();
        if !self.open.is_empty() {
            let latest = now + LIST_INTERVAL;
            self.list_at = Some(self.list_at.map_or(latest, |at| at.min(latest)));
        }
        let oldest = self.closed.values().map(|node| node.at).min();
        if let (true, None, Some(oldest)) = (self.is_steward, self.list_at, oldest) {
            let left = RETENTION - mirror.context().clock.now().duration_since(oldest);
            let left = Duration::try_from(left).unwrap_or_default().max(LIST_INTERVAL);
            self.list_at = Some(now + left);
        }
    }

    fn note_entry(&mut self, name: &str, shard: u32, entry: ShardEntry, version: Version) {
        if let Some(open) = self.open.get_mut(name) {
            open.entries.insert(shard, SeenEntry { entry: Some(entry), version });
        }
    }

    /// Writes; `false` if that was refused: another instance was faster, or the node is not ours to change.
    async fn write(&mut self, mirror: &Mirror, name: &str, ops: Vec<Op>) -> Result<bool, Error> {
        match mirror.write(ops).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_denial() => {
                self.report(mirror, name, &mirror.tree().accepted_trigger(name), &error);
                Ok(false)
            }
            Err(error) if error.is_refusal() && !error.is_temporary() => {
                self.list_at = Some(mirror.now() + RETRY_DELAY);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

fn send(mirror: &Mirror, name: &str, trigger: &Trigger) {
    let Ok(run) = name.parse() else { return };
    let total = mirror.job().shards.get();
    let shards = trigger.shards.iter().filter(|shard| *shard < total);
    let Ok(shards) = ShardSelection::only(shards) else { return };
    mirror.context().send(MemberEvent::Triggered(Box::new(TriggeredRun {
        run,
        at: trigger.at,
        shards,
        is_whole: trigger.is_whole,
        parameter: trigger.parameter.clone(),
        by: trigger.by.clone(),
    })));
}

/// The `count` entries of a trigger. Those that are over do not change, and are not read again.
async fn read_entries(
    mirror: &Mirror,
    name: &str,
    trigger: &Trigger,
    count: usize,
    mut known: BTreeMap<u32, SeenEntry>,
) -> Result<BTreeMap<u32, SeenEntry>, Error> {
    let is_over = |seen: &SeenEntry| seen.entry.as_ref().is_some_and(ShardEntry::is_over);
    let changing = known.iter().filter(|(_, seen)| !is_over(seen)).map(|(shard, _)| *shard);
    let changing: Vec<u32> = changing.collect();
    known.retain(|_, seen| is_over(seen));
    known.extend(read_entries_of(mirror, name, changing).await?);
    if known.len() == count {
        return Ok(known);
    }
    let registry = &mirror.context().registry;
    let below = registry.children(&mirror.tree().accepted_trigger(name)).await?;
    let shards = below.unwrap_or_default().into_iter().filter_map(|shard| shard.parse().ok());
    let unread = shards.filter(|shard| trigger.shards.contains(*shard));
    let unread = unread.filter(|shard| !known.contains_key(shard)).collect();
    known.extend(read_entries_of(mirror, name, unread).await?);
    Ok(known)
}

async fn read_entries_of(
    mirror: &Mirror,
    name: &str,
    shards: Vec<u32>,
) -> Result<BTreeMap<u32, SeenEntry>, Error> {
    let registry = &mirror.context().registry;
    let mut entries = BTreeMap::new();
    for shards in shards.chunks(READS_AT_ONCE) {
        let paths: Vec<Path> =
            shards.iter().map(|shard| mirror.tree().trigger_entry(name, *shard)).collect();
        let nodes = join_all(paths.iter().map(|path| registry.get(path))).await;
        for ((shard, path), node) in shards.iter().zip(&paths).zip(nodes) {
            let seen = match node {
                Ok(None) => continue,
                Ok(Some(node)) => {
                    let entry = ShardEntry::read(&node.data).inspect_err(|error| {
                        tracing::warn!(job = %mirror.job().name, %path, %error, "entry of a trigger is unreadable");
                    });
                    SeenEntry { entry: entry.ok(), version: node.stat.version }
                }
                Err(error) if error.is_denial() => SeenEntry { entry: None, version: Version(0) },
                Err(error) => return Err(error),
            };
            entries.insert(*shard, seen);
        }
    }
    Ok(entries)
}

/// Shards that are assigned to us and enabled. Pure.
fn ours(assignment: &Assignment<'_>) -> BTreeSet<u32> {
    let view = assignment.view;
    let is_disabled = |shard: &u32| view.shards.get(shard).is_some_and(|view| view.disabled);
    let shards = assignment.assigned().into_iter().filter(|shard| !is_disabled(shard));
    shards.filter(|_| assignment.is_enabled() == Some(true)).collect()
}

/// The operations that store Java's trigger for these shards; `None` while the configuration is unread.
fn java_trigger(mirror: &Mirror, shards: BTreeSet<u32>) -> Option<[Op; 2]> {
    let config = mirror.transactions()?.config_check();
    let version = mirror.view().config.as_ref()?.document()?.version;
    let context = mirror.context();
    let (run, now) = (RunId::triggered(context.randomness.bits()), context.clock.now());
    let (shards, none) = (shards.into_iter().collect(), ShardRanges::default());
    let trigger = Trigger::new(&TriggerRequest::default(), version.0, shards, none, now);
    let path = mirror.tree().accepted_trigger(run);
    Some([config, Op::Create(Create::persistent(&path, trigger.to_bytes()))])
}

/// Whether it is certain which shards a doorbell of Java is for. Pure.
fn can_answer_java(mirror: &Mirror) -> bool {
    let assignment = mirror.assignment();
    match assignment.is_enabled() {
        // Its trigger is stored for the present configuration.
        _ if mirror.transactions().is_none() => false,
        Some(true) => assignment.is_settled(),
        // It runs nothing, however long an assignment takes.
        Some(false) => true,
        None => false,
    }
}

/// A doorbell that we may not read or delete is ignored until it is written again.
async fn leave_alone(mirror: &mut Mirror, path: &Path, error: &Error) -> Result<(), Error> {
    tracing::error!(job = %mirror.job().name, %path, %error, "trigger of another user ignored");
    mirror.learn_absent(path);
    mirror.refresh().await
}

fn is_race(error: &Error) -> bool {
    matches!(error, Error::Exists { .. } | Error::NotFound { .. } | Error::Conflict { .. })
}

/// Shards whose owner is this instance, even if it is another instance's turn. Pure.
fn owned(assignment: &Assignment<'_>) -> BTreeSet<u32> {
    let shards = assignment.job.shards.items();
    shards.filter(|shard| assignment.owner(*shard) == Some(assignment.own_id.as_str())).collect()
}

/// Whether this instance acts for shards of others: it leads, or no Rust instance does and it is the first of them. Pure.
fn is_steward(assignment: &Assignment<'_>) -> bool {
    let is_rust = |id: &str| id.parse::<InstanceId>().is_ok_and(|id| !id.is_java());
    let members = &assignment.view.instances;
    let leader = assignment.view.leader.as_ref().and_then(CachedNode::text);
    let leader = leader.filter(|id| is_rust(id) && members.contains_key(*id));
    let first = || members.keys().map(String::as_str).find(|id| is_rust(id));
    leader.or_else(first) == Some(assignment.own_id.as_str())
}
