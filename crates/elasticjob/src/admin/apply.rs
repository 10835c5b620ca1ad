//! Stores configurations in two steps: plan, then apply exactly what was planned.
//!
//! A plan remembers the version it was made for. If another client changes the configuration between plan and apply, that change wins, and apply fails
//! with a [`Conflict`](AdminError::Conflict) that names what changed. Settings of other programs are kept: extra configuration, and the older spelling
//! of a key.

use serde::Serialize;

use super::{
    error::AdminError,
    handle::Admin,
    model::{Language, as_number},
    snapshot::{JobSnapshot, written_at},
};
use crate::problem::Problem;
use crate::{
    coordination::floor::Floor,
    job::{Difference, Handler, Job, JobName, drift, replacing},
    registry::{Create, Error, ExpectedVersion, Op, OpResult, Version, ensure_path},
};

/// A configuration to be stored.
///
/// ```
/// use elasticjob::{Job, admin::Edit, job::Handler, registry::Version};
///
/// let job = Job::named("backup")?.cron("0 0 3 * * ?")?.prop("script.command.line", "sh backup.sh")?;
/// let edit = Edit::new(job).handler(Handler::Script).seen(Version(7));
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Debug, Clone)]
pub struct Edit {
    job: Job,
    handler: Option<Handler>,
    expected_version: Option<Version>,
}

impl Edit {
    /// Stores this configuration. The handler of an existing job stays as it is; a new job is run by a Rust program.
    pub fn new(job: Job) -> Self {
        Self { job, handler: None, expected_version: None }
    }

    /// Sets what runs the job: a conflict if the job already belongs to another handler.
    #[must_use]
    pub fn handler(mut self, handler: Handler) -> Self {
        self.handler = Some(handler);
        self
    }

    /// The stored version this edit is based on: a conflict if the configuration has another version by now.
    #[must_use]
    pub fn seen(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }
}

/// What storing a configuration would change.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// The configuration to store.
    pub job: Job,
    pub change: ConfigChange,
    /// The configuration stored now, and its version.
    stored: Option<(Job, Version)>,
    /// Data to write to the job's root node, if that is still empty.
    class: Option<String>,
    /// Version of the job's root node, if it exists.
    root: Option<Version>,
}

/// How a plan changes the stored configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigChange {
    /// The job does not exist yet.
    New,
    /// These properties change; `local` is the planned value. Empty if only the handler is added.
    Changed(Vec<Difference>),
    /// The stored configuration is the same already.
    Same,
}

/// Result of applying a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApplyResult {
    /// Whether anything was written.
    pub is_changed: bool,
    /// Version of the stored configuration now.
    #[serde(serialize_with = "as_number")]
    #[cfg_attr(feature = "openapi", schema(value_type = i32))]
    pub version: Version,
}

impl Admin {
    /// Computes what storing this configuration would change. Writes nothing.
    pub async fn plan(&self, edit: Edit) -> Result<Plan, AdminError> {
        let Edit { job, handler, expected_version } = edit;
        job.check(self.shard_limit)?;
        let snapshot = self.snapshot(&job.name).await?;
        let stored =
            snapshot.config().transpose().map_err(|error| AdminError::unreadable(&error))?;
        let version = snapshot.config_node().map(|node| node.stat.version);
        if let Some(expected) = expected_version
            && version != Some(expected)
        {
            return Err(changed_meanwhile(&job.name, None, &snapshot));
        }
        let root = String::from_utf8_lossy(snapshot.root_data()).into_owned();
        if let Some(handler) = &handler {
            handler.check(&job, &root, stored.as_ref())?;
        }
        let class = handler.map(|handler| handler.root_data().to_owned());
        let class = class.filter(|class| root.trim().is_empty() && !class.is_empty());
        let (job, change) = match &stored {
            None => (job, ConfigChange::New),
            Some(stored) => {
                let job = replacing(job, stored);
                let differences = drift(&job, stored);
                let is_same = differences.is_empty() && class.is_none();
                (job, if is_same { ConfigChange::Same } else { ConfigChange::Changed(differences) })
            }
        };
        if change != ConfigChange::Same {
            refuse_zone(&job, stored.as_ref(), &snapshot)?;
        }
        let root = snapshot.node(snapshot.tree.root()).map(|node| node.stat.version);
        Ok(Plan { job, change, stored: stored.zip(version), class, root })
    }

