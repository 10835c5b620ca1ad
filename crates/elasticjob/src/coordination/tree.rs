//! Every registry path of the protocol, spelled once: the path of each node, and the node that a path stands for.
//!
//! Below a job's root is Java ElasticJob's tree, node for node. The nodes that only Rust instances use, the ledger and the processes, are in
//! siblings of the namespace. None of them is below the job's root, because every change there is delivered to every Java instance and costs
//! it requests.

use std::fmt::Display;

use crate::{
    job::{InstanceId, JobName},
    registry::{Namespace, Path, PathError},
};

/// The paths of all nodes of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTree {
    root: Path,
    ledger: Path,
    processes: Path,
}

/// A node at or below a job's root, as its path identifies it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum TreeNode {
    Root,
    Config,
    Server(String),
    Instance(String),
    Leader,
    Necessary,
    Processing,
    FailoverItem(u32),
    Shard(u32, ShardNode),
    Trigger(String),
    StartedGate,
    StartedRegistration(u32),
    CompletedGate,
    CompletedRegistration(u32),
    NextInstanceIp,
    /// A parent node of [`JobTree::skeleton`], by its index there.
    Parent(usize),
    /// Any other node: another parent, a latch, or one that the protocol does not define.
    Other,
}

pub const SKELETON_SIZE: usize = SKELETON.len();

/// The nodes that must exist before an instance can join, each after its parent.
const SKELETON: [&str; 8] = [
    "servers",
    "instances",
    "leader",
    "leader/election",
    "leader/sharding",
    "leader/failover",
    "leader/failover/items",
    "sharding",
];

/// A shard's own node, or one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum ShardNode {
    /// The shard's own node, parent of the others.
    Root,
    Owner,
    Running,
    Failover,
    Failovering,
    Misfire,
    Disabled,
}

impl ShardNode {
    /// The nodes that name the holder of a shard.
    pub const HOLDERS: [ShardNode; 3] =
        [ShardNode::Running, ShardNode::Failover, ShardNode::Failovering];

    const NAMES: [(&'static str, ShardNode); 6] = [
        ("instance", ShardNode::Owner),
        ("running", ShardNode::Running),
        ("failover", ShardNode::Failover),
        ("failovering", ShardNode::Failovering),
        ("misfire", ShardNode::Misfire),
        ("disabled", ShardNode::Disabled),
    ];
}

/// Parent of the process nodes of a namespace.
pub fn processes_path(namespace: &Namespace) -> Result<Path, PathError> {
    Ok(namespace.sibling("processes")?.path().clone())
}

impl JobTree {
    /// The paths of `job` in `namespace`.
    pub fn new(namespace: &Namespace, job: &JobName) -> Result<Self, PathError> {
        Ok(Self {
            root: namespace.path().join(job)?,
            ledger: namespace.sibling("ledger")?.path().join(job)?,
            processes: processes_path(namespace)?,
        })
    }

    /// The job's root. Its data names the class or type that runs the job.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn config(&self) -> Path {
        self.at("config")
    }

    /// Parent of the server nodes.
    pub fn servers(&self) -> Path {
        self.at("servers")
    }

    /// The status of the server at this address: enabled or disabled.
    pub fn server(&self, address: impl Display) -> Path {
        self.at(format_args!("servers/{address}"))
    }

    /// Parent of the instance nodes.
    pub fn instances(&self) -> Path {
        self.at("instances")
    }

    /// An instance. The node is ephemeral: it ends with the instance's session.
    pub fn instance(&self, id: impl Display) -> Path {
        self.at(format_args!("instances/{id}"))
    }

    /// The latch through which the leader is elected.
    pub fn election_latch(&self) -> Path {
        self.at("leader/election/latch")
    }

    /// The leader's instance id.
    pub fn leader(&self) -> Path {
        self.at("leader/election/instance")
    }

    /// Exists while shards have to be reassigned.
    pub fn necessary(&self) -> Path {
        self.at("leader/sharding/necessary")
    }

    /// Exists while the leader assigns shards.
    pub fn processing(&self) -> Path {
        self.at("leader/sharding/processing")
    }

