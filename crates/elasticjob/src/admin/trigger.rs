//! Triggers runs, and cancels them.
//!
//! A trigger is a node below `trigger` for each instance that shall run or cancel. A pending trigger is never overwritten: it is another client's
//! request, and would be lost if it were deleted, as Java ElasticJob does. Only registered instances are triggered, so that no trigger waits for an
//! instance that is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Serialize, Serializer};

use super::{error::AdminError, handle::Admin, model::Language, snapshot::JobSnapshot};
use crate::{
    coordination::trigger::{InstanceRequest, TriggerRequest},
    job::{JobName, RunId, ShardSelection},
    registry::{Create, Error, ExpectedVersion, Op},
};

/// Maximum number of attempts to create a trigger while the instance still has a pending one.
const MAX_ATTEMPTS: usize = 20;
/// Time between two attempts, for the instance to take its pending trigger.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Result of triggering a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TriggerResponse {
    /// Id of the run, the same on every Rust instance. Java does not know it.
    #[serde(rename = "runId", serialize_with = "as_text")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub run: RunId,
    /// Ids of the triggered instances.
    pub instances: Vec<String>,
    /// Ids of instances that still had a pending trigger: they run because of that one, under another run id.
    pub already_pending: Vec<String>,
}

/// Result of cancelling shards of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancellationResult {
    /// Shards whose cancellation was requested, by instance id.
    pub requested: BTreeMap<String, Vec<u32>>,
    /// Shards that cannot be cancelled, with the id of their holder: a Java instance, or an instance that was shut down and is finishing.
    pub not_cancellable: BTreeMap<u32, String>,
    /// Shards that were not running.
    pub idle: Vec<u32>,
}

impl Admin {
    /// Triggers a run of a job now. Refused if the job has no instance, and if a Java instance would have to run with shards, a time or a parameter,
    /// which only Rust instances understand.
    pub async fn trigger(
        &self,
        job: &JobName,
        request: TriggerRequest,
    ) -> Result<TriggerResponse, AdminError> {
        let snapshot = self.existing_job(job).await?;
        check_shards(&snapshot, &request.shards)?;
        let targets = target_instances(&snapshot, &request)?;
        let run = request.run.clone().unwrap_or_else(|| RunId::triggered(self.randomness.bits()));
        let trigger = InstanceRequest::Run(TriggerRequest { run: Some(run.clone()), ..request });
        self.ensure_trigger_parent(&snapshot).await?;
        let (mut instances, mut already_pending) = (Vec::new(), Vec::new());
        for id in targets {
            let (data, max_attempts) = match Language::of(&id) {
                Language::Rust => (trigger.to_bytes(), MAX_ATTEMPTS),
                Language::Java => (Vec::new(), 1),
            };
            match self.create_trigger(&snapshot, &id, data, max_attempts).await? {
                TriggerCreation::Created => instances.push(id),
                TriggerCreation::OtherPending => already_pending.push(id),
                TriggerCreation::InstanceGone => {}
            }
        }
        if instances.is_empty() && already_pending.is_empty() {
            return Err(no_instance(job));
        }
        Ok(TriggerResponse { run, instances, already_pending })
    }

    /// Requests cancellation of these shards from the instances that run them. Java instances cannot cancel; the result names them.
    pub async fn cancel(
        &self,
        job: &JobName,
        shards: &ShardSelection,
    ) -> Result<CancellationResult, AdminError> {
        let snapshot = self.existing_job(job).await?;
        check_shards(&snapshot, shards)?;
        let known = snapshot.items();
        let wanted = known.iter().filter(|item| shards.contains(*item));
        let mut cancelled = CancellationResult {
            requested: BTreeMap::new(),
            not_cancellable: BTreeMap::new(),
            idle: Vec::new(),
        };
        let mut holders: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for shard in wanted {
            match snapshot.holder(shard).map(|running| running.instance) {
                None => cancelled.idle.push(shard),
                Some(id) if Language::of(&id) == Language::Java => {
                    cancelled.not_cancellable.insert(shard, id);
                }
                Some(id) => {
                    holders.entry(id).or_default().insert(shard);
                }
            }
        }
        if !holders.is_empty() {
            self.ensure_trigger_parent(&snapshot).await?;
        }
        for (id, shards) in holders {
            let Ok(selection) = ShardSelection::only(shards.iter().copied()) else { continue };
            let data = InstanceRequest::Cancel(selection).to_bytes();
            match self.create_trigger(&snapshot, &id, data, MAX_ATTEMPTS).await? {
                TriggerCreation::Created => {
                    cancelled.requested.insert(id, shards.into_iter().collect());
                }
                TriggerCreation::InstanceGone => {
                    cancelled
                        .not_cancellable
                        .extend(shards.into_iter().map(|shard| (shard, id.clone())));
                }
                TriggerCreation::OtherPending => {
                    return Err(AdminError::conflict(
                        format!("instance {id} has not taken its last trigger of job {job} yet"),
                        "is it still alive? try again in a moment",
                    ));
                }
            }
        }
        Ok(cancelled)
    }

