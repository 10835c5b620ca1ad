//! Everything the registry holds about one job: its tree, its ledger pages, and which processes are alive.
//!
//! Unlike a member's [`View`](crate::coordination::view::View) it is not kept up to date: it is read once per query, with the data and the times of all
//! nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use jiff::Timestamp;

use super::{
    error::AdminError,
    model::{
        Configuration, HandlerInfo, Instance, JobDetails, JobStatus, JobSummary, Language, LastRun,
        Running, Server, ServerStatus, Shard, ShardStatus,
    },
    subtree::read_subtree,
};
use crate::problem::Problem;
use crate::{
    coordination::{
        ephemerals::bytes_of,
        floor::Floor,
        ledger::{LedgerPage, LedgerPageError},
        tree::{JobTree, ShardNode, processes_path},
    },
    job::{
        self, Job, JobName, ShardLimit, UnreadableDocument, mask_for_list, mask_text, server_of,
    },
    registry::{Node, Op, Path, Registry, SessionId, Version},
    schedule::Zone,
};

#[derive(Debug)]
pub(super) struct JobSnapshot {
    pub(super) job: JobName,
    pub(super) tree: JobTree,
    /// The root node of the job and everything below it.
    pub(super) nodes: BTreeMap<Path, Node>,
    /// The ledger node of the job and what is below it, but for triggers, unless they were asked for.
    pub(super) ledger: BTreeMap<Path, Node>,
    /// Instance ids of Rust processes that are alive.
    pub(super) processes: BTreeSet<String>,
    /// A configuration with more shards is unreadable.
    shard_limit: ShardLimit,
}

/// What a snapshot has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Contents {
    /// Old triggers are many nodes, which few queries need.
    WithoutTriggers,
    /// Neither triggers nor the nodes of shards below `total` that are not in `shown`: a job may have very many.
    Shards { total: u32, shown: Range<usize> },
    /// Every node, to remove it, without its data.
    Nodes,
}

impl Contents {
    fn has_shard(&self, shard: u32) -> bool {
        match self {
            Self::Shards { total, shown } => shard >= *total || shown.contains(&(shard as usize)),
            Self::WithoutTriggers | Self::Nodes => true,
        }
    }
}

impl JobSnapshot {
    /// Syncs, then reads.
    pub(super) async fn read(
        registry: &dyn Registry,
        job: &JobName,
        tree: JobTree,
        shard_limit: ShardLimit,
        contents: Contents,
    ) -> Result<Self, AdminError> {
        registry.sync().await?;
        let alive = async {
            match processes_path(registry.namespace()) {
                Ok(path) => Ok(registry.children(&path).await?),
                Err(_) => Ok(None),
            }
        };
        let is_shard_read = |parent: &Path, path: &Path| {
            let name = path.relative_to(parent).unwrap_or_default();
            name.parse().map_or(true, |shard| contents.has_shard(shard))
        };
        let (sharding, triggers) = (tree.sharding(), tree.accepted_triggers());
        let is_in_tree_read = |path: &Path| is_shard_read(&sharding, path);
        let has_triggers = contents == Contents::Nodes;
        let is_in_ledger_read = |path: &Path| {
            is_shard_read(tree.ledger(), path)
                && (has_triggers || path.relative_to(&triggers).is_none())
        };
        let with_data = contents != Contents::Nodes;
        let (nodes, ledger, alive) = tokio::try_join!(
            read_subtree(registry, tree.root(), with_data, is_in_tree_read),
            read_subtree(registry, tree.ledger(), with_data, is_in_ledger_read),
            alive
        )?;
        let processes = alive.unwrap_or_default().into_iter().collect();
        Ok(Self { job: job.clone(), tree, nodes, ledger, processes, shard_limit })
    }

    /// Whether the job has any node, in its tree or in the ledger.
    pub(super) fn exists(&self) -> bool {
        !self.nodes.is_empty() || !self.ledger.is_empty()
    }

