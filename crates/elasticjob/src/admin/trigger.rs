//! Triggers runs.
//!
//! Accepting a trigger stores it in one transaction, which checks the configuration that its shards were taken from. From then on nothing can lose
//! it: every Rust instance that comes to own one of its shards finds it. The doorbells only make that happen at once. A doorbell that has not been
//! answered yet is left alone, because its instance looks at what is stored after it has deleted it; Java ElasticJob instead deletes what is pending.
//!
//! Java instances do not know stored triggers. Their shards are delegated: the instance gets Java's own trigger, if it has none pending. That of
//! ElasticJob 2.x, whose instance nodes have no document, is `TRIGGER` in the instance node.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Serialize, Serializer};

use super::{
    error::AdminError,
    handle::Admin,
    model::Language,
    snapshot::JobSnapshot,
    switch::{too_many_conflicts, was_committed},
};
use crate::{
    coordination::trigger::{Doorbell, MAX_PARAMETER_BYTES, Trigger, TriggerRequest},
    job::{
        INSTANCE_TRIGGER, JobName, RunId, ShardSelection, is_instance_trigger, is_legacy_document,
    },
    registry::{Create, Error, ExpectedVersion, Node, Op, Path, ensure_path},
};

/// Maximum number of attempts if the job changes meanwhile.
const MAX_ATTEMPTS: usize = 16;
/// How often, and after which time, a registry is asked again that has not answered whether the trigger was stored.
const RECONNECT_ATTEMPTS: usize = 20;
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Result of triggering a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TriggerResponse {
    /// Id of the run, the same on every Rust instance. Java does not know it.
    #[serde(rename = "runId", serialize_with = "as_text")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub run: RunId,
    /// Ids of the instances that were told.
    pub instances: Vec<String>,
    /// Ids of Java instances that still had a pending trigger: they run because of that one.
    pub already_pending: Vec<String>,
    /// Shards of Java instances, which do not tell what becomes of a trigger.
    pub delegated: Vec<u32>,
}

impl Admin {
    /// Triggers a run of a job now. Once this has returned, every shard runs, or a reason why it does not is stored; whatever happens to the instances
    /// meanwhile. A request that is repeated with the same run id is the same trigger.
    ///
    /// Refused if the job has no instance, and if a Java instance would have to run with shards, a time or a parameter, which only Rust instances
    /// understand.
    pub async fn trigger(
        &self,
        job: &JobName,
        request: TriggerRequest,
    ) -> Result<TriggerResponse, AdminError> {
        check_request(&request)?;
        let run = request.run.clone().unwrap_or_else(|| RunId::triggered(self.randomness.bits()));
        for attempt in 0..MAX_ATTEMPTS {
            let snapshot = self.existing_job(job).await?;
            let path = snapshot.tree.accepted_trigger(&run);
            if let Some(node) = self.registry.get(&path).await? {
                return self.repeat(&snapshot, &run, &request, &node.data).await;
            }
            check_shards(&snapshot, &request.shards)?;
            let targets = Targets::of(&snapshot, &request)?;
            let delegated: Vec<u32> = targets.delegated.iter().copied().collect();
            if targets.shards.is_empty() {
                let response = self.ring(&snapshot, run, BTreeSet::new(), targets.java).await?;
                return Ok(TriggerResponse { delegated, ..response });
            }
            let parent = snapshot.tree.accepted_triggers();
            // No Rust instance of this version may have joined yet.
            if !snapshot.ledger.contains_key(&parent) {
                ensure_path(&*self.registry, &parent).await?;
            }
            self.ensure_doorbell_parent(&snapshot).await?;
            // Doorbells that keep being answered at the same moment are rung afterwards.
            let rings_at_once = attempt < MAX_ATTEMPTS / 2;
            let rung = match self.accept(&snapshot, &run, &request, &targets, rings_at_once).await {
                // It may have been stored all the same: this is a repetition then.
                Err(AdminError::Unreachable { source, .. }) if source.is_outage() => {
                    self.wait_for_registry(&path).await?;
                    continue;
                }
                rung => rung?,
            };
            if let Some(rung) = rung {
                // Instances that have joined since the snapshot may own shards by now, and have listed the triggers before this one was stored.
                let joined = self.registry.children(&snapshot.tree.instances()).await?;
                let joined = joined.into_iter().flatten();
                let rust: BTreeSet<String> =
                    joined.filter(|id| Language::of(id) == Language::Rust).collect();
                let rust = &(&rust | &targets.rust) - &rung;
                let mut response = self.ring(&snapshot, run, rust, BTreeSet::new()).await?;
                response.instances.extend(rung);
                response.instances.sort_unstable();
                response.already_pending = targets.java_pending(&snapshot).cloned().collect();
                return Ok(TriggerResponse { delegated, ..response });
            }
        }
        Err(too_many_conflicts(job))
    }