    /// Creates the parent node of triggers if it is missing, provided that the job exists.
    async fn ensure_trigger_parent(&self, snapshot: &JobSnapshot) -> Result<(), AdminError> {
        let path = snapshot.tree.triggers();
        if snapshot.has(&path) {
            return Ok(());
        }
        let config = Op::Check { path: snapshot.tree.config(), expected: ExpectedVersion::Any };
        match self.registry.multi(vec![config, Op::Create(Create::persistent(&path, ""))]).await {
            Ok(_) => Ok(()),
            Err(Error::Operation { cause, .. }) if matches!(*cause, Error::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the trigger node of an instance. Retries while another trigger is pending there.
    async fn create_trigger(
        &self,
        snapshot: &JobSnapshot,
        id: &str,
        data: Vec<u8>,
        max_attempts: usize,
    ) -> Result<TriggerCreation, AdminError> {
        let tree = &snapshot.tree;
        for attempt in 0..max_attempts {
            if attempt > 0 {
                self.clock.sleep_until(self.clock.monotonic() + RETRY_DELAY).await;
            }
            let ops = vec![
                Op::Check { path: tree.config(), expected: ExpectedVersion::Any },
                Op::Check { path: tree.instance(id), expected: ExpectedVersion::Any },
                Op::Create(Create::persistent(&tree.trigger(id), data.clone())),
            ];
            match self.registry.multi(ops).await {
                Ok(_) => return Ok(TriggerCreation::Created),
                Err(Error::Operation { cause, .. }) if matches!(*cause, Error::Exists { .. }) => {}
                Err(Error::Operation { index: 1, .. }) => return Ok(TriggerCreation::InstanceGone),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(TriggerCreation::OtherPending)
    }
}

enum TriggerCreation {
    Created,
    /// The instance has not taken an earlier trigger yet.
    OtherPending,
    InstanceGone,
}

fn check_shards(snapshot: &JobSnapshot, shards: &ShardSelection) -> Result<(), AdminError> {
    let known = snapshot.items();
    match shards.items().into_iter().flatten().find(|shard| !known.contains(**shard)) {
        None => Ok(()),
        Some(shard) => Err(AdminError::invalid(
            format!("job {} has no shard {shard}", snapshot.job),
            format!("its shards are 0 to {}", known.len().saturating_sub(1)),
        )),
    }
}

/// Ids of the instances to trigger.
fn target_instances(
    snapshot: &JobSnapshot,
    request: &TriggerRequest,
) -> Result<BTreeSet<String>, AdminError> {
    let (job, ids) = (&snapshot.job, snapshot.instance_ids());
    if ids.is_empty() {
        return Err(no_instance(job));
    }
    let (java, rust): (BTreeSet<String>, BTreeSet<String>) =
        ids.iter().cloned().partition(|id| Language::of(id) == Language::Java);
    let owners: BTreeMap<u32, Option<String>> = request
        .shards
        .items()
        .into_iter()
        .flatten()
        .map(|shard| (*shard, snapshot.owner(*shard).filter(|owner| ids.contains(owner))))
        .collect();
    for (shard, owner) in &owners {
        if let Some(owner) = owner.as_ref().filter(|owner| java.contains(*owner)) {
            return Err(AdminError::refused(
                format!(
                    "shard {shard} of job {job} is assigned to {owner}, a Java instance, which runs all its shards or none"
                ),
                "trigger the whole job, or choose shards of Rust instances",
            ));
        }
    }
    if request.shards == ShardSelection::All {
        let options =
            [("a time", request.at.is_some()), ("a parameter", request.parameter.is_some())];
        let given = options.iter().find(|(_, is_given)| *is_given);
        if let (Some((option, _)), Some(id)) = (given, java.first()) {
            return Err(AdminError::refused(
                format!(
                    "job {job} cannot be triggered with {option}: {id} is a Java instance and would ignore it"
                ),
                format!("trigger the job without {option}, or choose shards of Rust instances"),
            ));
        }
        return Ok(ids);
    }
    if rust.is_empty() {
        return Err(AdminError::refused(
            format!(
                "job {job} has only Java instances ({}), which run all their shards or none",
                java.into_iter().collect::<Vec<_>>().join(", ")
            ),
            "trigger the whole job",
        ));
    }
    // While shards are being reassigned, all Rust instances are triggered, so that the future owner is among them; only the owner runs a shard.
    let is_settled =
        !snapshot.has(&snapshot.tree.necessary()) && !snapshot.has(&snapshot.tree.processing());
    let owned: Option<BTreeSet<String>> = owners.into_values().collect();
    Ok(owned.filter(|_| is_settled).unwrap_or(rust))
}

fn no_instance(job: &JobName) -> AdminError {
    AdminError::refused(format!("job {job} has no instance"), "start one, then trigger it")
}

fn as_text<S: Serializer>(run: &RunId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(run)
}
