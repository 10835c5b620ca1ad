//! Computes from the leader's view the changes that assign every shard to an instance.
//!
//! An instance is a candidate if it is registered and its server, compared by the whole address, is enabled. A running shard keeps its owner and
//! moves when its run is over. A shard whose `running` names a dead instance keeps its owner, too, because the survivors learn from `running`
//! and the old owner what has to be taken over.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    custom_strategies::CustomStrategies,
    strategy::{Candidate, ShardingInput},
};
use crate::{
    coordination::{
        server_status::StoredStatus,
        tree::ShardNode,
        view::{CachedNode, View},
    },
    job::Job,
    registry::{Create, ExpectedVersion, Op, Path},
};

/// A new assignment of shards, and the operations that establish it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The owner of each shard.
    pub owners: BTreeMap<u32, String>,
    /// Shards that the strategy moves, but that keep their owner for now because they run.
    pub deferred: BTreeSet<u32>,
    /// The candidates that the assignment was computed for.
    pub instances: BTreeSet<String>,
    /// The operations that lead from the present assignment to this one.
    pub ops: Vec<Op>,
    /// The operations that delete each shard beyond the shard count. They are apart from `ops`, because other programs may have put nodes below
    /// such a shard, which must not stop the assignment.
    pub removals: BTreeMap<u32, Vec<Op>>,
}

/// The instances that can own shards; `None` while a node that this depends on is dirty.
pub fn available_instances(view: &View) -> Option<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for (id, known) in &view.instances {
        match known {
            CachedNode::Dirty => return None,
            CachedNode::Denied => continue,
            CachedNode::Read(_) => {}
        }
        let Some(weight) = view.weight(id) else { continue };
        let Some((server, _)) = id.split_once("@-@") else { continue };
        let is_enabled = match view.servers.get(server) {
            Some(CachedNode::Dirty) => return None,
            Some(status) => StoredStatus::of(status) == Some(StoredStatus::Enabled),
            None => false,
        };
        if is_enabled {
            candidates.push(Candidate { id: id.clone(), weight });
        }
    }
    Some(candidates)
}

/// The assignment to establish; `None` while a node that it depends on is dirty, or while no instance can own shards.
pub fn plan(view: &View, job: &Job, strategies: &CustomStrategies, now_ms: i64) -> Option<Plan> {
    if !view.is_current() {
        return None;
    }
    let candidates = available_instances(view).filter(|candidates| !candidates.is_empty())?;
    let total = job.shards.get();
    let mut owners = BTreeMap::new();
    for (number, shard) in &view.shards {
        match &shard.owner {
            Some(CachedNode::Dirty) => return None,
            Some(known) => {
                drop(owners.insert(*number, known.text().unwrap_or_default().to_owned()));
            }
            None => {}
        }
    }
    let input = ShardingInput {
        job: job.name.as_str(),
        total,
        candidates: &candidates,
        owners: &owners,
        now_ms,
    };
    let mut target: BTreeMap<u32, String> =
        (0..total).zip(strategies.assign(job, &input)).collect();
    let mut deferred = BTreeSet::new();
    for (number, shard) in view.shards.range(..total) {
        // Its owner is not ours to read, nor to change.
        if shard.owner == Some(CachedNode::Denied) {
            target.remove(number);
            continue;
        }
        if shard.running.is_some()
            && let Some(owner) = owners.get(number)
            && target.get(number) != Some(owner)
        {
            target.insert(*number, owner.clone());
            deferred.insert(*number);
        }
    }
    let ops = changes(view, &owners, &target);
    let removals = removals(view, total);
    let instances = candidates.into_iter().map(|candidate| candidate.id).collect();
    Some(Plan { owners: target, deferred, instances, ops, removals })
}

fn changes(
    view: &View,
    current: &BTreeMap<u32, String>,
    target: &BTreeMap<u32, String>,
) -> Vec<Op> {
    let tree = view.tree();
    let mut ops = Vec::new();
    for (number, owner) in target {
        if !view.shards.contains_key(number) {
            ops.push(Op::Create(Create::persistent(&tree.shard(*number, ShardNode::Root), "")));
        }
        let path = tree.shard(*number, ShardNode::Owner);
        let data = owner.clone().into_bytes();
        match current.get(number) {
            None => ops.push(Op::Create(Create::persistent(&path, data))),
            Some(before) if before == owner => {}
            Some(_) => {
                ops.push(Op::Set { path, data: data.into(), expected: ExpectedVersion::Any });
            }
        }
    }
    ops
}

