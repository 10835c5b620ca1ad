//! Queries about jobs and their shards.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join_all};
use jiff::Timestamp;

use super::{
    error::AdminError,
    handle::Admin,
    model::{
        HandlerInfo, Instance, JobDetails, JobStatus, JobSummary, Outline, ServerStatus, Shard,
        ShardsPage,
    },
    snapshot::{Contents, instance, no_configuration, status, summary},
};
use crate::problem::Problem;
use crate::{
    coordination::tree::{JobTree, ShardNode},
    job::{Job, JobName},
    registry::{Error, Path},
};

/// Maximum number of jobs read concurrently; each takes a handful of requests.
const JOBS_IN_FLIGHT: usize = 128;

impl Admin {
    /// All jobs of the namespace, sorted by name. A job that cannot be read is listed with the reason. Requests are sent concurrently, so
    /// thousands of jobs are listed quickly.
    pub async fn jobs(&self) -> Result<Vec<JobSummary>, AdminError> {
        let now = self.now();
        let mut summaries = Vec::new();
        for batch in self.child_names().await?.chunks(JOBS_IN_FLIGHT) {
            let batch =
                try_join_all(batch.iter().map(|name| self.outline_or_problem(name, now))).await?;
            summaries.extend(batch.into_iter().flatten().map(|outline| outline.summary));
        }
        Ok(summaries)
    }

    /// Names of all nodes directly below the namespace, sorted: jobs, and anything else that was created there.
    pub async fn job_names(&self) -> Result<Vec<String>, AdminError> {
        Ok(self.child_names().await?)
    }

    /// The summary of one job and the data it was computed from; none if there is no such job. For callers that keep a list up to date: it
    /// costs a handful of requests, however many jobs there are.
    pub async fn outline(&self, name: &str) -> Result<Option<Outline>, AdminError> {
        Ok(self.outline_or_problem(name, self.now()).await?)
    }

    /// One instance of a job; none if it is not registered. Costs one request.
    pub async fn instance(&self, job: &JobName, id: &str) -> Result<Option<Instance>, AdminError> {
        let node = self.registry.get(&self.tree(job)?.instance(id)).await?;
        Ok(node.map(|node| instance(job, id, &node)))
    }

    /// Everything about one job except its shards.
    pub async fn job(&self, job: &JobName) -> Result<JobDetails, AdminError> {
        let snapshot = self.snapshot(job).await?;
        let details = snapshot.details(self.now(), &self.zone);
        details.ok_or_else(|| self.no_such_job(job, snapshot.exists()))
    }

    /// The shards of a job, sorted by number: those that its configuration defines and those that have nodes. An owner may be gone already.
    pub async fn shards(&self, job: &JobName) -> Result<Vec<Shard>, AdminError> {
        let snapshot = self.existing_job(job).await?;
        Ok(snapshot.shards(snapshot.items().iter()).collect())
    }

    /// A part of [`shards`](Self::shards): those after the first `skip`, at most `take`.
    pub async fn shards_page(
        &self,
        job: &JobName,
        skip: usize,
        take: usize,
    ) -> Result<ShardsPage, AdminError> {
        // If it changes meanwhile, shards beyond the number that it defined before may be missing.
        let config = self.registry.get(&self.tree(job)?.config()).await?;
        let config =
            config.and_then(|node| Job::read_within(self.shard_limit, job, &node.data).ok());
        let total = config.map_or(0, |job| job.shards.get());
        let shown = skip..skip.saturating_add(take);
        let snapshot = self.existing_job_with(job, Contents::Shards { total, shown }).await?;
        let items = snapshot.items();
        let shards = snapshot.shards(items.iter().skip(skip).take(take)).collect();
        Ok(ShardsPage { total: items.len(), shards })
    }

