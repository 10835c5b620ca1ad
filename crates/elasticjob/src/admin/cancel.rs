//! Cancels runs, and withdraws triggers.
//!
//! A cancellation is stored and names the run, so that it never hits the next one, and so that an instance that takes a lost shard of the run over
//! finds it. Shards of a triggered run that have not started get an entry in the trigger, after which no instance can claim them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    error::AdminError,
    handle::Admin,
    model::Language,
    snapshot::JobSnapshot,
    switch::was_committed,
    trigger::{Ring, check_shards, doorbell},
};
use crate::{
    coordination::{
        ledger::LedgerState,
        trigger::{Cancellation, ShardEntry, SkipReason, Trigger},
    },
    job::{JobName, RunId, ShardSelection},
    registry::{Create, ExpectedVersion, Op},
};

/// How often a run is looked at again whose shards are claimed and given back meanwhile.
const MAX_ROUNDS: usize = 8;

/// Result of cancelling shards of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancellationResult {
    /// Shards whose cancellation was requested, by instance id.
    pub requested: BTreeMap<String, Vec<u32>>,
    /// Shards of a triggered run that had not started: they do not run.
    pub withdrawn: Vec<u32>,
    /// Shards that cannot be cancelled, with the id of their holder: a Java instance, or an instance that was shut down and is finishing.
    pub not_cancellable: BTreeMap<u32, String>,
    /// Shards that were not running.
    pub idle: Vec<u32>,
}

/// Result of withdrawing a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WithdrawalResult {
    /// Shards that had not started: they do not run.
    pub withdrawn: Vec<u32>,
    /// Shards that have started, or have started meanwhile. They are not cancelled.
    pub started: Vec<u32>,
    /// Shards of Java instances, which cannot be withdrawn.
    pub delegated: Vec<u32>,
}

impl Admin {
    /// Requests cancellation of these shards from the instances that run them, whichever run it is. Java instances cannot cancel; the result names
    /// them.
    pub async fn cancel(
        &self,
        job: &JobName,
        shards: &ShardSelection,
    ) -> Result<CancellationResult, AdminError> {
        self.cancel_running(job, shards, None, Vec::new()).await
    }

    /// Cancels these shards of one run: those that run, and those of a trigger that have not started. A conflict if there are none.
    pub async fn cancel_run(
        &self,
        job: &JobName,
        run: &RunId,
        shards: &ShardSelection,
    ) -> Result<CancellationResult, AdminError> {
        let mut withdrawn = Vec::new();
        let mut rounds = 0;
        let cancelled = loop {
            let snapshot = self.existing_job(job).await?;
            check_shards(&snapshot, shards)?;
            withdrawn.extend(self.withdraw_pending(&snapshot, run, shards).await?);
            let cancelled = self.cancel_running(job, shards, Some(run), withdrawn.clone()).await?;
            rounds += 1;
            // A shard may have been claimed when it was to be withdrawn, and given back before it was to be cancelled.
            if rounds == MAX_ROUNDS || !self.has_open(&snapshot, run, &cancelled.idle).await? {
                break cancelled;
            }
        };
        if cancelled.requested.is_empty()
            && cancelled.withdrawn.is_empty()
            && cancelled.not_cancellable.is_empty()
        {
            return Err(AdminError::conflict(
                format!("run {run} of job {job} is not running"),
                "it may have ended: check what is running, then decide again",
            ));
        }
        Ok(cancelled)
    }

    /// Withdraws a trigger: shards that have not started do not run, the others go on. A conflict if all of them have started or have a reason.
    pub async fn withdraw_trigger(
        &self,
        job: &JobName,
        run: &RunId,
    ) -> Result<WithdrawalResult, AdminError> {
        let snapshot = self.existing_job(job).await?;
        let stored = self.stored_trigger(job, &snapshot.tree, run).await?;
        let trigger = stored.object.trigger.map_err(|problem| {
            AdminError::refused(
                format!("trigger {run} of job {job} is left alone: {problem}"),
                "no shard runs because of it; delete its node if no newer version wrote it",
            )
        })?;
        let withdrawn = self.withdraw_pending(&snapshot, run, &ShardSelection::All).await?;
        if withdrawn.is_empty() {
            return Err(AdminError::conflict(
                format!("trigger {run} of job {job} has no shard left that has not started"),
                "cancel the run to stop shards that are running",
            ));
        }
        let started = trigger.shards.iter().filter(|shard| withdrawn.binary_search(shard).is_err());
        let (started, delegated) = (started.collect(), trigger.delegated.iter().collect());
        Ok(WithdrawalResult { withdrawn, started, delegated })
    }