    /// Parent of the failover flags.
    pub fn failover_items(&self) -> Path {
        self.at("leader/failover/items")
    }

    /// The failover flag of a shard: the shard was lost and waits to be taken over.
    pub fn failover_item(&self, shard: u32) -> Path {
        self.at(format_args!("leader/failover/items/{shard}"))
    }

    /// The latch that an instance acquires before it takes over shards.
    pub fn failover_latch(&self) -> Path {
        self.at("leader/failover/latch")
    }

    /// Parent of the shard nodes.
    pub fn sharding(&self) -> Path {
        self.at("sharding")
    }

    /// A shard's own node, or one below it.
    pub fn shard(&self, shard: u32, shard_node: ShardNode) -> Path {
        match ShardNode::NAMES.iter().find(|(_, known)| *known == shard_node) {
            Some((name, _)) => self.at(format_args!("sharding/{shard}/{name}")),
            None => self.at(format_args!("sharding/{shard}")),
        }
    }

    /// Parent of the doorbells.
    pub fn triggers(&self) -> Path {
        self.at("trigger")
    }

    /// The doorbell of one instance: Java ElasticJob's request to run now, or a note that something was stored for it.
    pub fn trigger(&self, id: impl Display) -> Path {
        self.at(format_args!("trigger/{id}"))
    }

    /// Parent of the two gates of the once-listener barrier.
    pub fn guarantee(&self) -> Path {
        self.at("guarantee")
    }

    /// The gate at which the shards of a fire register before the first of them runs.
    pub fn started(&self) -> Path {
        self.at("guarantee/started")
    }

    /// The latch that decides which instance calls the listener of the `started` gate.
    pub fn started_latch(&self) -> Path {
        self.at("guarantee/started-latch")
    }

    /// The gate at which the shards of a fire register after they have run.
    pub fn completed(&self) -> Path {
        self.at("guarantee/completed")
    }

    /// The latch that decides which instance calls the listener of the `completed` gate.
    pub fn completed_latch(&self) -> Path {
        self.at("guarantee/completed-latch")
    }

    /// The node that is written to read the registry's clock from its modification time.
    pub fn system_time(&self) -> Path {
        self.at("systemTime/current")
    }

    /// Address of the server that runs next, for a job whose single shard rotates (`SINGLE_SHARDING_BALANCE`).
    pub fn next_instance_ip(&self) -> Path {
        self.at("next-job-instance-ip")
    }

    /// Parent of this job's ledger pages.
    pub fn ledger(&self) -> &Path {
        &self.ledger
    }

    /// The ledger page of a shard.
    pub fn ledger_page(&self, shard: u32) -> Path {
        self.ledger.join(shard).expect("a number is a valid path segment")
    }

    /// Parent of the triggers that were accepted, and of cancellations. It is beside the ledger pages and not below the job's root, where Java
    /// ElasticJob deletes every trigger before it triggers the whole job.
    pub fn accepted_triggers(&self) -> Path {
        self.ledger.join("triggers").expect("a valid path segment")
    }

    /// A trigger that was accepted, by the run that results from it, or a cancellation.
    pub fn accepted_trigger(&self, name: impl Display) -> Path {
        self.accepted_triggers().join(name).expect("a run id is a valid path segment")
    }

    /// What became of a shard of a trigger.
    pub fn trigger_entry(&self, run: impl Display, shard: u32) -> Path {
        self.accepted_trigger(run).join(shard).expect("a number is a valid path segment")
    }

    /// Since when the ledger shows which fires were missed.
    pub fn floor(&self) -> Path {
        self.ledger.join("floor").expect("a valid path segment")
    }

    /// The process of an instance. The node is ephemeral: it ends with the process's session.
    pub fn process(&self, id: &InstanceId) -> Path {
        self.processes.join(id).expect("an instance id is a valid path segment")
    }

    /// The nodes that must exist before an instance can join, each after its parent.
    pub fn skeleton(&self) -> [Path; SKELETON_SIZE] {
        SKELETON.map(|relative| self.at(relative))
    }