    /// Waits until the registry answers again.
    async fn wait_for_registry(&self, path: &Path) -> Result<(), AdminError> {
        let mut answer = self.registry.exists(path).await;
        for _ in 0..RECONNECT_ATTEMPTS {
            if !matches!(&answer, Err(error) if error.is_outage()) {
                break;
            }
            self.clock.sleep_until(self.clock.monotonic() + RECONNECT_DELAY).await;
            answer = self.registry.exists(path).await;
        }
        answer?;
        Ok(())
    }

    /// Stores a trigger, and rings doorbells that are not ringing, in one transaction. Returns which; `None` if something has changed meanwhile.
    async fn accept(
        &self,
        snapshot: &JobSnapshot,
        run: &RunId,
        request: &TriggerRequest,
        targets: &Targets,
        rings_at_once: bool,
    ) -> Result<Option<BTreeSet<String>>, AdminError> {
        let tree = &snapshot.tree;
        let Some(config) = snapshot.config_node() else { return Ok(None) };
        let version = config.stat.version;
        let (shards, delegated) =
            (targets.shards.iter().copied(), targets.delegated.iter().copied());
        let trigger =
            Trigger::new(request, version.0, shards.collect(), delegated.collect(), self.now());
        let expected = ExpectedVersion::Version(version);
        let mut ops = vec![Op::Check { path: tree.config(), expected }];
        ops.push(Op::Create(Create::persistent(&tree.accepted_trigger(run), trigger.to_bytes())));
        // Nothing but its doorbell tells Java of a trigger. An instance that dies meanwhile, or answers an earlier trigger, is no addressee.
        let mut rung: BTreeSet<String> = BTreeSet::new();
        for id in &targets.java {
            ops.extend(told_java(snapshot, id));
            if !is_java_pending(snapshot, id) {
                rung.insert(id.clone());
            }
        }
        let silent = targets.rust.iter().filter(|id| !snapshot.has(&tree.trigger(id)));
        let doorbells: Vec<Op> =
            silent.filter(|_| rings_at_once).map(|id| doorbell(snapshot, id, run)).collect();
        let fitting = self.registry.limits().fitting(&ops, &doorbells);
        let doorbells = &doorbells[..fitting];
        ops.extend_from_slice(doorbells);
        rung.extend(doorbells.iter().map(|op| op.path().name().to_owned()));
        Ok(was_committed(self.registry.multi(ops).await)?.then_some(rung))
    }

    /// Answers a request that was accepted before.
    async fn repeat(
        &self,
        snapshot: &JobSnapshot,
        run: &RunId,
        request: &TriggerRequest,
        stored: &[u8],
    ) -> Result<TriggerResponse, AdminError> {
        let job = &snapshot.job;
        let trigger = Trigger::read(stored).map_err(|error| {
            AdminError::conflict(
                format!("job {job} has a trigger {run} that cannot be read: {}", error.problem),
                "use another run id",
            )
        })?;
        if !trigger.answers(request) {
            return Err(AdminError::conflict(
                format!(
                    "run {run} of job {job} was triggered with other shards, time or parameter"
                ),
                "use another run id for another request",
            ));
        }
        let ids = snapshot.instance_ids().into_iter();
        let rust: BTreeSet<String> = ids.filter(|id| Language::of(id) == Language::Rust).collect();
        let delegated = trigger.delegated.iter().collect();
        if trigger.ended_at.is_some() {
            let (run, instances) = (run.clone(), rust.into_iter().collect());
            return Ok(TriggerResponse { run, instances, already_pending: Vec::new(), delegated });
        }
        // Java was told in the transaction that accepted the trigger.
        let response = self.ring(snapshot, run.clone(), rust, BTreeSet::new()).await?;
        Ok(TriggerResponse { delegated, ..response })
    }

