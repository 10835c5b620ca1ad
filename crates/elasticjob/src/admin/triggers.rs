//! Lists and shows stored triggers: who asked for what, and what became of each shard.
//!
//! Everything is told from what is stored ([`trigger`](crate::coordination::trigger)), not from the history, which may be off. A trigger or an entry
//! that cannot be read is shown with the reason, and hides no other one.

use std::{cmp::Reverse, collections::BTreeMap};

use futures_util::future::join_all;
use jiff::Timestamp;
use serde::Serialize;

use super::{error::AdminError, handle::Admin, snapshot::written_at};
use crate::{
    coordination::{
        tree::JobTree,
        trigger::{Cancellation, ShardEntry, SkipReason, Trigger},
    },
    job::{JobName, Outcome, RunId, mask_for_list, mask_text},
    registry::{Error, Node, Path},
};

/// Maximum number of concurrent requests.
const MAX_IN_FLIGHT: usize = 256;
/// How many entries a list reads. Triggers that it does not reach have no counts.
const MAX_LISTED_ENTRIES: usize = 20_000;

/// How far a trigger has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TriggerState {
    /// No shard has started.
    Pending,
    /// A shard has started, and another one has neither an outcome nor a reason.
    Running,
    /// Every shard has an outcome, or a reason why it does not run.
    Ended,
    /// What is stored cannot be read: nothing runs because of it.
    Unreadable,
}

/// What became of a shard of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TriggerShardState {
    Pending,
    /// An instance has claimed it.
    Running,
    #[serde(rename = "done")]
    Succeeded,
    Failed,
    TimedOut,
    Cancelled,
    Fenced,
    Lost,
    /// It does not run.
    Skipped,
    /// A Java instance was asked to run it, which does not tell what became of that.
    Delegated,
    /// Its entry cannot be read. It does not run.
    Unreadable,
}

/// A stored trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TriggerSummary {
    /// Id of the run; the name of the node if it is none.
    #[serde(rename = "runId")]
    pub run: String,
    pub state: TriggerState,
    /// The user or program that made the request; none for Java ElasticJob, which does not tell.
    pub by: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub requested_at: Option<Timestamp>,
    /// Shards that have not started by then are skipped.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
    /// When it was seen that every shard has an outcome or a reason.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended_at: Option<Timestamp>,
    /// Logical time of the run.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub at: Option<Timestamp>,
    /// The whole job was triggered.
    pub is_whole: bool,
    /// Replaces the job's own parameter. Secrets are masked; in a list only the beginning of a long one.
    pub parameter: Option<String>,
    pub parameter_bytes: usize,
    /// Number of shards, including those of Java instances.
    pub shard_count: usize,
    /// How many shards are in each state; none in a list that would have to read too many entries.
    pub counts: Option<TriggerCounts>,
    /// Why it cannot be read.
    pub problem: Option<String>,
}

/// How many shards of a trigger are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TriggerCounts {
    pub pending: usize,
    pub running: usize,
    #[serde(rename = "done")]
    pub succeeded: usize,
    pub failed: usize,
    pub timed_out: usize,
    pub cancelled: usize,
    pub fenced: usize,
    pub lost: usize,
    pub skipped: usize,
    pub delegated: usize,
    pub unreadable: usize,
}

/// A stored trigger with its shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TriggerDetails {
    #[serde(flatten)]
    pub summary: TriggerSummary,
    /// Sorted by number.
    pub shards: Vec<TriggerShard>,
}

/// A shard of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TriggerShard {
    pub item: u32,
    pub state: TriggerShardState,
    /// Id of the instance that claimed it.
    pub instance: Option<String>,
    pub attempt: Option<u32>,
    /// Why it was skipped.
    pub reason: Option<SkipReason>,
    /// When its state was stored.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub since: Option<Timestamp>,
}

/// Some of a job's triggers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggersPage {
    /// Number of triggers of the job that are stored.
    pub total: usize,
    /// Those that have not ended first, then the newest first.
    pub triggers: Vec<TriggerSummary>,
}

