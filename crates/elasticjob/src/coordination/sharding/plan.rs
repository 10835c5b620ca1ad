//! From what the leader sees to what it writes.
//!
//! Instances count when they are there and their server is enabled, compared by the whole address. A shard that runs keeps its owner: it
//! moves when its run is over. So does one whose `running` names an instance that is gone, because survivors find out from it
//! and the old owner what has to be taken over.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    dealers::Dealers,
    strategy::{Candidate, Situation},
};
use crate::{
    coordination::{
        tree::Part,
        view::{Known, View},
    },
    job::Job,
    registry::{Create, Expected, Op, Path},
};

/// What a leader has to write so that every shard has an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Who is to own which shard.
    pub owners: BTreeMap<u32, String>,
    /// Shards that should move and cannot yet, because they run.
    pub later: BTreeSet<u32>,
    /// The instances it was made for.
    pub instances: BTreeSet<String>,
    /// The changes that lead there.
    pub ops: Vec<Op>,
}

/// Instances that can take shards, or `None` while something that decides it is unread.
pub fn available(view: &View) -> Option<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for (id, known) in &view.instances {
        known.read()?;
        let Some(weight) = view.weight(id) else { continue };
        let Some((server, _)) = id.split_once("@-@") else { continue };
        let enabled = match view.servers.get(server) {
            Some(Known::Dirty) => return None,
            Some(status) => status.text() == Some("ENABLED"),
            None => false,
        };
        if enabled {
            candidates.push(Candidate { id: id.clone(), weight });
        }
    }
    Some(candidates)
}

/// What to write; `None` while something that decides it is unread, or while there is nobody to give shards to.
pub fn plan(view: &View, job: &Job, dealers: &Dealers, now_ms: i64) -> Option<Plan> {
    if !view.is_current() {
        return None;
    }
    let candidates = available(view).filter(|candidates| !candidates.is_empty())?;
    let total = job.shards.get();
    let mut owners = BTreeMap::new();
    for (number, shard) in &view.shards {
        match &shard.owner {
            Some(Known::Dirty) => return None,
            Some(known) => {
                drop(owners.insert(*number, known.text().unwrap_or_default().to_owned()));
            }
            None => {}
        }
    }
    let situation = Situation {
        job: job.name.as_str(),
        total,
        candidates: &candidates,
        owners: &owners,
        now_ms,
    };
    let mut target: BTreeMap<u32, String> = (0..total).zip(dealers.deal(job, &situation)).collect();
    let mut later = BTreeSet::new();
    for (number, shard) in view.shards.range(..total) {
        if shard.running.is_some()
            && let Some(owner) = owners.get(number)
            && target.get(number) != Some(owner)
        {
            target.insert(*number, owner.clone());
            later.insert(*number);
        }
    }
    let ops = changes(view, &owners, &target, total);
    let instances = candidates.into_iter().map(|candidate| candidate.id).collect();
    Some(Plan { owners: target, later, instances, ops })
}

fn changes(
    view: &View,
    now: &BTreeMap<u32, String>,
    target: &BTreeMap<u32, String>,
    total: u32,
) -> Vec<Op> {
    let tree = view.tree();
    let mut ops = Vec::new();
    for (number, owner) in target {
        if !view.shards.contains_key(number) {
            ops.push(Op::Create(Create::persistent(&tree.shard(*number, Part::Itself), "")));
        }
        let path = tree.shard(*number, Part::Owner);
        let data = owner.clone().into_bytes();
        match now.get(number) {
            None => ops.push(Op::Create(Create::persistent(&path, data))),
            Some(before) if before == owner => {}
            Some(_) => ops.push(Op::Set { path, data: data.into(), expected: Expected::Any }),
        }
    }
    // Whatever is above the total goes, unless it runs: then it goes the next time.
    for (number, shard) in view.shards.range(total..).filter(|(_, shard)| shard.running.is_none()) {
        let parts = [
            (Part::Owner, shard.owner.is_some()),
            (Part::Failover, shard.failover.is_some()),
            (Part::Failovering, shard.failovering.is_some()),
            (Part::Misfire, shard.misfire),
            (Part::Disabled, shard.disabled),
            (Part::Itself, true),
        ];
        ops.extend(
            parts
                .iter()
                .filter(|(_, there)| *there)
                .map(|(part, _)| delete(tree.shard(*number, *part))),
        );
    }
    ops
}

fn delete(path: Path) -> Op {
    Op::Delete { path, expected: Expected::Any }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        coordination::tree::JobTree,
        registry::{Event, Node, Stat, Version, Zxid},
    };

    const A: &str = "10.0.0.1@-@1";
    const B: &str = "10.0.0.2@-@2";

    /// A view with these documents; `None` as data leaves a node unread.
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
            view.apply(&Event::InitApply { path: path.clone(), stat });
            if let Some(data) = data {
                view.learn(path, Some(Node { data: data.to_string().into(), stat }));
            }
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

        let plan = plan(&view(&nodes(&parts)), &job(2), &Dealers::default(), 0).unwrap();

        assert_eq!(plan.owners, BTreeMap::from([(0, A.to_owned()), (1, A.to_owned())]));
        assert_eq!(plan.ops.len(), 4, "two shards and their owners are created");
    }

    #[test]
    fn a_running_shard_keeps_its_owner_until_its_run_is_over() {
        let mut parts = [instance(A, "ENABLED"), instance(B, "ENABLED")].concat();
        for shard in 0..2 {
            parts.push((tree().shard(shard, Part::Itself), Some(String::new())));
            parts.push((tree().shard(shard, Part::Owner), Some(A.to_owned())));
        }
        parts.push((tree().shard(0, Part::Running), Some(A.to_owned())));

        let plan = plan(&view(&nodes(&parts)), &job(2), &Dealers::default(), 0).unwrap();

        // By the strategy B, the larger id, would have shard 0 and A shard 1.
        assert_eq!(plan.owners[&0], A);
        assert_eq!(plan.later, BTreeSet::from([0]));
        assert!(plan.ops.is_empty(), "shard 1 is where it belongs");
    }

    #[test]
    fn shrinking_removes_what_does_not_run_and_leaves_what_does() {
        let mut parts = instance(A, "ENABLED").to_vec();
        for shard in 0..3 {
            parts.push((tree().shard(shard, Part::Itself), Some(String::new())));
            parts.push((tree().shard(shard, Part::Owner), Some(A.to_owned())));
        }
        parts.push((tree().shard(2, Part::Running), Some(A.to_owned())));
        parts.push((tree().shard(1, Part::Misfire), Some(String::new())));

        let plan = plan(&view(&nodes(&parts)), &job(1), &Dealers::default(), 0).unwrap();

        let gone: Vec<String> = plan.ops.iter().map(|op| op.path().to_string()).collect();
        assert_eq!(
            gone,
            [
                "/shop/settle/sharding/1/instance",
                "/shop/settle/sharding/1/misfire",
                "/shop/settle/sharding/1"
            ]
        );
    }

    #[test]
    fn nothing_is_planned_from_what_has_not_been_read() {
        let read = instance(A, "ENABLED");
        let mut unread = nodes(&read);
        unread[1].1 = None;

        assert_eq!(plan(&view(&unread), &job(1), &Dealers::default(), 0), None);
        assert_eq!(plan(&View::new(tree()), &job(1), &Dealers::default(), 0), None);
    }
}