    /// Rings the doorbells that do not ring yet.
    async fn ring(
        &self,
        snapshot: &JobSnapshot,
        run: RunId,
        rust: BTreeSet<String>,
        java: BTreeSet<String>,
    ) -> Result<TriggerResponse, AdminError> {
        self.ensure_doorbell_parent(snapshot).await?;
        let mut response = TriggerResponse {
            run,
            instances: Vec::new(),
            already_pending: Vec::new(),
            delegated: Vec::new(),
        };
        for id in rust {
            // One that still rings is answered later, and that is enough.
            let answer =
                self.ring_doorbell(snapshot, doorbell(snapshot, &id, &response.run)).await?;
            if answer != Ring::InstanceGone {
                response.instances.push(id);
            }
        }
        for id in java {
            match self.ring_java(snapshot, &id).await? {
                Ring::Rung => response.instances.push(id),
                Ring::WasRinging => response.already_pending.push(id),
                Ring::InstanceGone => {}
            }
        }
        response.instances.sort_unstable();
        Ok(response)
    }

    /// Triggers a Java instance in the way that its version understands.
    async fn ring_java(&self, snapshot: &JobSnapshot, id: &str) -> Result<Ring, AdminError> {
        let instance = snapshot.tree.instance(id);
        if snapshot.node(&instance).is_none_or(|node| !is_legacy_document(&node.data)) {
            let doorbell = Create::persistent(&snapshot.tree.trigger(id), "");
            return self.ring_doorbell(snapshot, Op::Create(doorbell)).await;
        }
        for _ in 0..MAX_ATTEMPTS {
            let Some(node) = self.registry.get(&instance).await? else {
                return Ok(Ring::InstanceGone);
            };
            if is_instance_trigger(&node.data) {
                return Ok(Ring::WasRinging);
            }
            // The instance may clear its node, or another one of the same id may have joined, which stores a document.
            if !is_legacy_document(&node.data) {
                break;
            }
            let ops = vec![
                Op::Check { path: snapshot.tree.config(), expected: ExpectedVersion::Any },
                Op::Set {
                    path: instance.clone(),
                    data: INSTANCE_TRIGGER.into(),
                    expected: ExpectedVersion::Version(node.stat.version),
                },
            ];
            if was_committed(self.registry.multi(ops).await)? {
                return Ok(Ring::Rung);
            }
        }
        Err(too_many_conflicts(&snapshot.job))
    }

