//! Every path of the protocol, spelled once: where things are, and what a place means.
//!
//! Below a job's root is the ancestor's tree, node for node. Beside the namespace is ours: the ledger and the processes. Nothing of
//! ours is put inside the job, because everything there is delivered to every Java instance and costs it requests.

use std::fmt::Display;

use crate::{
    job::{InstanceId, JobName},
    registry::{Namespace, Path, PathError},
};

/// Where everything of one job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTree {
    root: Path,
    ledger: Path,
    processes: Path,
}

/// What a place below a job's root means.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum Place {
    Root,
    Config,
    Server(String),
    Instance(String),
    Leader,
    Necessary,
    Processing,
    FailoverItem(u32),
    Shard(u32, Part),
    Trigger(String),
    StartedAll,
    Started(u32),
    CompletedAll,
    Completed(u32),
    NextInstanceIp,
    /// One of the parents of [`JobTree::skeleton`], by its number there.
    Parent(usize),
    /// Another parent, a latch, or something nobody knows.
    Other,
}

/// How many parents a job's tree has.
pub const PARENTS: usize = SKELETON.len();

/// What has to be there before an instance can enter, parents first.
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

/// What hangs below a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum Part {
    /// The shard's own node.
    Itself,
    Owner,
    Running,
    Failover,
    Failovering,
    Misfire,
    Disabled,
}

impl Part {
    /// The nodes that name who has a shard in hand.
    pub const HOLDERS: [Part; 3] = [Part::Running, Part::Failover, Part::Failovering];

    const NAMES: [(&'static str, Part); 6] = [
        ("instance", Part::Owner),
        ("running", Part::Running),
        ("failover", Part::Failover),
        ("failovering", Part::Failovering),
        ("misfire", Part::Misfire),
        ("disabled", Part::Disabled),
    ];
}

/// The parent of the processes of a namespace.
pub fn processes(namespace: &Namespace) -> Result<Path, PathError> {
    Ok(namespace.sibling("processes")?.path().clone())
}

impl JobTree {
    /// Where `job` is in `namespace`.
    pub fn new(namespace: &Namespace, job: &JobName) -> Result<Self, PathError> {
        Ok(Self {
            root: namespace.path().join(job)?,
            ledger: namespace.sibling("ledger")?.path().join(job)?,
            processes: processes(namespace)?,
        })
    }

    /// The job itself; its data names the class or type that runs it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The job's configuration.
    pub fn config(&self) -> Path {
        self.at("config")
    }

    /// The parent of the servers.
    pub fn servers(&self) -> Path {
        self.at("servers")
    }

    /// Whether the server at this address takes part.
    pub fn server(&self, address: impl Display) -> Path {
        self.at(format_args!("servers/{address}"))
    }

    /// The parent of the instances.
    pub fn instances(&self) -> Path {
        self.at("instances")
    }

    /// An instance that lives.
    pub fn instance(&self, id: impl Display) -> Path {
        self.at(format_args!("instances/{id}"))
    }

    /// Where leaders are elected.
    pub fn election_latch(&self) -> Path {
        self.at("leader/election/latch")
    }

    /// Who leads.
    pub fn leader(&self) -> Path {
        self.at("leader/election/instance")
    }

    /// Shards have to be dealt anew.
    pub fn necessary(&self) -> Path {
        self.at("leader/sharding/necessary")
    }

    /// Shards are being dealt.
    pub fn processing(&self) -> Path {
        self.at("leader/sharding/processing")
    }

    /// The parent of the shards waiting to be taken over.
    pub fn failover_items(&self) -> Path {
        self.at("leader/failover/items")
    }

    /// A shard waiting to be taken over.
    pub fn failover_item(&self, shard: u32) -> Path {
        self.at(format_args!("leader/failover/items/{shard}"))
    }

    /// Where takers queue.
    pub fn failover_latch(&self) -> Path {
        self.at("leader/failover/latch")
    }

    /// The parent of the shards.
    pub fn sharding(&self) -> Path {
        self.at("sharding")
    }

    /// A shard, or what hangs below it.
    pub fn shard(&self, shard: u32, part: Part) -> Path {
        match Part::NAMES.iter().find(|(_, known)| *known == part) {
            Some((name, _)) => self.at(format_args!("sharding/{shard}/{name}")),
            None => self.at(format_args!("sharding/{shard}")),
        }
    }

    /// The parent of the triggers.
    pub fn triggers(&self) -> Path {
        self.at("trigger")
    }

    /// "Run now", for one instance.
    pub fn trigger(&self, id: impl Display) -> Path {
        self.at(format_args!("trigger/{id}"))
    }

    /// The parent of the gates where the shards of a fire meet.
    pub fn guarantee(&self) -> Path {
        self.at("guarantee")
    }

    /// Where those meet that are about to run.
    pub fn started(&self) -> Path {
        self.at("guarantee/started")
    }