/// Shards beyond the shard count are deleted, but a running one only by a later assignment.
fn removals(view: &View, total: u32) -> BTreeMap<u32, Vec<Op>> {
    let surplus = view.shards.range(total..).filter(|(_, shard)| shard.running.is_none());
    let removals = surplus.map(|(number, shard)| {
        let shard_nodes = [
            (ShardNode::Owner, shard.owner.is_some()),
            (ShardNode::Failover, shard.failover.is_some()),
            (ShardNode::Failovering, shard.failovering.is_some()),
            (ShardNode::Misfire, shard.misfire),
            (ShardNode::Disabled, shard.disabled),
            (ShardNode::Root, true),
        ];
        let existing = shard_nodes.iter().filter(|(_, exists)| *exists);
        let ops = existing.map(|(shard_node, _)| delete(view.tree().shard(*number, *shard_node)));
        (*number, ops.collect())
    });
    removals.collect()
}

fn delete(path: Path) -> Op {
    Op::Delete { path, expected: ExpectedVersion::Any }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        coordination::tree::JobTree,
        registry::{Event, Stat, Version, Zxid},
    };

    const A: &str = "10.0.0.1@-@1";
    const B: &str = "10.0.0.2@-@2";

    /// A view of these nodes; one whose data is `None` stays dirty.
    fn view(nodes: &[(Path, Option<&str>)]) -> View {
        let mut view = View::new(tree());
        let stat = Stat {
            created: Zxid(1),
            changed: Zxid(1),
            changed_at_ms: 0,
            version: Version(0),
            owner: None,
            children: 0,
        };
        view.apply(&Event::Init);
        for (path, data) in nodes {
            let data = data.map(|data| data.to_string().into());
            view.apply(&Event::InitApply { path: path.clone(), stat, data });
        }
        view.apply(&Event::InitDone);
        view
    }

    fn tree() -> JobTree {
        JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap()
    }

    fn instance(id: &str, status: &str) -> [(Path, Option<String>); 2] {
        let address = id.split('@').next().unwrap();
        [
            (tree().instance(id), Some(format!("jobInstanceId: {id}\nserverIp: {address}\n"))),
            (tree().server(address), Some(status.to_owned())),
        ]
    }

    fn nodes(parts: &[(Path, Option<String>)]) -> Vec<(Path, Option<&str>)> {
        parts.iter().map(|(path, data)| (path.clone(), data.as_deref())).collect()
    }

    fn job(shards: u32) -> Job {
        Job::named("settle").unwrap().shards(shards)
    }

    #[test]
    fn shards_go_to_enabled_instances_only() {
        let parts = [instance(A, "ENABLED"), instance(B, "DISABLED")].concat();

        let plan = plan(&view(&nodes(&parts)), &job(2), &CustomStrategies::default(), 0).unwrap();

        assert_eq!(plan.owners, BTreeMap::from([(0, A.to_owned()), (1, A.to_owned())]));
        assert_eq!(plan.ops.len(), 4, "two shards and their owners are created");
    }

    #[test]
    fn running_shard_keeps_its_owner() {
        let mut parts = [instance(A, "ENABLED"), instance(B, "ENABLED")].concat();
        for shard in 0..2 {
            parts.push((tree().shard(shard, ShardNode::Root), Some(String::new())));
            parts.push((tree().shard(shard, ShardNode::Owner), Some(A.to_owned())));
        }
        parts.push((tree().shard(0, ShardNode::Running), Some(A.to_owned())));

        let plan = plan(&view(&nodes(&parts)), &job(2), &CustomStrategies::default(), 0).unwrap();

        // The strategy assigns shard 0 to B, the larger id, and shard 1 to A.
        assert_eq!(plan.owners[&0], A);
        assert_eq!(plan.deferred, BTreeSet::from([0]));
        assert!(plan.ops.is_empty(), "shard 1 already has the right owner");
    }

    #[test]
    fn smaller_shard_count_deletes_only_idle_shards() {
        let mut parts = instance(A, "ENABLED").to_vec();
        for shard in 0..3 {
            parts.push((tree().shard(shard, ShardNode::Root), Some(String::new())));
            parts.push((tree().shard(shard, ShardNode::Owner), Some(A.to_owned())));
        }
        parts.push((tree().shard(2, ShardNode::Running), Some(A.to_owned())));
        parts.push((tree().shard(1, ShardNode::Misfire), Some(String::new())));

        let plan = plan(&view(&nodes(&parts)), &job(1), &CustomStrategies::default(), 0).unwrap();

        assert!(plan.ops.is_empty(), "shard 0 already has its owner");
        let removals = plan.removals.values().flatten();
        let deleted: Vec<String> = removals.map(|op| op.path().to_string()).collect();
        assert_eq!(
            deleted,
            [
                "/shop/settle/sharding/1/instance",
                "/shop/settle/sharding/1/misfire",
                "/shop/settle/sharding/1"
            ]
        );
    }

    #[test]
    fn dirty_or_incomplete_view_yields_no_plan() {
        let read = instance(A, "ENABLED");
        let mut dirty = nodes(&read);
        dirty[1].1 = None;

        assert_eq!(plan(&view(&dirty), &job(1), &CustomStrategies::default(), 0), None);
        assert_eq!(plan(&View::new(tree()), &job(1), &CustomStrategies::default(), 0), None);
    }
}