    /// The outline of a job, with a problem if its name is invalid or access is denied; none if the node is not a job.
    async fn outline_or_problem(
        &self,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Outline>, Error> {
        let job: JobName = match name.parse() {
            Ok(job) => job,
            Err(error) => return Ok(Some(unreadable_outline(name, Problem::of(&error)))),
        };
        match self.read_outline(&job, now).await {
            // One job without access must not hide the others.
            Err(error @ Error::NotAuthorised { .. }) => {
                Ok(Some(unreadable_outline(name, Problem::of(&error))))
            }
            result => result,
        }
    }

    async fn read_outline(
        &self,
        job_name: &JobName,
        now: Timestamp,
    ) -> Result<Option<Outline>, Error> {
        let Ok(tree) = JobTree::new(self.registry.namespace(), job_name) else { return Ok(None) };
        let registry = &self.registry;
        let config = tree.config();
        let (instances, servers, sharding) = (tree.instances(), tree.servers(), tree.sharding());
        let (root, config, ids, servers, owners) = tokio::try_join!(
            registry.get(tree.root()),
            registry.get(&config),
            registry.children(&instances),
            self.children_data(&servers, |address| Some(tree.server(address))),
            self.children_data(&sharding, |item| Some(
                tree.shard(item.parse().ok()?, ShardNode::Owner)
            )),
        )?;
        let (config, problem) =
            match config.map(|node| Job::read_within(self.shard_limit, job_name, &node.data)) {
                Some(Ok(job)) => (Some(job), None),
                Some(Err(error)) => (None, Some(Problem::of(&error))),
                // The node may be something else, such as another namespace. Leftovers of a job have instances or servers.
                None if ids.is_none() && servers.is_none() => return Ok(None),
                None => (None, Some(no_configuration())),
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
            hint: problem.as_ref().and_then(|problem| problem.hint.clone()),
            problem: problem.map(|problem| problem.message),
            ..summary(job_name, config.as_ref(), &root, now, &self.zone)
        };
        let assigned = owners.len();
        let gone_owners = owners.into_iter().filter(|owner| !ids.contains(owner)).collect();
        Ok(Some(Outline { summary, job: config, servers, instances: ids, assigned, gone_owners }))
    }

    /// For each child of `parent`, its name and the data of the node at `path_of(child)`; none if `parent` does not exist.
    async fn children_data(
        &self,
        parent: &Path,
        path_of: impl Fn(&str) -> Option<Path>,
    ) -> Result<Option<Vec<(String, bytes::Bytes)>>, Error> {
        let Some(children) = self.registry.children(parent).await? else { return Ok(None) };
        let paths = children.into_iter().filter_map(|child| Some((path_of(&child)?, child)));
        let paths: Vec<(Path, String)> = paths.collect();
        let nodes = try_join_all(paths.iter().map(|(path, _)| self.registry.get(path))).await?;
        let nodes = paths.into_iter().zip(nodes);
        Ok(Some(nodes.filter_map(|((_, child), node)| Some((child, node?.data))).collect()))
    }

    /// Instances and servers of every job.
    pub(super) async fn memberships(&self) -> Result<Vec<Membership>, Error> {
        let mut memberships = Vec::new();
        for batch in self.child_names().await?.chunks(JOBS_IN_FLIGHT) {
            let reads =
                batch.iter().filter_map(|name| name.parse().ok()).map(|job| self.membership(job));
            memberships.extend(try_join_all(reads).await?);
        }
        Ok(memberships)
    }

    /// Instances and servers of one job; empty if access is denied.
    pub(super) async fn membership(&self, job: JobName) -> Result<Membership, Error> {
        match self.read_membership(&job).await {
            Err(Error::NotAuthorised { .. }) => {
                Ok(Membership { job, servers: Vec::new(), instances: Vec::new() })
            }
            result => result,
        }
    }

    async fn read_membership(&self, job: &JobName) -> Result<Membership, Error> {
        let job = job.clone();
        let Ok(tree) = JobTree::new(self.registry.namespace(), &job) else {
            return Ok(Membership { job, servers: Vec::new(), instances: Vec::new() });
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
        Ok(Membership { job, servers, instances: instances.unwrap_or_default() })
    }
}

/// The outline of a job that cannot be read.
fn unreadable_outline(name: &str, problem: Problem) -> Outline {
    let summary = JobSummary {
        name: name.to_owned(),
        status: JobStatus::Crashed,
        description: String::new(),
        cron: None,
        shards: None,
        instances: 0,
        handler: HandlerInfo::Rust { handler: None },
        next_fire: None,
        problem: Some(problem.message),
        hint: problem.hint,
    };
    Outline {
        summary,
        job: None,
        servers: BTreeMap::new(),
        instances: BTreeSet::new(),
        assigned: 0,
        gone_owners: BTreeSet::new(),
    }
}

/// Instances and servers of one job.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) job: JobName,
    pub(super) servers: Vec<(String, ServerStatus)>,
    pub(super) instances: Vec<String>,
}
