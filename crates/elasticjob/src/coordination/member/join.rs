//! How an instance joins a job.
//!
//! First it is decided which class or handler runs the job and which configuration applies. Then one transaction creates what is missing
//! and the instance: the server before the instance, because Java waits for the server of every instance it sees. A server that exists is
//! left as it is, because an operator may have disabled it, unless its status is empty, as ElasticJob 2.x wrote it.

use std::{collections::BTreeSet, time::Duration};

use futures_channel::mpsc as queue;
use jiff::{SignedDuration, Timestamp};

use super::{
    assignment::has_java_members,
    context::Context,
    handle::{MemberEvent, MemberResources},
    mirror::Mirror,
};
use crate::{
    coordination::{
        floor::Floor,
        server_status::{StoredStatus, stored_data},
        tree::JobTree,
        view::CachedNode,
    },
    job::{
        ConfigDecision, Conflict, Difference, Handler, Instance, InstanceId, InvalidValue, Job,
        JobName, ShardLimit, UnreadableDocument, resolve_config,
    },
    registry::{Create, Error, ExpectedVersion, Op, Registry, SessionId, ensure_path},
    runtime::Clock,
    schedule::Zone,
};

/// Why an instance could not join.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The job belongs to another class or handler.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The stored configuration cannot be read; it is left alone.
    #[error(transparent)]
    Unreadable(#[from] UnreadableDocument),
    /// The program's configuration would be stored, and no process would read it.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    #[error("cannot join job {job}")]
    Registry {
        job: String,
        #[source]
        source: Error,
    },
    /// The job is defined by the registry alone, and was removed there.
    #[error("job {job} was removed from the registry")]
    Gone { job: String },
    /// The configuration changed during every try.
    #[error("cannot join job {job}: its configuration changes faster than it can be read")]
    Contended { job: String },
}

impl JoinError {
    /// Whether only this job is concerned, because of what is stored for it or how its nodes are protected, so that other jobs can be joined. Otherwise
    /// the registry did not answer.
    pub(crate) fn concerns_one_job(&self) -> bool {
        match self {
            Self::Registry { source, .. } => source.is_refusal(),
            Self::Conflict(_)
            | Self::Unreadable(_)
            | Self::Invalid(_)
            | Self::Gone { .. }
            | Self::Contended { .. } => true,
        }
    }
}

/// The instance that joins, and its job.
#[derive(Debug, Clone)]
pub struct JoinRequest {
    /// The job as the program defines it.
    pub local: Job,
    pub handler: Handler,
    pub author: JobSource,
    pub instance: Instance,
}

/// Where a job is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSource {
    /// In the program: it is stored if nothing is stored, and differences are reported.
    Program,
    /// In the registry: the job is what is stored there. If nothing is stored, there is no job, and none is created.
    Registry,
}

/// What to do if a job is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfAbsent {
    /// It is new: store it.
    Store,
    /// It was stored before: it has been removed.
    Refuse,
}

/// An instance that has joined.
pub(super) struct Joined {
    pub(super) mirror: Mirror,
    /// Misfire marks that were there before any instance was.
    pub(super) leftover_marks: BTreeSet<u32>,
    /// Since when the job and its shards are enabled, as far as that is stored.
    pub(super) floor: Floor,
    /// When the oldest Rust instance that was there joined; see [`first_joined_at`].
    pub(super) first_joined_at: Option<Timestamp>,
    /// How the program's configuration differs from the one that applies.
    pub(super) drift: Vec<Difference>,
}

/// How often the configuration is read again if another program writes it at the same time.
const TRIES: usize = 8;
/// How long to wait before a join is undone again.
const RETRY_DELAY: Duration = Duration::from_millis(500);

pub(super) async fn join(
    resources: MemberResources,
    joining: JoinRequest,
    events: queue::UnboundedSender<MemberEvent>,
) -> Result<Joined, JoinError> {
    let MemberResources { registry, clock, randomness, strategies, flaws, busy, shard_limit } =
        resources;
    let JoinRequest { local, handler, author, instance } = joining;
    let name = local.name.clone();
    let outage = |source| JoinError::Registry { job: name.to_string(), source };
    let tree = JobTree::new(registry.namespace(), &name).map_err(|error| {
        let (path, reason) = (registry.namespace().path().clone(), error.to_string());
        outage(Error::Invalid { path, reason })
    })?;
    // Before anything is read: if the session ends meanwhile, nothing of the next one may be taken for this one's.
    let session = registry.session();
    let Settled { job, drift, is_schedule_new } = match author {
        JobSource::Program => {
            let if_absent = IfAbsent::Store;
            settle_configuration(&*registry, &tree, &local, &handler, if_absent, shard_limit)
                .await?
        }
        JobSource::Registry => Settled {
            job: stored_configuration(&*registry, &tree, &name, &handler, shard_limit).await?,
            drift: Vec::new(),
            is_schedule_new: false,
        },
    };
    ensure_path(&*registry, tree.ledger()).await.map_err(outage)?;
    let watch = registry.watch(tree.root()).await.map_err(outage)?;
    let context = Context {
        registry,
        clock,
        randomness,
        strategies,
        flaws,
        shard_limit,
        own_id: instance.id.clone(),
        session,
        tree,
        busy,
        events,
    };
    let mut mirror = Mirror::new(context, watch, job);
    let leftover_marks = enter(&mut mirror, &instance).await.map_err(outage)?;
    // After the view: what was enabled before that is stored by now, and later changes are seen in the view.
    let floor = stored_floor(&*mirror.context().registry, mirror.tree(), &name);
    let floor = floor.await.map_err(outage)?;
    let first_joined_at = first_joined_at(&mirror, &floor).filter(|_| !is_schedule_new);
    Ok(Joined { mirror, leftover_marks, floor, first_joined_at, drift })
}

