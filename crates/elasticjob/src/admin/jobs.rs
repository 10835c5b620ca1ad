//! What there is: jobs, and their shards.

use std::collections::BTreeSet;

use futures_util::future::{try_join, try_join_all};
use jiff::Timestamp;

use super::{
    door::Admin,
    error::AdminError,
    model::{JobDetails, JobStatus, JobSummary, RunsWith, ServerStatus, Shard},
    picture::{NO_CONFIGURATION, status, summary},
};
use crate::{
    coordination::tree::{JobTree, Part},
    job::{Job, JobName},
    registry::{Error, Path},
};

/// How many jobs are read at once; each takes a handful of requests.
const JOBS_IN_FLIGHT: usize = 128;

impl Admin {
    /// All jobs of the namespace, by name. One that cannot be read is shown with the reason. Thousands are quick: nothing waits for
    /// anything it does not need.
    pub async fn jobs(&self) -> Result<Vec<JobSummary>, AdminError> {
        let now = self.now();
        let mut summaries = Vec::new();
        for batch in self.names().await?.chunks(JOBS_IN_FLIGHT) {
            let batch = try_join_all(batch.iter().map(|name| self.brief(name, now))).await?;
            summaries.extend(batch.into_iter().flatten());
        }
        Ok(summaries)
    }

    /// Everything about one job but its shards.
    pub async fn job(&self, job: &JobName) -> Result<JobDetails, AdminError> {
        let picture = self.picture(job).await?;
        let details = picture.details(self.now(), &self.zone);
        details.ok_or_else(|| self.no_such_job(job, picture.is_there()))
    }

    /// A job's shards, by number: those its configuration speaks of, and those that are there. An owner may be gone.
    pub async fn shards(&self, job: &JobName) -> Result<Vec<Shard>, AdminError> {
        Ok(self.existing(job).await?.shards())
    }

    /// One job for a list; nothing if this is no job.
    async fn brief(&self, name: &str, now: Timestamp) -> Result<Option<JobSummary>, Error> {
        let job: JobName = match name.parse() {
            Ok(job) => job,
            Err(error) => return Ok(Some(unseen(name, error.to_string()))),
        };
        match self.look_at(&job, now).await {
            // It is somebody else's; the others are not.
            Err(error @ Error::NotAuthorised { .. }) => Ok(Some(unseen(name, error.to_string()))),
            answer => answer,
        }
    }

    async fn look_at(
        &self,
        job_name: &JobName,
        now: Timestamp,
    ) -> Result<Option<JobSummary>, Error> {
        let Ok(tree) = JobTree::new(self.registry.namespace(), job_name) else { return Ok(None) };
        let registry = &self.registry;
        let config = tree.config();
        let (instances, servers, sharding) = (tree.instances(), tree.servers(), tree.sharding());
        let (root, config, ids, statuses, owners) = tokio::try_join!(
            registry.get(tree.root()),
            registry.get(&config),
            registry.children(&instances),
            self.datas(&servers, |address| Some(tree.server(address))),
            self.datas(&sharding, |item| Some(tree.shard(item.parse().ok()?, Part::Owner))),
        )?;
        let (config, problem) = match config.map(|node| Job::read(job_name, &node.data)) {
            Some(Ok(job)) => (Some(job), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            // Something else may stand here, another namespace for one. What is left of a job has members or servers.
            None if ids.is_none() && statuses.is_none() => return Ok(None),
            None => (None, Some(NO_CONFIGURATION.to_owned())),
        };
        let root = root.map(|node| node.data).unwrap_or_default();
        let ids: BTreeSet<String> = ids.unwrap_or_default().into_iter().collect();
        let statuses = statuses.unwrap_or_default().into_iter();
        let owners = owners
            .unwrap_or_default()
            .into_iter()
            .map(|data| String::from_utf8_lossy(&data).trim().to_owned());
        let owners: Vec<String> = owners.filter(|owner| !owner.is_empty()).collect();
        Ok(Some(JobSummary {
            status: status(
                &ids,
                statuses.map(|data| ServerStatus::read(&data)),
                &owners,
                config.as_ref(),
            ),
            instances: ids.len(),
            problem,
            ..summary(job_name, config.as_ref(), &root, now, &self.zone)
        }))
    }

    /// The data of one node for each child of `parent`; nothing if there is no such parent.
    async fn datas(
        &self,
        parent: &Path,
        place: impl Fn(&str) -> Option<Path>,
    ) -> Result<Option<Vec<bytes::Bytes>>, Error> {
        let Some(children) = self.registry.children(parent).await? else { return Ok(None) };
        let places: Vec<Path> = children.iter().filter_map(|child| place(child)).collect();
        let nodes = try_join_all(places.iter().map(|place| self.registry.get(place))).await?;
        Ok(Some(nodes.into_iter().flatten().map(|node| node.data).collect()))
    }

    /// The members and servers of every job, for those who look at servers.
    pub(super) async fn presences(&self) -> Result<Vec<Presence>, Error> {
        let mut presences = Vec::new();
        for batch in self.names().await?.chunks(JOBS_IN_FLIGHT) {
            let looks =
                batch.iter().filter_map(|name| name.parse().ok()).map(|job| self.presence(job));
            presences.extend(try_join_all(looks).await?);
        }
        Ok(presences)
    }

    /// Who is where, of one job; nobody, if it is not ours to look at.
    pub(super) async fn presence(&self, job: JobName) -> Result<Presence, Error> {
        match self.look_for(&job).await {
            Err(Error::NotAuthorised { .. }) => {
                Ok(Presence { job, servers: Vec::new(), instances: Vec::new() })
            }
            answer => answer,
        }
    }

    async fn look_for(&self, job: &JobName) -> Result<Presence, Error> {
        let job = job.clone();
        let Ok(tree) = JobTree::new(self.registry.namespace(), &job) else {
            return Ok(Presence { job, servers: Vec::new(), instances: Vec::new() });
        };
        let servers = async {
            let addresses = self.registry.children(&tree.servers()).await?.unwrap_or_default();
            let paths: Vec<Path> = addresses.iter().map(|address| tree.server(address)).collect();
            let nodes = try_join_all(paths.iter().map(|path| self.registry.get(path))).await?;
            let known = addresses.into_iter().zip(nodes);
            let known = known
                .filter_map(|(address, node)| Some((address, ServerStatus::read(&node?.data))));
            Ok(known.collect())
        };
        let instances = tree.instances();
        let (servers, instances) = try_join(servers, self.registry.children(&instances)).await?;
        Ok(Presence { job, servers, instances: instances.unwrap_or_default() })
    }
}

/// A job that cannot be looked at.
fn unseen(name: &str, problem: String) -> JobSummary {
    JobSummary {
        name: name.to_owned(),
        status: JobStatus::Crashed,
        description: String::new(),
        cron: None,
        shards: None,
        instances: 0,
        runs_with: RunsWith::Rust { handler: None },
        next_fire: None,
        problem: Some(problem),
    }
}

/// Who is where, of one job.
#[derive(Debug)]
pub(super) struct Presence {
    pub(super) job: JobName,
    pub(super) servers: Vec<(String, ServerStatus)>,
    pub(super) instances: Vec<String>,
}