    /// Carries out a plan, in one transaction.
    pub async fn apply(&self, plan: &Plan) -> Result<ApplyResult, AdminError> {
        if let (ConfigChange::Same, Some((_, version))) = (&plan.change, &plan.stored) {
            return Ok(ApplyResult { is_changed: false, version: *version });
        }
        let name = &plan.job.name;
        let tree = self.tree(name)?;
        let snapshot = self.snapshot(name).await?;
        refuse_zone(&plan.job, plan.stored.as_ref().map(|(job, _)| job), &snapshot)?;
        // The first job of a namespace creates the namespace.
        ensure_path(&*self.registry, self.registry.namespace().path()).await?;
        let mut ops = Vec::new();
        let is_enabled = plan.stored.as_ref().is_some_and(|(stored, _)| stored.disabled);
        if is_enabled && !plan.job.disabled {
            ops.extend(snapshot.store_floor(&Floor::of_job(self.clock.now())));
        }
        match (&plan.class, plan.root) {
            (class, None) => {
                let class = class.clone().unwrap_or_default();
                ops.push(Op::Create(Create::persistent(tree.root(), class)));
            }
            (Some(class), Some(version)) => ops.push(Op::Set {
                path: tree.root().clone(),
                data: class.clone().into(),
                expected: ExpectedVersion::Version(version),
            }),
            (None, Some(_)) => {}
        }
        let yaml = plan.job.to_yaml();
        ops.push(match &plan.stored {
            None => Op::Create(Create::persistent(&tree.config(), yaml)),
            Some((_, version)) => Op::Set {
                path: tree.config(),
                data: yaml.into(),
                expected: ExpectedVersion::Version(*version),
            },
        });
        match self.registry.multi(ops).await {
            Ok(committed) => {
                let version = match committed.done.last() {
                    Some(OpResult::Set(version)) => *version,
                    _ => Version::default(),
                };
                Ok(ApplyResult { is_changed: true, version })
            }
            Err(Error::Operation { cause, .. })
                if matches!(
                    *cause,
                    Error::Exists { .. } | Error::Conflict { .. } | Error::NotFound { .. }
                ) =>
            {
                let now = self.snapshot(name).await?;
                Err(changed_meanwhile(name, plan.stored.as_ref().map(|(job, _)| job), &now))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Refuses a new time zone that is not an offset from GMT while the job has a Java instance. Java parses only offsets; with any other zone, every Java
/// instance fails to read the configuration.
fn refuse_zone(job: &Job, stored: Option<&Job>, snapshot: &JobSnapshot) -> Result<(), AdminError> {
    let Some(zone) = job.zone.as_ref().filter(|zone| !zone.as_str().starts_with("GMT")) else {
        return Ok(());
    };
    if stored.is_some_and(|stored| stored.zone.as_ref() == Some(zone)) {
        return Ok(());
    }
    let java: Vec<String> = snapshot
        .instance_ids()
        .into_iter()
        .filter(|id| Language::of(id) == Language::Java)
        .collect();
    if java.is_empty() {
        return Ok(());
    }
    Err(AdminError::refused(
        format!(
            "job {}: Java cannot read the time zone {zone}, and the job has Java instances: {}",
            job.name,
            java.join(", ")
        ),
        "write an offset such as GMT+8:00, or let only Rust instances run the job",
    ))
}

/// The conflict error when another client changed the configuration first; names what changed.
fn changed_meanwhile(job: &JobName, before: Option<&Job>, now: &JobSnapshot) -> AdminError {
    let hint = "read the stored configuration again, then decide again";
    let Some(node) = now.config_node() else {
        return AdminError::conflict(format!("job {job} was removed in the meantime"), hint);
    };
    let when = written_at(node).map(|at| format!(" at {at}")).unwrap_or_default();
    let change = match (before, now.config().unwrap_or_else(|| Job::read(job, &node.data))) {
        (_, Err(error)) => Problem::of(&error).to_string(),
        (None, Ok(_)) => format!("its version is {} now", node.stat.version.0),
        (Some(before), Ok(after)) => {
            let value = |value: Option<String>| {
                value.map_or("nothing".to_owned(), |text| format!("{text:?}"))
            };
            let changes = drift(&after, before).into_iter();
            let changes: Vec<String> = changes
                .map(|change| {
                    format!(
                        "{} from {} to {}",
                        change.key,
                        value(change.stored),
                        value(change.local)
                    )
                })
                .collect();
            if changes.is_empty() {
                "its content is the same as before".to_owned()
            } else {
                changes.join(", ")
            }
        }
    };
    AdminError::conflict(
        format!("the configuration of job {job} was changed by another client{when}: {change}"),
        hint,
    )
}