/// When the oldest Rust instance that is still there joined, on this node's clock; never earlier than the last change
/// of the schedule. `None` if this instance is the first, or if a Java instance is there: which fires Java ran is
/// unknown.
fn first_joined_at(mirror: &Mirror, floor: &Floor) -> Option<Timestamp> {
    if has_java_members(mirror.view()) {
        return None;
    }
    let joined_at = |id: &String| {
        let document = mirror.view().instances.get(id).and_then(CachedNode::document)?;
        Some(document.written_at_ms)
    };
    let own_id = mirror.own_id().to_string();
    // Both by the registry's clock, which may differ from ours.
    let others = mirror.view().instances.keys().filter(|id| **id != own_id);
    let attended = joined_at(&own_id)?.checked_sub(others.filter_map(joined_at).min()?)?;
    let now = mirror.context().clock.now();
    let since = now.saturating_sub(SignedDuration::from_millis(attended)).unwrap_or(Timestamp::MIN);
    Some(floor.schedule.map_or(since, |schedule| since.max(schedule)))
}

/// Since when the job and its shards are enabled. One that cannot be read counts as none: it only ever prevents runs.
async fn stored_floor(
    registry: &dyn Registry,
    tree: &JobTree,
    name: &JobName,
) -> Result<Floor, Error> {
    let node = match registry.get(&tree.floor()).await {
        Err(Error::NotAuthorised { .. }) | Ok(None) => return Ok(Floor::default()),
        node => node?,
    };
    let floor = node.as_ref().map(Floor::of_node).transpose().unwrap_or_else(|error| {
        tracing::warn!(job = %name, %error, "floor is unreadable");
        None
    });
    Ok(floor.unwrap_or_default())
}

/// The configuration that applies.
#[derive(Debug)]
pub struct Settled {
    pub job: Job,
    /// How the program's configuration differs from it.
    pub drift: Vec<Difference>,
    /// We have stored a schedule that differs from the one before.
    pub is_schedule_new: bool,
}

/// Decides which configuration applies, and stores ours if it does.
pub async fn settle_configuration(
    registry: &dyn Registry,
    tree: &JobTree,
    local: &Job,
    handler: &Handler,
    if_absent: IfAbsent,
    shard_limit: ShardLimit,
) -> Result<Settled, JoinError> {
    let name = &local.name;
    let outage = |source| JoinError::Registry { job: name.to_string(), source };
    for _ in 0..TRIES {
        let root = registry.get(tree.root()).await.map_err(outage)?;
        let config = registry.get(&tree.config()).await.map_err(outage)?;
        if config.is_none() && if_absent == IfAbsent::Refuse {
            return Err(JoinError::Gone { job: name.to_string() });
        }
        let stored = config.as_ref();
        let stored =
            stored.map(|node| Job::read_within(shard_limit, name, &node.data)).transpose()?;
        let root_data = root.as_ref().map(|node| String::from_utf8_lossy(&node.data).into_owned());
        handler.check(local, root_data.as_deref().unwrap_or_default(), stored.as_ref())?;
        let schedule = stored.as_ref().map(|stored| stored.schedule(&Zone::utc()));
        let settled = resolve_config(local.clone(), stored);
        let Some(job) = settled.to_store() else {
            let drift = if let ConfigDecision::Keep { drift, .. } = &settled {
                drift.clone()
            } else {
                vec![]
            };
            return Ok(Settled { job: settled.job().clone(), drift, is_schedule_new: false });
        };
        job.check(shard_limit)?;
        let class = handler.root_data().to_owned();
        let root_op = match &root {
            None => Op::Create(Create::persistent(tree.root(), class)),
            Some(_) => Op::Set {
                path: tree.root().clone(),
                data: class.into(),
                expected: ExpectedVersion::Any,
            },
        };
        let yaml = job.to_yaml();
        let config_op = match &config {
            None => Op::Create(Create::persistent(&tree.config(), yaml)),
            Some(node) => Op::Set {
                path: tree.config(),
                data: yaml.into(),
                expected: ExpectedVersion::Version(node.stat.version),
            },
        };
        match registry.multi(vec![root_op, config_op]).await {
            Ok(_) => {
                let job = settled.job().clone();
                let is_schedule_new = schedule != Some(job.schedule(&Zone::utc()));
                return Ok(Settled { job, drift: vec![], is_schedule_new });
            }
            // Another program was faster: read again, decide again.
            Err(Error::Operation { cause, .. }) if is_race(&cause) => {}
            Err(error) => return Err(outage(error)),
        }
    }
    Err(JoinError::Contended { job: name.to_string() })
}