    /// The node that a path stands for; `None` if the path is not at or below this job's root.
    pub fn node_at(&self, path: &Path) -> Option<TreeNode> {
        if *path == self.root {
            return Some(TreeNode::Root);
        }
        let relative = path.relative_to(&self.root)?;
        let segments: Vec<&str> = relative.split('/').collect();
        let number = |text: &str| text.parse::<u32>().ok();
        Some(match segments.as_slice() {
            ["config"] => TreeNode::Config,
            ["servers", address] => TreeNode::Server((*address).to_owned()),
            ["instances", id] => TreeNode::Instance((*id).to_owned()),
            ["leader", "election", "instance"] => TreeNode::Leader,
            ["leader", "sharding", "necessary"] => TreeNode::Necessary,
            ["leader", "sharding", "processing"] => TreeNode::Processing,
            ["leader", "failover", "items", shard] => {
                number(shard).map_or(TreeNode::Other, TreeNode::FailoverItem)
            }
            ["sharding", shard] => number(shard)
                .map_or(TreeNode::Other, |shard| TreeNode::Shard(shard, ShardNode::Root)),
            ["sharding", shard, shard_node] => {
                let shard_node = ShardNode::NAMES
                    .iter()
                    .find(|(name, _)| name == shard_node)
                    .map(|(_, shard_node)| *shard_node);
                match (number(shard), shard_node) {
                    (Some(shard), Some(shard_node)) => TreeNode::Shard(shard, shard_node),
                    _ => TreeNode::Other,
                }
            }
            ["trigger", id] => TreeNode::Trigger((*id).to_owned()),
            ["guarantee", "started"] => TreeNode::StartedGate,
            ["guarantee", "started", shard] => {
                number(shard).map_or(TreeNode::Other, TreeNode::StartedRegistration)
            }
            ["guarantee", "completed"] => TreeNode::CompletedGate,
            ["guarantee", "completed", shard] => {
                number(shard).map_or(TreeNode::Other, TreeNode::CompletedRegistration)
            }
            ["next-job-instance-ip"] => TreeNode::NextInstanceIp,
            _ => SKELETON
                .iter()
                .position(|parent| *parent == relative)
                .map_or(TreeNode::Other, TreeNode::Parent),
        })
    }

    /// Never fails: every relative path is a constant of this file or made of values that are valid path segments.
    fn at(&self, relative: impl Display) -> Path {
        self.root.join(relative).expect("protocol paths are valid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> JobTree {
        JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap()
    }

    #[test]
    fn path_identifies_its_node() {
        let tree = tree();
        for (path, node) in [
            (tree.root().clone(), TreeNode::Root),
            (tree.config(), TreeNode::Config),
            (tree.server("10.0.0.1"), TreeNode::Server("10.0.0.1".into())),
            (tree.instance("10.0.0.1@-@7"), TreeNode::Instance("10.0.0.1@-@7".into())),
            (tree.leader(), TreeNode::Leader),
            (tree.necessary(), TreeNode::Necessary),
            (tree.processing(), TreeNode::Processing),
            (tree.failover_item(3), TreeNode::FailoverItem(3)),
            (tree.shard(2, ShardNode::Root), TreeNode::Shard(2, ShardNode::Root)),
            (tree.shard(2, ShardNode::Running), TreeNode::Shard(2, ShardNode::Running)),
            (tree.trigger("x@-@1"), TreeNode::Trigger("x@-@1".into())),
            (tree.election_latch(), TreeNode::Other),
            (tree.servers(), TreeNode::Parent(0)),
        ] {
            assert_eq!(tree.node_at(&path), Some(node), "{path}");
        }
        assert_eq!(tree.node_at(&"/shop/settle2/config".parse().unwrap()), None);
        assert_eq!(tree.node_at(tree.ledger()), None);
    }

    #[test]
    fn ledger_is_a_sibling_of_the_namespace() {
        assert_eq!(tree().ledger_page(4).as_str(), "/shop~ledger/settle/4");
        assert_eq!(tree().shard(4, ShardNode::Owner).as_str(), "/shop/settle/sharding/4/instance");
    }
}
