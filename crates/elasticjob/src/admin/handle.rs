//! [`Admin`], the handle through which all queries and changes are made.

use std::sync::Arc;

use jiff::{Timestamp, tz::TimeZone};

use super::{
    error::AdminError,
    snapshot::{Contents, JobSnapshot},
};
use crate::{
    coordination::tree::JobTree,
    job::{JobName, ShardLimit},
    registry::{self, Error, Registry, RegistryUrl},
    runtime::{Clock, Randomness, SystemClock, SystemRandomness},
    schedule::Zone,
};

/// Queries and changes the jobs of one namespace of one registry. Cheap to clone.
///
/// ```
/// use elasticjob::{Job, admin::{Admin, AdminError, ConfigChange, Edit}, registry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let admin = Admin::new(registry::connect(&"memory:".parse()?).await?);
///
/// let plan = admin.plan(Edit::new(Job::named("settle")?.cron("0 0 2 * * ?")?.shards(3))).await?;
/// assert_eq!(plan.change, ConfigChange::New);
/// admin.apply(&plan).await?;
///
/// let jobs = admin.jobs().await?;
/// assert_eq!((jobs[0].name.as_str(), jobs[0].shards), ("settle", Some(3)));
///
/// let no_instance = admin.trigger(&"settle".parse()?, Default::default()).await.unwrap_err();
/// assert!(matches!(no_instance, AdminError::Refused { .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Admin {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) zone: Zone,
    pub(super) shard_limit: ShardLimit,
}

impl Admin {
    /// Works on the namespace of this registry.
    pub fn new(registry: Arc<dyn Registry>) -> Self {
        Self {
            registry,
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            zone: Zone::from(TimeZone::system()),
            shard_limit: ShardLimit::default(),
        }
    }

    /// Opens a connection to the registry and namespace of the URL. [`close`](Self::close) ends the connection.
    pub async fn connect(url: &RegistryUrl) -> Result<Self, AdminError> {
        Ok(Self::new(registry::connect_read_only(url).await?))
    }

    /// Closes the connection to the registry, also for clones and other users of the same connection.
    pub async fn close(&self) {
        self.registry.close().await;
    }

    /// Uses this clock instead of the system clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Uses this source of randomness instead of the system's.
    #[must_use]
    pub fn randomness(mut self, randomness: Arc<dyn Randomness>) -> Self {
        self.randomness = randomness;
        self
    }

    /// Default time zone for jobs that set none; the system zone if unset. The instances may use another one.
    #[must_use]
    pub fn zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// How many shards a job may have: 10,000 if unset. A job with more is listed with the reason, and is not stored.
    #[must_use]
    pub fn max_shards(mut self, limit: ShardLimit) -> Self {
        self.shard_limit = limit;
        self
    }

    pub(super) fn tree(&self, job: &JobName) -> Result<JobTree, AdminError> {
        JobTree::new(self.registry.namespace(), job)
            .map_err(|error| AdminError::invalid(error.to_string(), "choose another name"))
    }

    /// Reads what the registry holds about a job, but for triggers.
    pub(super) async fn snapshot(&self, job: &JobName) -> Result<JobSnapshot, AdminError> {
        self.snapshot_with(job, Contents::WithoutTriggers).await
    }

    pub(super) async fn snapshot_with(
        &self,
        job: &JobName,
        contents: Contents,
    ) -> Result<JobSnapshot, AdminError> {
        let tree = self.tree(job)?;
        JobSnapshot::read(&*self.registry, job, tree, self.shard_limit, contents).await
    }

    /// Like [`snapshot`](Self::snapshot), but an error if the job has no configuration.
    pub(super) async fn existing_job(&self, job: &JobName) -> Result<JobSnapshot, AdminError> {
        self.existing_job_with(job, Contents::WithoutTriggers).await
    }

    pub(super) async fn existing_job_with(
        &self,
        job: &JobName,
        contents: Contents,
    ) -> Result<JobSnapshot, AdminError> {
        let snapshot = self.snapshot_with(job, contents).await?;
        if snapshot.config_node().is_none() {
            return Err(self.no_such_job(job, snapshot.exists()));
        }
        Ok(snapshot)
    }

    pub(super) fn no_such_job(&self, job: &JobName, has_leftovers: bool) -> AdminError {
        let namespace = self.registry.namespace();
        if has_leftovers {
            return AdminError::NotFound {
                what: format!(
                    "job {job} has no configuration in {namespace}, only nodes left over from a removed job"
                ),
                hint: format!("remove {job} to delete them"),
            };
        }
        AdminError::NotFound {
            what: format!("there is no job {job} in {namespace}"),
            hint: "list the jobs; is it another namespace?".to_owned(),
        }
    }

    /// Names of all nodes directly below the namespace, sorted.
    pub(super) async fn child_names(&self) -> Result<Vec<String>, Error> {
        self.registry.sync().await?;
        let mut names =
            self.registry.children(self.registry.namespace().path()).await?.unwrap_or_default();
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