impl Admin {
    /// Lists the stored triggers of a job, at most `limit`. Those that have ended are kept for a day.
    pub async fn triggers(&self, job: &JobName, limit: usize) -> Result<TriggersPage, AdminError> {
        let tree = self.tree_of_existing(job).await?;
        let names = self.registry.children(&tree.accepted_triggers()).await?.unwrap_or_default();
        let names = names.into_iter().filter(|name| !Cancellation::has_name(name));
        // A name that is no path segment was not written by ElasticJob.
        let paths = names.filter_map(|name| tree.accepted_triggers().join(name).ok());
        let paths: Vec<Path> = paths.collect();
        let mut stored = Vec::new();
        for (path, node) in paths.iter().zip(self.read_all(&paths).await?) {
            let Some(object) = StoredObject::of(node)? else { continue };
            stored.push((path.name().to_owned(), object));
        }
        stored.sort_by_cached_key(|(_, object)| {
            let trigger = object.trigger.as_ref().ok();
            let has_ended = trigger.is_some_and(|trigger| trigger.ended_at.is_some());
            (has_ended, Reverse(trigger.map(|trigger| trigger.requested_at)))
        });
        let (total, mut budget) = (stored.len(), MAX_LISTED_ENTRIES);
        let mut triggers = Vec::new();
        for (run, object) in stored.into_iter().take(limit) {
            let entries = match budget.checked_sub(object.entries) {
                Some(left) => {
                    budget = left;
                    Some(self.entries(&tree, &run, &object).await?)
                }
                None => None,
            };
            triggers.push(StoredTrigger { run, object, entries }.summary(mask_for_list));
        }
        Ok(TriggersPage { total, triggers })
    }

    /// Shows a stored trigger with the state of each shard.
    pub async fn show_trigger(
        &self,
        job: &JobName,
        run: &RunId,
    ) -> Result<TriggerDetails, AdminError> {
        let tree = self.tree_of_existing(job).await?;
        Ok(self.stored_trigger(job, &tree, run).await?.details())
    }

    /// The tree of a job that has a configuration.
    pub(super) async fn tree_of_existing(&self, job: &JobName) -> Result<JobTree, AdminError> {
        let tree = self.tree(job)?;
        self.registry.sync().await?;
        if self.registry.exists(&tree.config()).await?.is_none() {
            let has_leftovers = self.registry.exists(tree.root()).await?.is_some();
            return Err(self.no_such_job(job, has_leftovers));
        }
        Ok(tree)
    }

    pub(super) async fn stored_trigger(
        &self,
        job: &JobName,
        tree: &JobTree,
        run: &RunId,
    ) -> Result<StoredTrigger, AdminError> {
        if run.is_scheduled() {
            return Err(AdminError::invalid(
                format!("{run} is the id of a scheduled run, which was not triggered"),
                "the id of a triggered run is a UUID",
            ));
        }
        let path = tree.accepted_trigger(run);
        let node = self.registry.get(&path).await;
        let object = StoredObject::of(node)?.ok_or_else(|| no_such_trigger(job, run))?;
        let run = run.to_string();
        let entries = Some(self.entries(tree, &run, &object).await?);
        Ok(StoredTrigger { run, object, entries })
    }

    /// The entries of a trigger's shards.
    async fn entries(
        &self,
        tree: &JobTree,
        run: &str,
        object: &StoredObject,
    ) -> Result<BTreeMap<u32, StoredEntry>, AdminError> {
        let (Ok(trigger), true) = (&object.trigger, object.entries > 0) else {
            return Ok(BTreeMap::new());
        };
        let names = self.registry.children(&tree.accepted_trigger(run)).await?.unwrap_or_default();
        let shards = names.iter().filter_map(|name| name.parse().ok());
        let shards: Vec<u32> = shards.filter(|shard| trigger.shards.contains(*shard)).collect();
        self.read_entries(tree, run, &shards).await
    }

