//! The door: what an administrator works with.

use std::sync::Arc;

use jiff::{Timestamp, tz::TimeZone};

use super::{error::AdminError, picture::Picture};
use crate::{
    coordination::tree::JobTree,
    job::JobName,
    registry::{self, Error, Registry, RegistryUrl},
    runtime::{Clock, Randomness, SystemClock, SystemRandomness},
    schedule::Zone,
};

/// Asks and does what console and command line offer, in one namespace of one registry. Cheap to clone.
///
/// ```
/// use elasticjob::{Job, admin::{Admin, Change, Edit}, registry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let admin = Admin::on(registry::connect(&"memory:".parse()?).await?);
///
/// let plan = admin.plan(Edit::of(Job::named("settle")?.cron("0 0 2 * * ?")?.shards(3))).await?;
/// assert_eq!(plan.change, Change::New);
/// admin.apply(&plan).await?;
///
/// let jobs = admin.jobs().await?;
/// assert_eq!((jobs[0].name.as_str(), jobs[0].shards), ("settle", Some(3)));
///
/// let nobody = admin.trigger(&"settle".parse()?, Default::default()).await.unwrap_err();
/// assert_eq!(nobody.exit_code(), 7);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Admin {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) zone: Zone,
}

impl Admin {
    /// An administrator of this registry's namespace.
    pub fn on(registry: Arc<dyn Registry>) -> Self {
        Self {
            registry,
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            zone: Zone::from(TimeZone::system()),
        }
    }

    /// An administrator of the namespace that a URL names, on a connection of its own. [`close`](Self::close) ends it.
    pub async fn connect(url: &RegistryUrl) -> Result<Self, AdminError> {
        Ok(Self::on(registry::visit(url).await?))
    }

    /// Closes the connection to the registry, for everybody who shares it.
    pub async fn close(&self) {
        self.registry.close().await;
    }

    /// With another clock than the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// With other dice than the machine's.
    #[must_use]
    pub fn randomness(mut self, randomness: Arc<dyn Randomness>) -> Self {
        self.randomness = randomness;
        self
    }

    /// Where the clock hangs for jobs that name no zone; without, where the machine's does. The instances may have another.
    #[must_use]
    pub fn zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// Where a job's nodes are.
    pub(super) fn tree(&self, job: &JobName) -> Result<JobTree, AdminError> {
        JobTree::new(self.registry.namespace(), job)
            .map_err(|error| AdminError::invalid(error.to_string(), "choose another name"))
    }

    /// Everything there is about a job now.
    pub(super) async fn picture(&self, job: &JobName) -> Result<Picture, AdminError> {
        Ok(Picture::read(&*self.registry, job, self.tree(job)?).await?)
    }

    /// The same, of a job that has a configuration.
    pub(super) async fn existing(&self, job: &JobName) -> Result<Picture, AdminError> {
        let picture = self.picture(job).await?;
        if picture.config_node().is_none() {
            return Err(self.no_such_job(job, picture.is_there()));
        }
        Ok(picture)
    }

    pub(super) fn no_such_job(&self, job: &JobName, leftovers: bool) -> AdminError {
        let namespace = self.registry.namespace();
        if leftovers {
            return AdminError::NotFound {
                what: format!(
                    "job {job} has no configuration in {namespace}, only what is left of a removed one"
                ),
                hint: format!("remove {job} to clear it away"),
            };
        }
        AdminError::NotFound {
            what: format!("there is no job {job} in {namespace}"),
            hint: "list the jobs; is it another namespace?".to_owned(),
        }
    }

    /// The names of what stands in the namespace, in order.
    pub(super) async fn names(&self) -> Result<Vec<String>, Error> {
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
