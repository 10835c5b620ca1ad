//! What there is: jobs, and their shards.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join_all};
use jiff::Timestamp;

use super::{
    door::Admin,
    error::AdminError,
    model::{Instance, JobDetails, JobStatus, JobSummary, Outline, RunsWith, ServerStatus, Shard},
    picture::{NO_CONFIGURATION, instance, status, summary},
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
            summaries.extend(batch.into_iter().flatten().map(|outline| outline.summary));
        }
        Ok(summaries)
    }

    /// The names of what stands in the namespace, in order: jobs, and what else somebody put there.
    pub async fn job_names(&self) -> Result<Vec<String>, AdminError> {
        Ok(self.names().await?)
    }

    /// What a list says of one job, and what it was made of; nothing if there is no such job. For whoever keeps a list up to date: it costs
    /// a handful of requests, however many jobs there are.
    pub async fn outline(&self, name: &str) -> Result<Option<Outline>, AdminError> {
        Ok(self.brief(name, self.now()).await?)
    }

    /// What one member of a job says of itself; nothing if it is none. One request, for whoever keeps a list up to date.
    pub async fn instance(&self, job: &JobName, id: &str) -> Result<Option<Instance>, AdminError> {
        let node = self.registry.get(&self.tree(job)?.instance(id)).await?;
        Ok(node.map(|node| instance(job, id, &node)))
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
    async fn brief(&self, name: &str, now: Timestamp) -> Result<Option<Outline>, Error> {
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

    async fn look_at(&self, job_name: &JobName, now: Timestamp) -> Result<Option<Outline>, Error> {
        let Ok(tree) = JobTree::new(self.registry.namespace(), job_name) else { return Ok(None) };
        let registry = &self.registry;
        let config = tree.config();
        let (instances, servers, sharding) = (tree.instances(), tree.servers(), tree.sharding());
        let (root, config, ids, servers, owners) = tokio::try_join!(
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
            None if ids.is_none() && servers.is_none() => return Ok(None),
            None => (None, Some(NO_CONFIGURATION.to_owned())),
        };
        let root = root.map(|node| node.data).unwrap_or_default();
        let ids: BTreeSet<String> = ids.unwrap_or_default().into_iter().collect();
        let servers = servers.unwrap_or_default().into_iter();
        let servers: BTreeMap<String, ServerStatus> =
            servers.map(|(address, data)| (address, ServerStatus::read(&data))).collect();
        let owners = owners
            .unwrap_or_default()
            .into_iter()
            .map(|(_, data)| String::from_utf8_lossy(&data).trim().to_owned());
        let owners: Vec<String> = owners.filter(|owner| !owner.is_empty()).collect();
        let status = status(&ids, servers.values().copied(), &owners, config.as_ref());
        let summary = JobSummary {
            status,
            instances: ids.len(),
            problem,
            ..summary(job_name, config.as_ref(), &root, now, &self.zone)
        };
        let dealt = owners.len();
        let departed = owners.into_iter().filter(|owner| !ids.contains(owner)).collect();
        Ok(Some(Outline { summary, job: config, servers, instances: ids, dealt, departed }))
    }

    /// The data of one node for each child of `parent`, by the child; nothing if there is no such parent.
    async fn datas(
        &self,
        parent: &Path,
        place: impl Fn(&str) -> Option<Path>,
    ) -> Result<Option<Vec<(String, bytes::Bytes)>>, Error> {
        let Some(children) = self.registry.children(parent).await? else { return Ok(None) };
        let places = children.into_iter().filter_map(|child| Some((place(&child)?, child)));
        let places: Vec<(Path, String)> = places.collect();
        let nodes = try_join_all(places.iter().map(|(place, _)| self.registry.get(place))).await?;
        let nodes = places.into_iter().zip(nodes);
        Ok(Some(nodes.filter_map(|((_, child), node)| Some((child, node?.data))).collect()))
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
fn unseen(name: &str, problem: String) -> Outline {
    let summary = JobSummary {
        name: name.to_owned(),
        status: JobStatus::Crashed,
        description: String::new(),
        cron: None,
        shards: None,
        instances: 0,
        runs_with: RunsWith::Rust { handler: None },
        next_fire: None,
        problem: Some(problem),
    };
    Outline {
        summary,
        job: None,
        servers: BTreeMap::new(),
        instances: BTreeSet::new(),
        dealt: 0,
        departed: BTreeSet::new(),
    }
}

/// Who is where, of one job.
#[derive(Debug)]
pub(super) struct Presence {
    pub(super) job: JobName,
    pub(super) servers: Vec<(String, ServerStatus)>,
    pub(super) instances: Vec<String>,
}
