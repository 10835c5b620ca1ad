//! Views for tests of pure decisions.

use std::time::Duration;

use super::assignment::Assignment;
use crate::{
    coordination::{
        tree::{JobTree, ShardNode},
        view::View,
    },
    job::{InstanceId, Job},
    registry::{Event, Node, Path, Stat, Version, Zxid},
    runtime::Monotonic,
};

pub(super) const US: &str = "10.0.0.1@-@1-a";
pub(super) const OTHER: &str = "10.0.0.2@-@2-b";
pub(super) const JAVA: &str = "10.0.0.3@-@4711";

/// A view in which every document is read.
pub(super) struct TestView {
    pub(super) view: View,
    pub(super) job: Job,
    own_id: InstanceId,
}

impl TestView {
    /// These instances are members, on enabled servers, of a job with this many shards.
    pub(super) fn new(shards: u32, instances: &[&str]) -> Self {
        let tree = JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap();
        let mut view = View::new(tree);
        view.apply(&Event::Init);
        view.apply(&Event::InitDone);
        let job = Job::named("settle").unwrap().shards(shards);
        let mut test = Self { view, job, own_id: US.parse().unwrap() };
        for id in instances {
            let server = id.split('@').next().unwrap();
            let document = format!("jobInstanceId: {id}\nserverIp: {server}\n");
            test = test.with(|tree| tree.server(server), "ENABLED");
            test = test.with(|tree| tree.instance(id), &document);
        }
        test
    }

    /// The shards are assigned to these instances, in order.
    pub(super) fn owners(mut self, owners: &[&str]) -> Self {
        for (shard, owner) in (0..).zip(owners) {
            self = self.with(|tree| tree.shard(shard, ShardNode::Root), "");
            self = self.with(|tree| tree.shard(shard, ShardNode::Owner), owner);
        }
        self
    }

    pub(super) fn with(mut self, path: impl Fn(&JobTree) -> Path, data: &str) -> Self {
        let path = path(self.view.tree());
        let stat = Stat {
            created: Zxid(1),
            changed: Zxid(1),
            changed_at_ms: 0,
            version: Version(0),
            owner: None,
            children: 0,
        };
        self.view.apply(&Event::Apply { path: path.clone() });
        self.view.record_read(&path, Some(Node { data: data.to_owned().into(), stat }));
        self
    }

    pub(super) fn part(self, shard: u32, part: ShardNode, data: &str) -> Self {
        self.with(|tree| tree.shard(shard, part), data)
    }

    pub(super) fn without(mut self, path: impl Fn(&JobTree) -> Path) -> Self {
        let path = path(self.view.tree());
        self.view.apply(&Event::Delete { path });
        self
    }

    pub(super) fn job(mut self, change: impl Fn(Job) -> Job) -> Self {
        self.job = change(self.job);
        self
    }

    pub(super) fn assignment(&self) -> Assignment<'_> {
        Assignment { view: &self.view, job: &self.job, own_id: &self.own_id }
    }
}

pub(super) fn at(seconds: u64) -> Monotonic {
    Monotonic::from_start(Duration::from_secs(seconds))
}
