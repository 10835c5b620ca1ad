//! Storing a configuration: first what would change, then the change, and nothing that was not in the plan.
//!
//! A plan remembers the version it was made for. Whoever changes the configuration between plan and write wins, and the write is a
//! [`Conflict`](AdminError::Conflict) that names what they changed. What stands there on behalf of others stays: extra configuration, and the older
//! spelling of a key.

use serde::Serialize;

use super::{
    door::Admin,
    error::AdminError,
    model::{Language, as_number},
    picture::{Picture, written_at},
};
use crate::{
    job::{Difference, Handler, Job, JobName, drift, in_place_of},
    registry::{Create, Done, Error, Expected, Op, Version, plant},
};

/// A configuration somebody wants to be stored.
///
/// ```
/// use elasticjob::{Job, admin::Edit, job::Handler, registry::Version};
///
/// let job = Job::named("backup")?.cron("0 0 3 * * ?")?.prop("script.command.line", "sh backup.sh")?;
/// let edit = Edit::of(job).handler(Handler::Script).seen(Version(7));
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
#[derive(Debug, Clone)]
pub struct Edit {
    job: Job,
    handler: Option<Handler>,
    seen: Option<Version>,
}

impl Edit {
    /// This configuration. What runs the job stays as it is; a new one is a Rust program's.
    pub fn of(job: Job) -> Self {
        Self { job, handler: None, seen: None }
    }

    /// Run by this: a conflict if the job is somebody else's.
    #[must_use]
    pub fn handler(mut self, handler: Handler) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Made from the configuration in this version: a conflict if there is another by now.
    #[must_use]
    pub fn seen(mut self, version: Version) -> Self {
        self.seen = Some(version);
        self
    }
}

/// What storing a configuration would do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// What would be stored.
    pub job: Job,
    /// What that changes.
    pub change: Change,
    /// What is stored now, and in which version.
    stored: Option<(Job, Version)>,
    /// What the job's root would say, if it says nothing yet.
    class: Option<String>,
    root: Option<Version>,
}

/// What a plan changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// There is no such job yet.
    New,
    /// These properties: `local` is what the plan says. None if only what runs the job was not said yet.
    Changed(Vec<Difference>),
    /// Nothing.
    Same,
}

/// A plan was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Applied {
    /// Whether something was written.
    pub is_changed: bool,
    /// The version the configuration has now.
    #[serde(serialize_with = "as_number")]
    #[cfg_attr(feature = "openapi", schema(value_type = i32))]
    pub version: Version,
}

impl Admin {
    /// What storing this configuration would do. Nothing is written.
    pub async fn plan(&self, edit: Edit) -> Result<Plan, AdminError> {
        let Edit { job, handler, seen } = edit;
        let picture = self.picture(&job.name).await?;
        let stored =
            picture.config().transpose().map_err(|error| AdminError::unreadable(&error))?;
        let version = picture.config_node().map(|node| node.stat.version);
        if let Some(seen) = seen
            && version != Some(seen)
        {
            return Err(overtaken(&job.name, None, &picture));
        }
        let root = String::from_utf8_lossy(picture.root_data()).into_owned();
        if let Some(handler) = &handler {
            handler.check(&job, &root, stored.as_ref())?;
        }
        let class = handler.map(|handler| handler.root_data().to_owned());
        let class = class.filter(|class| root.trim().is_empty() && !class.is_empty());
        let (job, change) = match &stored {
            None => (job, Change::New),
            Some(stored) => {
                let job = in_place_of(job, stored);
                let differences = drift(&job, stored);
                let is_same = differences.is_empty() && class.is_none();
                (job, if is_same { Change::Same } else { Change::Changed(differences) })
            }
        };
        if change != Change::Same {
            refuse_zone(&job, stored.as_ref(), &picture)?;
        }
        let root = picture.node(picture.tree.root()).map(|node| node.stat.version);
        Ok(Plan { job, change, stored: stored.zip(version), class, root })
    }

    /// Carries out a plan, all of it or nothing.
    pub async fn apply(&self, plan: &Plan) -> Result<Applied, AdminError> {
        if let (Change::Same, Some((_, version))) = (&plan.change, &plan.stored) {
            return Ok(Applied { is_changed: false, version: *version });
        }
        let name = &plan.job.name;
        let tree = self.tree(name)?;
        let picture = self.picture(name).await?;
        refuse_zone(&plan.job, plan.stored.as_ref().map(|(job, _)| job), &picture)?;
        // The first job of a namespace finds none.
        plant(&*self.registry, self.registry.namespace().path()).await?;
        let mut ops = Vec::new();
        match (&plan.class, plan.root) {
            (class, None) => {
                let class = class.clone().unwrap_or_default();
                ops.push(Op::Create(Create::persistent(tree.root(), class)));
            }
            (Some(class), Some(version)) => ops.push(Op::Set {
                path: tree.root().clone(),
                data: class.clone().into(),
                expected: Expected::Version(version),
            }),
            (None, Some(_)) => {}
        }
        let yaml = plan.job.to_yaml();
        ops.push(match &plan.stored {
            None => Op::Create(Create::persistent(&tree.config(), yaml)),
            Some((_, version)) => Op::Set {
                path: tree.config(),
                data: yaml.into(),
                expected: Expected::Version(*version),
            },
        });
        match self.registry.multi(ops).await {
            Ok(committed) => {
                let version = match committed.done.last() {
                    Some(Done::Set(version)) => *version,
                    _ => Version::default(),
                };
                Ok(Applied { is_changed: true, version })
            }
            Err(Error::Member { cause, .. })
                if matches!(
                    *cause,
                    Error::Exists { .. } | Error::Conflict { .. } | Error::Absent { .. }
                ) =>
            {
                let now = self.picture(name).await?;
                Err(overtaken(name, plan.stored.as_ref().map(|(job, _)| job), &now))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Java knows only distances from GMT; at anything else every Java instance stops reading the configuration.
fn refuse_zone(job: &Job, stored: Option<&Job>, picture: &Picture) -> Result<(), AdminError> {
    let Some(zone) = job.zone.as_ref().filter(|zone| !zone.as_str().starts_with("GMT")) else {
        return Ok(());
    };
    if stored.is_some_and(|stored| stored.zone.as_ref() == Some(zone)) {
        return Ok(());
    }
    let java: Vec<String> =
        picture.ids().into_iter().filter(|id| Language::of(id) == Language::Java).collect();
    if java.is_empty() {
        return Ok(());
    }
    Err(AdminError::refused(
        format!(
            "job {}: Java cannot read the time zone {zone}, and {} is a Java instance of it",
            job.name,
            java.join(", ")
        ),
        "write a distance like GMT+8:00, or let only Rust instances run the job",
    ))
}

/// Somebody was faster: what they did.
fn overtaken(job: &JobName, before: Option<&Job>, now: &Picture) -> AdminError {
    let hint = "look at what is stored now, then decide again";
    let Some(node) = now.config_node() else {
        return AdminError::conflict(format!("job {job} was removed meanwhile"), hint);
    };
    let when = written_at(node).map(|at| format!(" at {at}")).unwrap_or_default();
    let what = match (before, Job::read(job, &node.data)) {
        (_, Err(error)) => error.to_string(),
        (None, Ok(_)) => format!("it is at version {} now", node.stat.version.0),
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
                "it says the same as before".to_owned()
            } else {
                changes.join(", ")
            }
        }
    };
    AdminError::conflict(
        format!("somebody else wrote the configuration of job {job}{when}: {what}"),
        hint,
    )
}