    /// Creates the parent node of doorbells if it is missing, provided that the job exists.
    pub(super) async fn ensure_doorbell_parent(
        &self,
        snapshot: &JobSnapshot,
    ) -> Result<(), AdminError> {
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

    /// Creates a doorbell, provided that its instance is a member.
    pub(super) async fn ring_doorbell(
        &self,
        snapshot: &JobSnapshot,
        create: Op,
    ) -> Result<Ring, AdminError> {
        let (tree, expected) = (&snapshot.tree, ExpectedVersion::Any);
        let ops = vec![
            Op::Check { path: tree.config(), expected },
            Op::Check { path: tree.instance(create.path().name()), expected },
            create,
        ];
        match self.registry.multi(ops).await {
            Ok(_) => Ok(Ring::Rung),
            Err(Error::Operation { index: 1, .. }) => Ok(Ring::InstanceGone),
            Err(Error::Operation { cause, .. }) if matches!(*cause, Error::Exists { .. }) => {
                Ok(Ring::WasRinging)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What came of ringing a doorbell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ring {
    Rung,
    WasRinging,
    InstanceGone,
}

/// Rings the doorbell of a Rust instance.
pub(super) fn doorbell(snapshot: &JobSnapshot, id: &str, run: &RunId) -> Op {
    let note = Doorbell::note(&run.to_string());
    Op::Create(Create::persistent(&snapshot.tree.trigger(id), note))
}

/// The node of an instance of ElasticJob 2.x, which is triggered through its data.
fn legacy_instance<'s>(snapshot: &'s JobSnapshot, id: &str) -> Option<&'s Node> {
    snapshot.node(&snapshot.tree.instance(id)).filter(|node| is_legacy_document(&node.data))
}

/// Whether a Java instance has not answered an earlier trigger.
fn is_java_pending(snapshot: &JobSnapshot, id: &str) -> bool {
    legacy_instance(snapshot, id).map_or_else(
        || snapshot.has(&snapshot.tree.trigger(id)),
        |node| is_instance_trigger(&node.data),
    )
}

/// Triggers a Java instance in the way that its version understands, or checks that an earlier trigger is still pending.
fn told_java(snapshot: &JobSnapshot, id: &str) -> Vec<Op> {
    let (instance, doorbell) = (snapshot.tree.instance(id), snapshot.tree.trigger(id));
    let is_pending = is_java_pending(snapshot, id);
    if let Some(node) = legacy_instance(snapshot, id) {
        let expected = ExpectedVersion::Version(node.stat.version);
        return vec![if is_pending {
            Op::Check { path: instance, expected }
        } else {
            Op::Set { path: instance, data: INSTANCE_TRIGGER.into(), expected }
        }];
    }
    let expected = ExpectedVersion::Any;
    let told = if is_pending {
        Op::Check { path: doorbell, expected }
    } else {
        Op::Create(Create::persistent(&doorbell, ""))
    };
    vec![Op::Check { path: instance, expected }, told]
}

/// What a trigger is for.
struct Targets {
    /// Shards that Rust instances run.
    shards: BTreeSet<u32>,
    /// Shards of Java instances.
    delegated: BTreeSet<u32>,
    /// Ids of all Rust instances: any of them may own a shard by the time it runs.
    rust: BTreeSet<String>,
    /// Ids of the Java instances to tell.
    java: BTreeSet<String>,
}

fn check_request(request: &TriggerRequest) -> Result<(), AdminError> {
    if let Some(run) = request.run.as_ref().filter(|run| run.is_scheduled()) {
        return Err(AdminError::invalid(
            format!("{run} is the id of a scheduled run"),
            "leave out the run id, or use a UUID",
        ));
    }
    let bytes = request.parameter.as_ref().map_or(0, String::len);
    if bytes > MAX_PARAMETER_BYTES {
        return Err(AdminError::invalid(
            format!(
                "the parameter has {bytes} bytes, a trigger takes at most {MAX_PARAMETER_BYTES}"
            ),
            "store the data elsewhere and pass its address",
        ));
    }
    Ok(())
}

pub(super) fn check_shards(
    snapshot: &JobSnapshot,
    shards: &ShardSelection,
) -> Result<(), AdminError> {
    let known = snapshot.items();
    match shards.items().into_iter().flatten().find(|shard| !known.contains(**shard)) {
        None => Ok(()),
        Some(shard) => Err(AdminError::invalid(
            format!("job {} has no shard {shard}", snapshot.job),
            format!("its shards are 0 to {}", known.len().saturating_sub(1)),
        )),
    }
}

impl Targets {
    /// Java instances that have a trigger pending.
    fn java_pending<'s>(&'s self, snapshot: &'s JobSnapshot) -> impl Iterator<Item = &'s String> {
        self.java.iter().filter(|id| is_java_pending(snapshot, id))
    }

    fn of(snapshot: &JobSnapshot, request: &TriggerRequest) -> Result<Self, AdminError> {
        let (job, ids) = (&snapshot.job, snapshot.instance_ids());
        if ids.is_empty() {
            return Err(no_instance(job));
        }
        let (java, rust): (BTreeSet<String>, BTreeSet<String>) =
            ids.iter().cloned().partition(|id| Language::of(id) == Language::Java);
        let java_owners: BTreeMap<u32, String> = snapshot
            .items()
            .iter()
            .filter(|shard| request.shards.contains(*shard))
            .filter_map(|shard| {
                Some((shard, snapshot.owner(shard).filter(|owner| java.contains(owner))?))
            })
            .collect();
        if let ShardSelection::Only(_) = request.shards {
            if let Some((shard, owner)) = java_owners.first_key_value() {
                return Err(AdminError::refused(
                    format!(
                        "shard {shard} of job {job} is assigned to {owner}, a Java instance, which runs all its shards or none"
                    ),
                    "trigger the whole job, or choose shards of Rust instances",
                ));
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
            let shards = request.shards.items().cloned().unwrap_or_default();
            return Ok(Self { shards, delegated: BTreeSet::new(), rust, java: BTreeSet::new() });
        }
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
        if rust.is_empty() {
            let delegated = snapshot.items().iter().collect();
            return Ok(Self { shards: BTreeSet::new(), delegated, rust, java });
        }
        let config = snapshot.config().transpose();
        let config = config.map_err(|error| AdminError::unreadable(&error))?;
        let total = config.map_or(0, |job| job.shards.get());
        // A shard without an owner waits for a Rust instance.
        let (delegated, shards) = (0..total).partition(|shard| java_owners.contains_key(shard));
        Ok(Self { shards, delegated, rust, java })
    }
}

fn no_instance(job: &JobName) -> AdminError {
    AdminError::refused(format!("job {job} has no instance"), "start one, then trigger it")
}

fn as_text<S: Serializer>(run: &RunId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(run)
}