    pub(super) fn node(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path)
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.nodes.contains_key(path)
    }

    /// The trimmed data of a node as text; none if it is blank.
    pub(super) fn text(&self, path: &Path) -> Option<String> {
        let text = String::from_utf8_lossy(&self.node(path)?.data).trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    pub(super) fn written_at(&self, path: &Path) -> Option<Timestamp> {
        self.node(path).and_then(written_at)
    }

    /// Names and nodes of the children of `parent`, sorted by name.
    pub(super) fn children(&self, parent: Path) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().filter_map(move |(path, node)| {
            let name = path.relative_to(&parent).filter(|name| !name.contains('/'))?;
            Some((name, node))
        })
    }

    pub(super) fn config_node(&self) -> Option<&Node> {
        self.node(&self.tree.config())
    }

    /// The parsed configuration; none if the job has no configuration node.
    pub(super) fn config(&self) -> Option<Result<Job, UnreadableDocument>> {
        let config = self.config_node();
        config.map(|node| Job::read_within(self.shard_limit, &self.job, &node.data))
    }

    pub(super) fn root_data(&self) -> &[u8] {
        self.node(self.tree.root()).map(|node| &node.data[..]).unwrap_or_default()
    }

    /// Ids of the job's instances.
    pub(super) fn instance_ids(&self) -> BTreeSet<String> {
        self.children(self.tree.instances()).map(|(id, _)| id.to_owned()).collect()
    }

    pub(super) fn instances(&self) -> Vec<Instance> {
        self.children(self.tree.instances())
            .map(|(id, node)| instance(&self.job, id, node))
            .collect()
    }

    pub(super) fn servers(&self) -> Vec<Server> {
        let ids = self.instance_ids();
        let servers = self.children(self.tree.servers()).map(|(address, node)| Server {
            address: address.to_owned(),
            status: ServerStatus::read(&node.data),
            instances: ids.iter().filter(|id| server_of(id) == address).count(),
        });
        servers.collect()
    }

    /// How many bytes of ephemeral paths each session holds in this job.
    pub(super) fn ephemeral_bytes(&self) -> BTreeMap<SessionId, usize> {
        let mut bytes = BTreeMap::new();
        for (path, node) in &self.nodes {
            if let Some(session) = node.stat.owner {
                *bytes.entry(session).or_default() += bytes_of(path);
            }
        }
        bytes
    }

    /// Instance id of a shard's owner.
    pub(super) fn owner(&self, shard: u32) -> Option<String> {
        self.text(&self.tree.shard(shard, ShardNode::Owner))
    }

    /// Numbers of the shards that the configuration defines, and of those that have nodes.
    pub(super) fn items(&self) -> ShardNumbers {
        let total = self.config().and_then(Result::ok).map_or(0, |job| job.shards.get());
        let existing = self.children(self.tree.sharding());
        let existing = existing.filter_map(|(name, _)| name.parse().ok());
        ShardNumbers { total, surplus: existing.filter(|item| *item >= total).collect() }
    }

    /// The ledger page of a shard, and when it was written.
    pub(super) fn page(
        &self,
        shard: u32,
    ) -> Option<(Result<LedgerPage, LedgerPageError>, Option<Timestamp>)> {
        let node = self.ledger.get(&self.tree.ledger_page(shard))?;
        Some((LedgerPage::read(&node.data), written_at(node)))
    }

    /// Version of a shard's ledger page.
    pub(super) fn page_version(&self, shard: u32) -> Option<Version> {
        self.ledger.get(&self.tree.ledger_page(shard)).map(|node| node.stat.version)
    }

    /// The operation that records an enabling, so that instances that start later do not catch up on the time before; `None` if nothing has to be
    /// recorded: no Rust instance ever ran the job, or the floor cannot be read and so is not overwritten.
    pub(super) fn store_floor(&self, enabled: &Floor) -> Option<Op> {
        if !self.ledger.contains_key(self.tree.ledger()) {
            return None;
        }
        let stored = self.ledger.get(&self.tree.floor());
        Floor::store(&self.tree, stored, enabled).ok().flatten()
    }

    /// Whether the job is disabled, in its configuration or on all its servers.
    pub(super) fn is_disabled(&self) -> bool {
        let servers = self.servers();
        let is_off = |server: &Server| server.status == ServerStatus::Disabled;
        self.config().is_some_and(|config| config.is_ok_and(|job| job.disabled))
            || !servers.is_empty() && servers.iter().all(is_off)
    }

    /// The instance that holds a shard, and since when. Without monitoring there is no `running` node, and only the ledger knows.
    pub(super) fn holder(&self, shard: u32) -> Option<Running> {
        let running = self.tree.shard(shard, ShardNode::Running);
        if self.has(&running) {
            return Some(Running {
                instance: self.text(&running).unwrap_or_default(),
                since: self.written_at(&running),
            });
        }
        let (page, since) = self.page(shard)?;
        let page = page
            .ok()
            .filter(|page| page.state == crate::coordination::ledger::LedgerState::Running)?;
        let instance = page.holder.map(|owner| owner.to_string())?;
        self.is_alive(&instance).then_some(Running { instance, since })
    }

    /// Whether this instance is a member of the job, or its process still exists.
    pub(super) fn is_alive(&self, instance: &str) -> bool {
        self.processes.contains(instance) || self.has(&self.tree.instance(instance))
    }

    pub(super) fn status(&self, job: Option<&Job>) -> JobStatus {
        let servers =
            self.children(self.tree.servers()).map(|(_, node)| ServerStatus::read(&node.data));
        let shards = self.children(self.tree.sharding()).filter_map(|(name, _)| name.parse().ok());
        let owners: Vec<String> = shards.filter_map(|shard| self.owner(shard)).collect();
        status(&self.instance_ids(), servers, &owners, job)
    }

    pub(super) fn summary(&self, now: Timestamp, zone: &Zone) -> JobSummary {
        let config = self.config();
        let job = config.as_ref().and_then(|config| config.as_ref().ok());
        let status = self.status(job);
        let problem = match &config {
            None => Some(no_configuration()),
            Some(Err(error)) => Some(Problem::of(error)),
            Some(Ok(_)) => None,
        };
        let mut summary = summary(&self.job, job, self.root_data(), now, zone);
        (summary.status, summary.instances) = (status, self.instance_ids().len());
        if let Some(Problem { message, hint }) = problem {
            (summary.problem, summary.hint) = (Some(message), hint);
        }
        summary
    }

    pub(super) fn details(&self, now: Timestamp, zone: &Zone) -> Option<JobDetails> {
        let node = self.config_node()?;
        let (job, problem) = match Job::read_within(self.shard_limit, &self.job, &node.data) {
            Ok(job) => (Some(job), None),
            Err(error) => (None, Some(Problem::of(&error).to_string())),
        };
        let mut failover_items: Vec<u32> = self
            .children(self.tree.failover_items())
            .filter_map(|(name, _)| name.parse().ok())
            .collect();
        failover_items.sort_unstable();
        Some(JobDetails {
            summary: self.summary(now, zone),
            configuration: Configuration {
                job,
                problem,
                raw: String::from_utf8_lossy(&node.data).into_owned(),
                version: node.stat.version,
                written_at: written_at(node),
            },
            servers: self.servers(),
            instances: self.instances(),
            leader: self.text(&self.tree.leader()),
            resharding_since: self.written_at(&self.tree.necessary()),
            is_assigning: self.has(&self.tree.processing()),
            failover_items,
            triggers: self.children(self.tree.triggers()).map(|(id, _)| id.to_owned()).collect(),
        })
    }

    /// The shards with these numbers, one at a time.
    pub(super) fn shards(
        &self,
        items: impl IntoIterator<Item = u32>,
    ) -> impl Iterator<Item = Shard> {
        let (ids, job) = (self.instance_ids(), self.config().and_then(Result::ok));
        items.into_iter().map(move |item| self.shard(item, &ids, job.as_ref()))
    }

    fn shard(&self, item: u32, ids: &BTreeSet<String>, job: Option<&Job>) -> Shard {
        let path = |part| self.tree.shard(item, part);
        let owner = self.owner(item);
        let is_owner_online = owner.as_ref().is_some_and(|owner| ids.contains(owner));
        let is_running = self.has(&path(ShardNode::Running));
        let is_disabled = self.has(&path(ShardNode::Disabled));
        let (last_run, problem) = match self.page(item) {
            None => (None, None),
            Some((Ok(page), since)) => (Some(last_run(page, since)), None),
            Some((Err(error), _)) => (None, Some(error.to_string())),
        };
        Shard {
            item,
            status: match () {
                () if is_disabled => ShardStatus::Disabled,
                () if is_running => ShardStatus::Running,
                () if !is_owner_online => ShardStatus::ShardingFlag,
                () => ShardStatus::Pending,
            },
            server: owner.as_deref().map(|owner| server_of(owner).to_owned()),
            language: owner.as_deref().map(Language::of),
            owner,
            is_owner_online,
            parameter: job
                .and_then(|job| job.items.get(item))
                .map(|text| mask_text(text).into_owned()),
            running: self.holder(item),
            is_taken_over: self.has(&path(ShardNode::Failover)),
            taken_over_by: self.text(&path(ShardNode::Failover)),
            awaits_failover: self.has(&self.tree.failover_item(item)),
            has_misfire_mark: self.has(&path(ShardNode::Misfire)),
            is_disabled,
            last_run,
            problem,
        }
    }
}