    /// The entries of these shards, as far as they have one.
    pub(super) async fn read_entries(
        &self,
        tree: &JobTree,
        run: &str,
        shards: &[u32],
    ) -> Result<BTreeMap<u32, StoredEntry>, AdminError> {
        let paths: Vec<Path> = shards.iter().map(|shard| tree.trigger_entry(run, *shard)).collect();
        let mut entries = BTreeMap::new();
        for (shard, node) in shards.iter().zip(self.read_all(&paths).await?) {
            if let Some(entry) = StoredEntry::of(node)? {
                entries.insert(*shard, entry);
            }
        }
        Ok(entries)
    }

    async fn read_all(
        &self,
        paths: &[Path],
    ) -> Result<Vec<Result<Option<Node>, Error>>, AdminError> {
        let mut nodes = Vec::with_capacity(paths.len());
        for batch in paths.chunks(MAX_IN_FLIGHT) {
            nodes.extend(join_all(batch.iter().map(|path| self.registry.get(path))).await);
        }
        Ok(nodes)
    }
}

pub(super) fn no_such_trigger(job: &JobName, run: &RunId) -> AdminError {
    AdminError::NotFound {
        what: format!("job {job} has no trigger {run}"),
        hint: "list its triggers; one that has ended is kept for a day".to_owned(),
    }
}

/// The node of a trigger.
pub(super) struct StoredObject {
    pub(super) trigger: Result<Trigger, String>,
    /// Number of nodes below it.
    entries: usize,
}

/// The entry of a shard.
pub(super) struct StoredEntry {
    /// None if it cannot be read.
    entry: Option<ShardEntry>,
    since: Option<Timestamp>,
}

pub(super) struct StoredTrigger {
    pub(super) run: String,
    pub(super) object: StoredObject,
    /// None if they were not read.
    pub(super) entries: Option<BTreeMap<u32, StoredEntry>>,
}