    /// Where they queue to be the one that calls the listener.
    pub fn started_latch(&self) -> Path {
        self.at("guarantee/started-latch")
    }

    /// Where those meet that have run.
    pub fn completed(&self) -> Path {
        self.at("guarantee/completed")
    }

    /// Where they queue to be the one that calls the listener.
    pub fn completed_latch(&self) -> Path {
        self.at("guarantee/completed-latch")
    }

    /// The registry's clock, read by writing.
    pub fn system_time(&self) -> Path {
        self.at("systemTime/current")
    }

    /// Whose turn it is, for a job with one wandering shard.
    pub fn next_instance_ip(&self) -> Path {
        self.at("next-job-instance-ip")
    }

    /// The parent of this job's ledger.
    pub fn ledger(&self) -> &Path {
        &self.ledger
    }

    /// A shard's page of the ledger.
    pub fn page(&self, shard: u32) -> Path {
        self.ledger.join(shard).expect("a number is a name")
    }

    /// The process behind an instance, as long as it lives.
    pub fn process(&self, id: &InstanceId) -> Path {
        self.processes.join(id).expect("an id is a name")
    }

    /// What has to be there before an instance can enter, parents first.
    pub fn skeleton(&self) -> [Path; PARENTS] {
        SKELETON.map(|relative| self.at(relative))
    }

    /// What a place means; `None` if it is not below this job.
    pub fn place(&self, path: &Path) -> Option<Place> {
        if *path == self.root {
            return Some(Place::Root);
        }
        let relative = path.below(&self.root)?;
        let segments: Vec<&str> = relative.split('/').collect();
        let number = |text: &str| text.parse::<u32>().ok();
        Some(match segments.as_slice() {
            ["config"] => Place::Config,
            ["servers", address] => Place::Server((*address).to_owned()),
            ["instances", id] => Place::Instance((*id).to_owned()),
            ["leader", "election", "instance"] => Place::Leader,
            ["leader", "sharding", "necessary"] => Place::Necessary,
            ["leader", "sharding", "processing"] => Place::Processing,
            ["leader", "failover", "items", shard] => {
                number(shard).map_or(Place::Other, Place::FailoverItem)
            }
            ["sharding", shard] => {
                number(shard).map_or(Place::Other, |shard| Place::Shard(shard, Part::Itself))
            }
            ["sharding", shard, part] => {
                let part = Part::NAMES.iter().find(|(name, _)| name == part).map(|(_, part)| *part);
                match (number(shard), part) {
                    (Some(shard), Some(part)) => Place::Shard(shard, part),
                    _ => Place::Other,
                }
            }
            ["trigger", id] => Place::Trigger((*id).to_owned()),
            ["guarantee", "started"] => Place::StartedAll,
            ["guarantee", "started", shard] => number(shard).map_or(Place::Other, Place::Started),
            ["guarantee", "completed"] => Place::CompletedAll,
            ["guarantee", "completed", shard] => {
                number(shard).map_or(Place::Other, Place::Completed)
            }
            ["next-job-instance-ip"] => Place::NextInstanceIp,
            _ => SKELETON
                .iter()
                .position(|parent| *parent == relative)
                .map_or(Place::Other, Place::Parent),
        })
    }

    /// What is below the root is either fixed here or made of parts that are names themselves.
    fn at(&self, relative: impl Display) -> Path {
        self.root.join(relative).expect("the protocol's names are names")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> JobTree {
        JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_place_knows_what_its_path_means() {
        let tree = tree();
        for (path, place) in [
            (tree.root().clone(), Place::Root),
            (tree.config(), Place::Config),
            (tree.server("10.0.0.1"), Place::Server("10.0.0.1".into())),
            (tree.instance("10.0.0.1@-@7"), Place::Instance("10.0.0.1@-@7".into())),
            (tree.leader(), Place::Leader),
            (tree.necessary(), Place::Necessary),
            (tree.processing(), Place::Processing),
            (tree.failover_item(3), Place::FailoverItem(3)),
            (tree.shard(2, Part::Itself), Place::Shard(2, Part::Itself)),
            (tree.shard(2, Part::Running), Place::Shard(2, Part::Running)),
            (tree.trigger("x@-@1"), Place::Trigger("x@-@1".into())),
            (tree.election_latch(), Place::Other),
            (tree.servers(), Place::Parent(0)),
        ] {
            assert_eq!(tree.place(&path), Some(place), "{path}");
        }
        assert_eq!(tree.place(&"/shop/settle2/config".parse().unwrap()), None);
        assert_eq!(tree.place(tree.ledger()), None);
    }

    #[test]
    fn the_ledger_is_beside_the_namespace() {
        assert_eq!(tree().page(4).as_str(), "/shop~ledger/settle/4");
        assert_eq!(tree().shard(4, Part::Owner).as_str(), "/shop/settle/sharding/4/instance");
    }
}
