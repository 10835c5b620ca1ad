//! How an instance enters a job, and leaves it.
//!
//! First it is settled what the job is: whose class or handler, which configuration counts. Then one multi makes what is missing and
//! enters: the server before the instance, because Java waits for the server of every instance it sees. A server that exists is left
//! as it is: who disabled it meant it.

use crate::{
    coordination::{tree::JobTree, view::View},
    job::{
        ConfigDecision, Conflict, Difference, Handler, Instance, Job, JobName, UnreadableDocument,
        resolve_config,
    },
    registry::{Create, Error, ExpectedVersion, Op, Registry, SessionId},
};

/// Why an instance did not enter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The job is somebody else's.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// What is stored cannot be read; it is left alone.
    #[error(transparent)]
    Unreadable(#[from] UnreadableDocument),
    /// The registry.
    #[error("cannot join job {job}")]
    Registry {
        /// The job.
        job: String,
        /// What was in the way.
        #[source]
        source: Error,
    },
    /// The job is only what the registry says of it, and that says nothing any more.
    #[error("job {job} was removed from the registry")]
    Gone {
        /// The job.
        job: String,
    },
    /// The registry changed under every try.
    #[error("cannot join job {job}: its configuration changes faster than it can be read")]
    Restless {
        /// The job.
        job: String,
    },
}

/// Who enters, and with what.
#[derive(Debug, Clone)]
pub struct Joining {
    /// The job as the program has it.
    pub local: Job,
    /// What runs it.
    pub handler: Handler,
    /// Who says what the job is.
    pub author: Author,
    /// Who we are.
    pub instance: Instance,
}

/// Who says what a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The program: it is stored where nothing is, and what it says otherwise is told.
    Program,
    /// The registry: the job is what is stored. Where nothing is there is no job, and nobody makes it one.
    Registry,
}

/// Whether a job that is not there is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfAbsent {
    /// It is new.
    Store,
    /// It was there: somebody removed it.
    Gone,
}

/// How often the configuration is read again when somebody writes it at the same time.
const TRIES: usize = 8;

/// Settles which configuration counts and stores it if it is ours; says which it is, and what the program says otherwise.
pub async fn settle_configuration(
    registry: &dyn Registry,
    tree: &JobTree,
    local: &Job,
    handler: &Handler,
    if_absent: IfAbsent,
) -> Result<(Job, Vec<Difference>), JoinError> {
    let name = &local.name;
    let outage = |source| JoinError::Registry { job: name.to_string(), source };
    for _ in 0..TRIES {
        let root = registry.get(tree.root()).await.map_err(outage)?;
        let config = registry.get(&tree.config()).await.map_err(outage)?;
        if config.is_none() && if_absent == IfAbsent::Gone {
            return Err(JoinError::Gone { job: name.to_string() });
        }
        let stored = config.as_ref().map(|node| Job::read(name, &node.data)).transpose()?;
        let root_data = root.as_ref().map(|node| String::from_utf8_lossy(&node.data).into_owned());
        handler.check(local, root_data.as_deref().unwrap_or_default(), stored.as_ref())?;
        let settled = resolve_config(local.clone(), stored);
        let Some(job) = settled.to_store() else {
            let drift = if let ConfigDecision::Keep { drift, .. } = &settled {
                drift.clone()
            } else {
                vec![]
            };
            return Ok((settled.job().clone(), drift));
        };
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
            Ok(_) => return Ok((settled.job().clone(), vec![])),
            // Somebody was faster: look again, decide again.
            Err(Error::Operation { cause, .. }) if is_race(&cause) => {}
            Err(error) => return Err(outage(error)),
        }
    }
    Err(JoinError::Restless { job: name.to_string() })
}

/// What a job is that only the registry knows.
pub(super) async fn stored_configuration(
    registry: &dyn Registry,
    tree: &JobTree,
    name: &JobName,
    handler: &Handler,
) -> Result<Job, JoinError> {
    let outage = |source| JoinError::Registry { job: name.to_string(), source };
    let gone = || JoinError::Gone { job: name.to_string() };
    let root = registry.get(tree.root()).await.map_err(outage)?.ok_or_else(gone)?;
    let config = registry.get(&tree.config()).await.map_err(outage)?.ok_or_else(gone)?;
    let job = Job::read(name, &config.data)?;
    handler.check(&job, &String::from_utf8_lossy(&root.data), Some(&job))?;
    Ok(job)
}

/// Whether it was somebody else, and not a refusal that stays one.
fn is_race(error: &Error) -> bool {
    matches!(error, Error::Exists { .. } | Error::NotFound { .. } | Error::Conflict { .. })
}

/// The multi that enters: what is missing in the tree, our server, ourselves. Refused when the job is gone.
pub(super) fn entry(view: &View, job: &Job, instance: &Instance, session: SessionId) -> Vec<Op> {
    let tree = view.tree();
    let mut ops = vec![Op::Check { path: tree.config(), expected: ExpectedVersion::Any }];
    ops.extend(view.missing_parents().map(|path| Op::Create(Create::persistent(&path, ""))));
    let server = tree.server(instance.id.server());
    if view.servers.contains_key(instance.id.server()) {
        // It may be taken away as deserted just now.
        ops.push(Op::Check { path: server, expected: ExpectedVersion::Any });
    } else {
        let status = if job.disabled { "DISABLED" } else { "ENABLED" };
        ops.push(Op::Create(Create::persistent(&server, status)));
    }
    ops.push(Op::Create(Create::ephemeral(
        &tree.instance(&instance.id),
        instance.to_yaml(),
        session,
    )));
    ops
}
