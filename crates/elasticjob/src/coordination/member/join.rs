//! How an instance joins a job.
//!
//! First it is decided which class or handler runs the job and which configuration applies. Then one transaction creates what is missing
//! and the instance: the server before the instance, because Java waits for the server of every instance it sees. A server that exists is
//! left as it is, because an operator may have disabled it, unless its status is empty, as ElasticJob 2.x wrote it.
//!
//! The first instance of a job also becomes its leader and the owner of its shards in that transaction ([`sole_entry`]), and a job that does not
//! exist is stored in it, too.

use std::{collections::BTreeSet, time::Duration};

use futures_channel::mpsc as queue;
use futures_util::future::try_join;
use jiff::{SignedDuration, Timestamp};

use super::{
    assignment::has_java_members,
    context::Context,
    handle::{MemberEvent, MemberResources},
    mirror::Mirror,
    sole_entry::{AssignedFor, SoleEntry, expect_echoes, sole_entry},
};
use crate::{
    coordination::{
        floor::Floor,
        ledger::VersionedPage,
        server_status::{StoredStatus, stored_data},
        tree::JobTree,
        view::CachedNode,
    },
    job::{
        ConfigDecision, Conflict, Difference, Handler, Instance, InstanceId, InvalidValue, Job,
        JobName, ShardLimit, UnreadableDocument, resolve_config,
    },
    registry::{
        Committed, Create, Error, ExpectedVersion, Node, Op, Registry, SessionId, ensure_path,
    },
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
    /// What the assignment is for that was made in joining.
    pub(super) assigned_for: Option<AssignedFor>,
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
    let context = Context {
        // Before anything is read: if the session ends meanwhile, nothing of the next one may be taken for this one's.
        session: registry.session(),
        registry,
        clock,
        randomness,
        strategies,
        flaws,
        shard_limit,
        own_id: instance.id.clone(),
        own_document: instance.to_yaml().into(),
        tree,
        busy,
        events,
    };
    let stored = StoredJob::read(&*context.registry, &context.tree).await.map_err(outage)?;
    let (context, stored) = if author == JobSource::Program && stored.is_absent() {
        match create_job(context, &local, &handler, &instance).await? {
            Creation::Joined(joined) => return Ok(*joined),
            Creation::Refused(context) => {
                let stored = StoredJob::read(&*context.registry, &context.tree).await;
                (*context, stored.map_err(outage)?)
            }
        }
    } else {
        (context, stored)
    };
    let (registry, tree) = (&*context.registry, &context.tree);
    let Settled { job, drift, is_schedule_new } = match author {
        JobSource::Program => {
            let if_absent = IfAbsent::Store;
            settle(registry, tree, stored, &local, &handler, if_absent, shard_limit).await?
        }
        JobSource::Registry => Settled {
            job: stored.job(&name, &handler, shard_limit)?,
            drift: Vec::new(),
            is_schedule_new: false,
        },
    };
    let triggers = tree.accepted_triggers();
    let ledger = ensure_path(registry, &triggers);
    let ((), watch) = try_join(ledger, registry.watch(tree.root())).await.map_err(outage)?;
    let mut mirror = Mirror::new(context, watch, job);
    let Entered { leftover_marks, assigned_for } =
        enter(&mut mirror, &instance).await.map_err(outage)?;
    // After the view: what was enabled before that is stored by now, and later changes are seen in the view.
    let floor = stored_floor(&*mirror.context().registry, mirror.tree(), &name);
    let floor = floor.await.map_err(outage)?;
    let first_joined_at = first_joined_at(&mirror, &floor).filter(|_| !is_schedule_new);
    Ok(Joined { mirror, leftover_marks, floor, first_joined_at, drift, assigned_for })
}

/// How it went to create a job.
enum Creation {
    Joined(Box<Joined>),
    /// The job exists by now, or a part of it that was left behind, or it is too large for one request: it is joined step by step.
    Refused(Box<Context>),
}