/// The configuration of a job that is defined in the registry.
async fn stored_configuration(
    registry: &dyn Registry,
    tree: &JobTree,
    name: &JobName,
    handler: &Handler,
    shard_limit: ShardLimit,
) -> Result<Job, JoinError> {
    let outage = |source| JoinError::Registry { job: name.to_string(), source };
    let gone = || JoinError::Gone { job: name.to_string() };
    let root = registry.get(tree.root()).await.map_err(outage)?.ok_or_else(gone)?;
    let config = registry.get(&tree.config()).await.map_err(outage)?.ok_or_else(gone)?;
    let job = Job::read_within(shard_limit, name, &config.data)?;
    handler.check(&job, &String::from_utf8_lossy(&root.data), Some(&job))?;
    Ok(job)
}

/// Deletes the instance of a join that failed, or that was given up, after it may have been carried out. Tries until that is done or the session has
/// ended: the leader would assign shards to that instance, and no task would run them.
pub async fn undo_join(
    registry: &dyn Registry,
    clock: &dyn Clock,
    tree: &JobTree,
    id: &InstanceId,
    session: SessionId,
) {
    while registry.session().id() == session {
        match registry.delete(&tree.instance(id), ExpectedVersion::Any).await {
            Ok(_) | Err(Error::NotFound { .. } | Error::SessionExpired | Error::Closed) => return,
            Err(error) => {
                tracing::warn!(instance = %id, %error, "undoing a join failed, retrying");
                clock.sleep_until(clock.monotonic() + RETRY_DELAY).await;
            }
        }
    }
}

/// Whether another program was faster; any other refusal would be repeated.
pub(super) fn is_race(error: &Error) -> bool {
    matches!(error, Error::Exists { .. } | Error::NotFound { .. } | Error::Conflict { .. })
}

/// Creates our instance. Returns the misfire marks that were there before any instance was.
async fn enter(mirror: &mut Mirror, instance: &Instance) -> Result<BTreeSet<u32>, Error> {
    let mut leftover_marks = BTreeSet::new();
    loop {
        while !mirror.view().is_current() {
            if !mirror.next_change().await {
                return Err(Error::Closed);
            }
        }
        mirror.refresh().await?;
        if mirror.view().instances.keys().all(|id| id == instance.id.as_str()) {
            let marked = mirror.view().shards.iter().filter(|(_, shard)| shard.misfire);
            leftover_marks = marked.map(|(shard, _)| *shard).collect();
        }
        // Our id is unique: if its node exists, we have joined and the answer was lost.
        if mirror.assignment().is_member() {
            return Ok(leftover_marks);
        }
        match mirror.write(entry(mirror, instance)).await {
            Ok(_) => {
                // The instance exists. Whatever fails now, the member tries again.
                if let Err(error) = mirror.refresh().await {
                    tracing::debug!(job = %mirror.job().name, %error, "refresh after joining failed");
                }
                return Ok(leftover_marks);
            }
            // Another instance created what we were about to create, or changed or removed our server. The first operation is the check
            // of the configuration: without that there is no job.
            Err(Error::Operation { index, cause }) if index > 0 && is_race(&cause) => {
                mirror.sync().await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The transaction that joins: what is missing in the tree, our server, our instance. Refused if the job was removed.
fn entry(mirror: &Mirror, instance: &Instance) -> Vec<Op> {
    let (view, tree) = (mirror.view(), mirror.tree());
    let mut ops = vec![Op::Check { path: tree.config(), expected: ExpectedVersion::Any }];
    ops.extend(view.missing_parents().map(|path| Op::Create(Create::persistent(&path, ""))));
    let server = tree.server(instance.id.server());
    let status = stored_data(!mirror.job().disabled);
    match view.servers.get(instance.id.server()).map(|known| (StoredStatus::of(known), known)) {
        Some((Some(StoredStatus::Empty), known)) => {
            let expected = known.document().map_or(ExpectedVersion::Any, |document| {
                ExpectedVersion::Version(document.version)
            });
            ops.push(Op::Set { path: server, data: status.into(), expected });
        }
        // It may be removed as abandoned at this moment.
        Some(_) => ops.push(Op::Check { path: server, expected: ExpectedVersion::Any }),
        None => ops.push(Op::Create(Create::persistent(&server, status))),
    }
    let session = mirror.context().session.id();
    let path = tree.instance(&instance.id);
    ops.push(Op::Create(Create::ephemeral(&path, instance.to_yaml(), session)));
    ops
}