impl StoredObject {
    pub(super) fn of(node: Result<Option<Node>, Error>) -> Result<Option<Self>, AdminError> {
        match node {
            Ok(None) => Ok(None),
            Ok(Some(node)) => {
                let trigger = Trigger::read(&node.data).map_err(|error| error.to_string());
                Ok(Some(Self { trigger, entries: node.stat.children }))
            }
            Err(error) if error.is_denial() => {
                Ok(Some(Self { trigger: Err(error.to_string()), entries: 0 }))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl StoredEntry {
    fn of(node: Result<Option<Node>, Error>) -> Result<Option<Self>, AdminError> {
        match node {
            Ok(None) => Ok(None),
            Ok(Some(node)) => {
                let entry = ShardEntry::read(&node.data).ok();
                Ok(Some(Self { entry, since: written_at(&node) }))
            }
            Err(error) if error.is_denial() => Ok(Some(Self { entry: None, since: None })),
            Err(error) => Err(error.into()),
        }
    }

    fn state(&self) -> TriggerShardState {
        match &self.entry {
            None => TriggerShardState::Unreadable,
            Some(ShardEntry::Claimed { .. }) => TriggerShardState::Running,
            Some(ShardEntry::Skipped(_)) => TriggerShardState::Skipped,
            Some(ShardEntry::Ended { outcome, .. }) => match outcome {
                Outcome::Succeeded => TriggerShardState::Succeeded,
                Outcome::Failed => TriggerShardState::Failed,
                Outcome::TimedOut => TriggerShardState::TimedOut,
                Outcome::Cancelled => TriggerShardState::Cancelled,
                Outcome::Fenced => TriggerShardState::Fenced,
                Outcome::Lost => TriggerShardState::Lost,
            },
        }
    }

    fn shard(&self, item: u32) -> TriggerShard {
        let (instance, attempt, reason) = match &self.entry {
            None => (None, None, None),
            Some(
                ShardEntry::Claimed { owner, attempt } | ShardEntry::Ended { owner, attempt, .. },
            ) => (Some(owner.to_string()), Some(*attempt), None),
            Some(ShardEntry::Skipped(reason)) => (None, None, Some(*reason)),
        };
        TriggerShard { item, state: self.state(), instance, attempt, reason, since: self.since }
    }
}

impl StoredTrigger {
    fn counts(&self) -> Option<TriggerCounts> {
        let (Ok(trigger), Some(entries)) = (&self.object.trigger, &self.entries) else {
            return None;
        };
        let mut counts = TriggerCounts {
            pending: trigger.shards.len().saturating_sub(entries.len()),
            delegated: trigger.delegated.len(),
            ..TriggerCounts::default()
        };
        for entry in entries.values() {
            *counts.of(entry.state()) += 1;
        }
        Some(counts)
    }

    fn summary(&self, mask: impl Fn(&str) -> String) -> TriggerSummary {
        let counts = self.counts();
        let trigger = match &self.object.trigger {
            Ok(trigger) => trigger,
            Err(problem) => {
                return TriggerSummary {
                    run: self.run.clone(),
                    state: TriggerState::Unreadable,
                    by: None,
                    requested_at: None,
                    expires_at: None,
                    ended_at: None,
                    at: None,
                    is_whole: false,
                    parameter: None,
                    parameter_bytes: 0,
                    shard_count: 0,
                    counts: None,
                    problem: Some(problem.clone()),
                };
            }
        };
        let shards = trigger.shards.len();
        let state = match counts {
            None if trigger.ended_at.is_some() => TriggerState::Ended,
            Some(counts) if counts.pending == shards && shards > 0 => TriggerState::Pending,
            Some(counts) if counts.pending + counts.running == 0 => TriggerState::Ended,
            _ => TriggerState::Running,
        };
        TriggerSummary {
            run: self.run.clone(),
            state,
            by: trigger.by.as_deref().map(mask_for_list),
            requested_at: Some(trigger.requested_at),
            expires_at: Some(trigger.expires_at),
            ended_at: trigger.ended_at,
            at: Some(trigger.at),
            is_whole: trigger.is_whole,
            parameter: trigger.parameter.as_deref().map(mask),
            parameter_bytes: trigger.parameter.as_ref().map_or(0, String::len),
            shard_count: shards + trigger.delegated.len(),
            counts,
            problem: None,
        }
    }

    pub(super) fn details(&self) -> TriggerDetails {
        let summary = self.summary(|parameter| mask_text(parameter).into_owned());
        let mut shards = BTreeMap::new();
        if let (Ok(trigger), Some(entries)) = (&self.object.trigger, &self.entries) {
            let without_entry = |item, state| TriggerShard {
                item,
                state,
                instance: None,
                attempt: None,
                reason: None,
                since: None,
            };
            for item in trigger.delegated.iter() {
                shards.insert(item, without_entry(item, TriggerShardState::Delegated));
            }
            for item in trigger.shards.iter() {
                let shard = entries.get(&item).map(|entry| entry.shard(item));
                let pending = || without_entry(item, TriggerShardState::Pending);
                shards.insert(item, shard.unwrap_or_else(pending));
            }
        }
        TriggerDetails { summary, shards: shards.into_values().collect() }
    }
}

impl TriggerCounts {
    fn of(&mut self, state: TriggerShardState) -> &mut usize {
        match state {
            TriggerShardState::Pending => &mut self.pending,
            TriggerShardState::Running => &mut self.running,
            TriggerShardState::Succeeded => &mut self.succeeded,
            TriggerShardState::Failed => &mut self.failed,
            TriggerShardState::TimedOut => &mut self.timed_out,
            TriggerShardState::Cancelled => &mut self.cancelled,
            TriggerShardState::Fenced => &mut self.fenced,
            TriggerShardState::Lost => &mut self.lost,
            TriggerShardState::Skipped => &mut self.skipped,
            TriggerShardState::Delegated => &mut self.delegated,
            TriggerShardState::Unreadable => &mut self.unreadable,
        }
    }
}

impl TriggerDetails {
    /// Whether nothing more happens to any shard, as far as can be known.
    pub fn has_ended(&self) -> bool {
        matches!(self.summary.state, TriggerState::Ended | TriggerState::Unreadable)
    }
}