/// Numbers of a job's shards, in order. Those that the configuration defines are counted and not stored.
#[derive(Debug)]
pub(super) struct ShardNumbers {
    /// The configuration defines the numbers below.
    total: u32,
    /// The others, which have nodes.
    surplus: BTreeSet<u32>,
}

impl ShardNumbers {
    pub(super) fn contains(&self, item: u32) -> bool {
        item < self.total || self.surplus.contains(&item)
    }

    pub(super) fn len(&self) -> usize {
        self.total as usize + self.surplus.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.total).chain(self.surplus.iter().copied())
    }
}

/// Problem of a job that has nodes but no configuration: instances wrote them after the job was removed.
pub(super) fn no_configuration() -> Problem {
    Problem::new("it has no configuration: it was removed while instances were running")
        .with_hint("remove it again")
}

fn last_run(page: LedgerPage, since: Option<Timestamp>) -> LastRun {
    LastRun {
        run_id: page.run.map(|run| run.to_string()),
        due_at: page.due_at,
        attempt: page.attempt,
        instance: page.holder.map(|owner| owner.to_string()),
        state: page.state,
        since,
    }
}

/// Parses the node of an instance.
pub(super) fn instance(job: &JobName, id: &str, node: &Node) -> Instance {
    let document =
        id.parse().map_err(|error: job::InvalidValue| error.to_string()).and_then(|id| {
            job::Instance::read(job, &id, &node.data).map_err(|error| error.to_string())
        });
    let labels = document.as_ref().ok().and_then(|document| document.labels.as_deref());
    let pairs =
        labels.unwrap_or_default().split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let labels = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    Instance {
        id: id.to_owned(),
        server: document
            .as_ref()
            .map_or_else(|_| server_of(id).to_owned(), |document| document.server.clone()),
        labels: labels
            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            .collect(),
        language: Language::of(id),
        since: written_at(node),
        problem: document.err(),
    }
}