/// Stores a job that does not exist and joins it, in one transaction.
async fn create_job(
    context: Context,
    local: &Job,
    handler: &Handler,
    instance: &Instance,
) -> Result<Creation, JoinError> {
    let outage = |source| JoinError::Registry { job: local.name.to_string(), source };
    handler.check(local, "", None)?;
    let settled = resolve_config(local.clone(), None);
    settled.job().check(context.shard_limit)?;
    let watch = context.registry.watch(context.tree.root()).await.map_err(outage)?;
    let mut mirror = Mirror::new(context, watch, settled.job().clone());
    while !mirror.view().is_current() {
        if !mirror.next_change().await {
            return Err(outage(Error::Closed));
        }
    }
    if mirror.view().root.is_some() {
        return Ok(Creation::Refused(Box::new(mirror.into_context())));
    }
    let tree = mirror.tree();
    let stored = [
        (tree.root(), handler.root_data().to_owned()),
        (&tree.config(), settled.job().to_yaml()),
        // Refused if it exists: what an earlier job of this name left there has to be read.
        (tree.ledger(), String::new()),
        (&tree.accepted_triggers(), String::new()),
    ];
    let mut ops: Vec<Op> =
        stored.map(|(path, data)| Op::Create(Create::persistent(path, data))).into();
    ops.extend(entry(&mirror, instance));
    let sole = sole_entry(&mirror, &ops);
    let assigned_for = sole.map(|SoleEntry { ops: more, assigned_for }| {
        ops.extend(more);
        assigned_for
    });
    if mirror.context().registry.limits().fitting(&[], &ops) < ops.len() {
        return Ok(Creation::Refused(Box::new(mirror.into_context())));
    }
    match mirror.commit(ops.clone()).await {
        Ok(committed) => {
            // The ledger is new, too.
            for shard in 0..mirror.job().shards.get() {
                mirror.pages().remember(shard, VersionedPage::default());
            }
            catch_up(&mut mirror, &ops, &committed).await;
            Ok(Creation::Joined(Box::new(Joined {
                mirror,
                leftover_marks: BTreeSet::new(),
                floor: Floor::default(),
                first_joined_at: None,
                drift: Vec::new(),
                assigned_for,
            })))
        }
        Err(Error::Operation { cause, .. }) if is_race(&cause) => {
            Ok(Creation::Refused(Box::new(mirror.into_context())))
        }
        Err(error) => Err(outage(error)),
    }
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

/// What is stored of a job.
struct StoredJob {
    root: Option<Node>,
    config: Option<Node>,
}

impl StoredJob {
    async fn read(registry: &dyn Registry, tree: &JobTree) -> Result<Self, Error> {
        let config = tree.config();
        let (root, config) = try_join(registry.get(tree.root()), registry.get(&config)).await?;
        Ok(Self { root, config })
    }

    fn is_absent(&self) -> bool {
        self.root.is_none() && self.config.is_none()
    }

    /// The configuration of a job that is defined in the registry.
    fn job(&self, name: &JobName, handler: &Handler, limit: ShardLimit) -> Result<Job, JoinError> {
        let (Some(root), Some(config)) = (&self.root, &self.config) else {
            return Err(JoinError::Gone { job: name.to_string() });
        };
        let job = Job::read_within(limit, name, &config.data)?;
        handler.check(&job, &String::from_utf8_lossy(&root.data), Some(&job))?;
        Ok(job)
    }
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
    let stored = StoredJob::read(registry, tree).await;
    let stored =
        stored.map_err(|source| JoinError::Registry { job: local.name.to_string(), source })?;
    settle(registry, tree, stored, local, handler, if_absent, shard_limit).await
}

async fn settle(
    registry: &dyn Registry,
    tree: &JobTree,
    mut stored: StoredJob,
    local: &Job,
    handler: &Handler,
    if_absent: IfAbsent,
    shard_limit: ShardLimit,
) -> Result<Settled, JoinError> {
    let name = &local.name;
    let outage = |source| JoinError::Registry { job: name.to_string(), source };
    for _ in 0..TRIES {
        let StoredJob { root, config } = &stored;
        if config.is_none() && if_absent == IfAbsent::Refuse {
            return Err(JoinError::Gone { job: name.to_string() });
        }
        let stored_job = config.as_ref();
        let stored_job =
            stored_job.map(|node| Job::read_within(shard_limit, name, &node.data)).transpose()?;
        let root_data = root.as_ref().map(|node| String::from_utf8_lossy(&node.data).into_owned());
        handler.check(local, root_data.as_deref().unwrap_or_default(), stored_job.as_ref())?;
        let schedule = stored_job.as_ref().map(|stored| stored.schedule(&Zone::utc()));
        let settled = resolve_config(local.clone(), stored_job);
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
        let root_op = match root {
            None => Op::Create(Create::persistent(tree.root(), class)),
            Some(_) => Op::Set {
                path: tree.root().clone(),
                data: class.into(),
                expected: ExpectedVersion::Any,
            },
        };
        let yaml = job.to_yaml();
        let config_op = match config {
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
            Err(Error::Operation { cause, .. }) if is_race(&cause) => {
                stored = StoredJob::read(registry, tree).await.map_err(outage)?;
            }
            Err(error) => return Err(outage(error)),
        }
    }
    Err(JoinError::Contended { job: name.to_string() })
}

/// Deletes the instance of a join that failed, or that was given up, after it may have been carried out, and the leader, if it is this instance. Tries
/// until that is done or the session has ended: the leader would assign shards to that instance, and no task would run them.
pub async fn undo_join(
    registry: &dyn Registry,
    clock: &dyn Clock,
    tree: &JobTree,
    id: &InstanceId,
    session: SessionId,
) {
    while registry.session().id() == session {
        match delete_entry(registry, tree, id).await {
            Ok(()) | Err(Error::SessionExpired | Error::Closed) => return,
            Err(error) => {
                tracing::warn!(instance = %id, %error, "undoing a join failed, retrying");
                clock.sleep_until(clock.monotonic() + RETRY_DELAY).await;
            }
        }
    }
}

async fn delete_entry(
    registry: &dyn Registry,
    tree: &JobTree,
    id: &InstanceId,
) -> Result<(), Error> {
    let deleted = |result: Result<_, Error>| match result {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    };
    deleted(registry.delete(&tree.instance(id), ExpectedVersion::Any).await)?;
    let leader = registry.get(&tree.leader()).await?;
    if leader.is_none_or(|leader| leader.data != id.as_str()) {
        return Ok(());
    }
    deleted(registry.delete(&tree.leader(), ExpectedVersion::Any).await)
}

/// Whether another program was faster; any other refusal would be repeated.
pub(super) fn is_race(error: &Error) -> bool {
    matches!(error, Error::Exists { .. } | Error::NotFound { .. } | Error::Conflict { .. })
}

/// The instance exists.
struct Entered {
    /// Misfire marks that were there before any instance was.
    leftover_marks: BTreeSet<u32>,
    assigned_for: Option<AssignedFor>,
}

/// Creates our instance.
async fn enter(mirror: &mut Mirror, instance: &Instance) -> Result<Entered, Error> {
    let mut leftover_marks = BTreeSet::new();
    let mut is_contended = false;
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
            return Ok(Entered { leftover_marks, assigned_for: None });
        }
        let config = mirror.view().config.as_ref().and_then(CachedNode::document);
        let mut ops =
            vec![Op::Check { path: mirror.tree().config(), expected: ExpectedVersion::Any }];
        ops.extend(entry(mirror, instance));
        let sole = sole_entry(mirror, &ops).filter(|_| !is_contended).zip(config);
        let assigned_for = sole.map(|(SoleEntry { ops: more, assigned_for }, config)| {
            // The owners depend on the number of shards.
            let expected = ExpectedVersion::Version(config.version);
            ops[0] = Op::Check { path: mirror.tree().config(), expected };
            ops.extend(more);
            assigned_for
        });
        match mirror.commit(ops.clone()).await {
            Ok(committed) => {
                catch_up(mirror, &ops, &committed).await;
                return Ok(Entered { leftover_marks, assigned_for });
            }
            // Another instance created what we were about to create, or changed or removed our server. The first operation is the check
            // of the configuration: without that there is no job.
            Err(Error::Operation { index, cause })
                if is_race(&cause) && (index > 0 || matches!(*cause, Error::Conflict { .. })) =>
            {
                is_contended = true;
                mirror.sync().await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The instance exists. Whatever fails now, the member tries again.
async fn catch_up(mirror: &mut Mirror, ops: &[Op], committed: &Committed) {
    expect_echoes(mirror, ops, committed);
    if let Err(error) = mirror.refresh().await {
        tracing::debug!(job = %mirror.job().name, %error, "refresh after joining failed");
    }
}

/// What joins: the nodes that are missing in the tree, our server, our instance.
fn entry(mirror: &Mirror, instance: &Instance) -> Vec<Op> {
    let (view, tree) = (mirror.view(), mirror.tree());
    let missing = view.missing_parents().map(|path| Op::Create(Create::persistent(&path, "")));
    let mut ops: Vec<Op> = missing.collect();
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