    /// Whether one of these shards of a trigger has neither started nor ended.
    async fn has_open(
        &self,
        snapshot: &JobSnapshot,
        run: &RunId,
        shards: &[u32],
    ) -> Result<bool, AdminError> {
        let path = snapshot.tree.accepted_trigger(run);
        let Some(node) = self.registry.get(&path).await? else { return Ok(false) };
        let Ok(trigger) = Trigger::read(&node.data) else { return Ok(false) };
        for shard in shards.iter().filter(|shard| trigger.shards.contains(**shard)) {
            let entry = self.registry.get(&snapshot.tree.trigger_entry(run, *shard)).await?;
            let entry = entry.map(|node| ShardEntry::read(&node.data));
            if entry.is_none_or(|entry| entry.is_ok_and(|entry| !entry.is_over())) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives an entry to the shards of a trigger that have not started. Returns those that got one, sorted.
    async fn withdraw_pending(
        &self,
        snapshot: &JobSnapshot,
        run: &RunId,
        shards: &ShardSelection,
    ) -> Result<Vec<u32>, AdminError> {
        if run.is_scheduled() {
            return Ok(Vec::new());
        }
        let path = snapshot.tree.accepted_trigger(run);
        let Some(node) = self.registry.get(&path).await? else { return Ok(Vec::new()) };
        let Ok(trigger) = Trigger::read(&node.data) else { return Ok(Vec::new()) };
        let known = self.registry.children(&path).await?.unwrap_or_default();
        let known: BTreeSet<u32> = known.iter().filter_map(|shard| shard.parse().ok()).collect();
        let data = ShardEntry::Skipped(SkipReason::Cancelled).to_bytes();
        let pending = trigger.shards.iter().filter(|shard| !known.contains(shard));
        let pending: Vec<u32> = pending.filter(|shard| shards.contains(*shard)).collect();
        let create = |shard: &u32| {
            let path = snapshot.tree.trigger_entry(run, *shard);
            Op::Create(Create::persistent(&path, data.clone()))
        };
        let check = Op::Check { path: snapshot.tree.config(), expected: ExpectedVersion::Any };
        let creates: Vec<Op> = pending.iter().map(create).collect();
        let mut withdrawn = Vec::new();
        let mut rest = &pending[..];
        for batch in self.registry.limits().batches(std::slice::from_ref(&check), &creates) {
            let (these, others) = rest.split_at(batch.len());
            rest = others;
            let together = [std::slice::from_ref(&check), batch].concat();
            if was_committed(self.registry.multi(together).await)? {
                withdrawn.extend_from_slice(these);
                continue;
            }
            // One of them has started: each alone.
            for (shard, op) in these.iter().zip(batch) {
                if was_committed(self.registry.multi(vec![check.clone(), op.clone()]).await)? {
                    withdrawn.push(*shard);
                }
            }
        }
        Ok(withdrawn)
    }

    async fn cancel_running(
        &self,
        job: &JobName,
        shards: &ShardSelection,
        only: Option<&RunId>,
        withdrawn: Vec<u32>,
    ) -> Result<CancellationResult, AdminError> {
        let snapshot = self.existing_job(job).await?;
        check_shards(&snapshot, shards)?;
        let mut cancelled = CancellationResult {
            requested: BTreeMap::new(),
            withdrawn,
            not_cancellable: BTreeMap::new(),
            idle: Vec::new(),
        };
        // What each instance runs: shards by run.
        let mut runs: Vec<(RunId, BTreeSet<u32>)> = Vec::new();
        let mut holders: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        let mut lost: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for shard in snapshot.items().iter().filter(|item| shards.contains(*item)) {
            if cancelled.withdrawn.contains(&shard) {
                continue;
            }
            let is_meant = |run: &RunId| only.is_none_or(|only| run == only);
            if let Some((run, lost_by)) = awaits_failover(&snapshot, shard)
                && is_meant(&run)
            {
                add(&mut runs, run, shard);
                lost.entry(lost_by).or_default().insert(shard);
                continue;
            }
            let run = running(&snapshot, shard);
            let is_meant = only.is_none() || run.as_ref().is_some_and(is_meant);
            let holder = snapshot.holder(shard).map(|running| running.instance);
            match (holder.filter(|_| is_meant), run) {
                (None, _) => cancelled.idle.push(shard),
                (Some(id), Some(run)) if Language::of(&id) == Language::Rust => {
                    add(&mut runs, run, shard);
                    holders.entry(id).or_default().insert(shard);
                }
                (Some(id), _) => drop(cancelled.not_cancellable.insert(shard, id)),
            }
        }
        let Some((about, _)) = runs.first() else { return Ok(cancelled) };
        self.ensure_doorbell_parent(&snapshot).await?;
        // Any of them may claim the shards next: their holder may die, or give them back because it cannot start them.
        let ids = snapshot.instance_ids().into_iter();
        let rust: BTreeSet<String> = ids.filter(|id| Language::of(id) == Language::Rust).collect();
        for (run, shards) in &runs {
            self.store_cancellation(&snapshot, run, shards, &rust).await?;
        }
        for id in &rust {
            let ring = self.ring_doorbell(&snapshot, doorbell(&snapshot, id, about)).await?;
            if let (Ring::Rung | Ring::WasRinging, Some(shards)) = (ring, holders.remove(id)) {
                cancelled.requested.insert(id.clone(), shards.into_iter().collect());
            }
        }
        for (id, shards) in lost {
            cancelled.requested.entry(id).or_default().extend(shards);
        }
        for (id, shards) in holders {
            let gone = shards.into_iter().map(|shard| (shard, id.clone()));
            cancelled.not_cancellable.extend(gone);
        }
        Ok(cancelled)
    }

    /// Stores a cancellation, and rings the doorbells that do not ring, so that nothing is stored that no instance looks at.
    async fn store_cancellation(
        &self,
        snapshot: &JobSnapshot,
        run: &RunId,
        shards: &BTreeSet<u32>,
        instances: &BTreeSet<String>,
    ) -> Result<(), AdminError> {
        let tree = &snapshot.tree;
        let cancellation =
            Cancellation::new(run.clone(), shards.iter().copied().collect(), self.now());
        let path = tree.accepted_trigger(Cancellation::name(self.randomness.bits()));
        let mut ops = vec![Op::Check { path: tree.config(), expected: ExpectedVersion::Any }];
        let parent = tree.accepted_triggers();
        if !snapshot.ledger.contains_key(&parent) {
            ops.push(Op::Create(Create::persistent(&parent, "")));
        }
        ops.push(Op::Create(Create::persistent(&path, cancellation.to_bytes())));
        let silent = instances.iter().filter(|id| !snapshot.has(&tree.trigger(id)));
        let mut at_once = ops.clone();
        at_once.extend(silent.map(|id| doorbell(snapshot, id, run)));
        if was_committed(self.registry.multi(at_once).await)? {
            return Ok(());
        }
        // A doorbell has begun to ring, or rings for another run that is cancelled as well. All of them are rung again afterwards.
        self.registry.multi(ops).await?;
        Ok(())
    }
}

fn add(runs: &mut Vec<(RunId, BTreeSet<u32>)>, run: RunId, shard: u32) {
    match runs.iter_mut().find(|(known, _)| *known == run) {
        Some((_, shards)) => drop(shards.insert(shard)),
        None => runs.push((run, BTreeSet::from([shard]))),
    }
}

/// The run of a shard that was lost and waits for an instance to take it over, and the instance that lost it.
fn awaits_failover(snapshot: &JobSnapshot, shard: u32) -> Option<(RunId, String)> {
    let (page, _) = snapshot.page(shard)?;
    let page = page.ok().filter(|page| page.state == LedgerState::Lost)?;
    let is_flagged = snapshot.has(&snapshot.tree.failover_item(shard));
    let holder = page.holder.map(|id| id.to_string()).unwrap_or_default();
    is_flagged.then_some((page.run?, holder))
}

/// The run of a shard that runs now, by the ledger.
fn running(snapshot: &JobSnapshot, shard: u32) -> Option<RunId> {
    let (page, _) = snapshot.page(shard)?;
    let page = page.ok().filter(|page| page.state == LedgerState::Running)?;
    page.run
}