/// The part of a summary that follows from the configuration and the root node; the caller fills in status, instances and problem.
pub(super) fn summary(
    name: &JobName,
    job: Option<&Job>,
    root: &[u8],
    now: Timestamp,
    zone: &Zone,
) -> JobSummary {
    JobSummary {
        name: name.to_string(),
        status: JobStatus::Crashed,
        description: job.map(|job| mask_for_list(&job.description)).unwrap_or_default(),
        cron: job.and_then(|job| job.cron.as_ref()).map(ToString::to_string),
        shards: job.map(|job| job.shards.get()),
        instances: 0,
        handler: HandlerInfo::read(root, job),
        next_fire: job
            .and_then(|job| job.schedule(zone))
            .and_then(|schedule| schedule.next_after(now)),
        problem: None,
        hint: None,
    }
}

/// The status of a job, from its instances, the status of its servers, and the owners of its shards.
///
/// The rule is that of Java ElasticJob with one addition: Rust instances obey `disabled` in the configuration while running. Java reads it only when
/// it starts.
pub(super) fn status(
    ids: &BTreeSet<String>,
    mut servers: impl Iterator<Item = ServerStatus>,
    owners: &[String],
    job: Option<&Job>,
) -> JobStatus {
    let all_rust = || ids.iter().all(|id| Language::of(id) == Language::Rust);
    if ids.is_empty() {
        JobStatus::Crashed
    } else if servers.all(|status| status == ServerStatus::Disabled)
        || job.is_some_and(|job| job.disabled) && all_rust()
    {
        JobStatus::Disabled
    } else if owners.is_empty() || owners.iter().any(|owner| !ids.contains(owner)) {
        JobStatus::ShardingFlag
    } else {
        JobStatus::Ok
    }
}

pub(super) fn written_at(node: &Node) -> Option<Timestamp> {
    Timestamp::from_millisecond(node.stat.changed_at_ms).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_status_is_the_first_that_applies() {
        let id = "10.0.0.1@-@1-a".to_owned();
        let (none, one) = (BTreeSet::new(), BTreeSet::from([id.clone()]));
        let (on, off) = (ServerStatus::Enabled, ServerStatus::Disabled);
        let job = Job::named("j").unwrap();
        let disabled = job.clone().disabled();
        let status_of =
            |ids: &BTreeSet<String>, servers: &[ServerStatus], owners: &[&str], job: &Job| {
                let owners: Vec<String> = owners.iter().map(ToString::to_string).collect();
                status(ids, servers.iter().copied(), &owners, Some(job))
            };

        assert_eq!(status_of(&none, &[off], &[], &job), JobStatus::Crashed);
        assert_eq!(status_of(&one, &[off, off], &[&id], &job), JobStatus::Disabled);
        assert_eq!(status_of(&one, &[], &[&id], &job), JobStatus::Disabled);
        assert_eq!(status_of(&one, &[off, on], &[], &job), JobStatus::ShardingFlag);
        assert_eq!(status_of(&one, &[on], &[&id, "10.0.0.2@-@2"], &job), JobStatus::ShardingFlag);
        assert_eq!(status_of(&one, &[on], &[&id], &job), JobStatus::Ok);
        assert_eq!(status_of(&one, &[on], &[&id], &disabled), JobStatus::Disabled, "Rust stops");
        let java = BTreeSet::from(["10.0.0.1@-@1".to_owned()]);
        let status = status_of(&java, &[on], &["10.0.0.1@-@1"], &disabled);
        assert_eq!(status, JobStatus::Ok, "Java continues");
    }
}
