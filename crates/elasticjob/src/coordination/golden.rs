//! Golden tests of ledger pages, triggers and paths; `tests/golden/README.md` explains why. `tests/golden.rs` covers what nodes write as a whole.
//!
//! Values are spelled out field by field and enums variant by variant, so that an addition does not compile until it has a golden entry, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    iter::successors,
    time::Duration,
};

use jiff::Timestamp;
use testbed::golden;

use super::{
    floor::Floor,
    ledger::{LedgerPage, LedgerState, TriggerDetails},
    shard_ranges::ShardRanges,
    tree::{JobTree, ShardNode, TreeNode, processes_path},
    trigger::{Cancellation, ShardEntry, SkipReason, Trigger, TriggerRequest},
};
use crate::{
    job::{InstanceId, Outcome, RunId, ShardSelection},
    registry::Path,
};

fn due() -> Timestamp {
    "2026-11-15T06:36:07Z".parse().unwrap()
}

fn lines(documents: &[Vec<u8>]) -> String {
    documents.iter().map(|document| String::from_utf8(document.clone()).unwrap() + "\n").collect()
}

#[test]
fn ledger_pages_are_stored_in_the_same_words() {
    let states = successors(Some(LedgerState::Fresh), |state| match state {
        LedgerState::Fresh => Some(LedgerState::Running),
        LedgerState::Running => Some(LedgerState::Done),
        LedgerState::Done => Some(LedgerState::Failed),
        LedgerState::Failed => Some(LedgerState::Lost),
        LedgerState::Lost => None,
    });
    let scheduled = states.map(|state| LedgerPage {
        run: Some(RunId::scheduled("settle".parse().unwrap(), due())),
        due_at: Some(due()),
        attempt: 2,
        holder: Some("10.0.0.7@-@4711-9f86d081".parse().unwrap()),
        state,
        trigger: None,
        other: None,
    });
    let triggered = LedgerPage {
        run: Some(RunId::triggered(7)),
        due_at: Some(due()),
        attempt: 1,
        holder: Some("10.0.0.7@-@4711-9f86d081".parse().unwrap()),
        state: LedgerState::Running,
        trigger: Some(Box::new(TriggerDetails {
            at: due(),
            parameter: Some("2026-11".to_owned()),
            by: Some("ann".to_owned()),
        })),
        other: None,
    };
    let pages: Vec<LedgerPage> = scheduled.chain([triggered, LedgerPage::default()]).collect();

    let written: Vec<Vec<u8>> = pages.iter().map(LedgerPage::to_bytes).collect();
    let stored = golden!("ledger.jsonl", lines(&written));

    let read: Vec<LedgerPage> =
        stored.lines().map(|line| LedgerPage::read(line.as_bytes()).unwrap()).collect();
    assert_eq!(read, pages);

    // Pages of before there was a version.
    let oldest = include_str!("../../tests/golden/ledger-0.jsonl");
    let read: Vec<LedgerPage> =
        oldest.lines().map(|line| LedgerPage::read(line.as_bytes()).unwrap()).collect();
    assert_eq!(read, pages);
}

#[test]
fn floor_is_stored_in_the_same_words() {
    let floor = Floor {
        job: Some(due()),
        shards: BTreeMap::from([(3, due() + jiff::SignedDuration::from_hours(1))]),
        schedule: Some(due() - jiff::SignedDuration::from_hours(1)),
        java: Some(due() - jiff::SignedDuration::from_hours(2)),
        other: serde_json::Map::new(),
    };
    let floors = [floor, Floor::default()];

    let written: Vec<Vec<u8>> = floors.iter().map(Floor::to_bytes).collect();
    let stored = golden!("floor.jsonl", lines(&written));

    let read: Vec<Floor> =
        stored.lines().map(|line| Floor::read(line.as_bytes()).unwrap()).collect();
    assert_eq!(read, floors);
}

#[test]
fn triggers_are_stored_in_the_same_words() {
    let request = TriggerRequest {
        run: Some(RunId::triggered(7)),
        at: Some(due()),
        shards: ShardSelection::only([0, 2]).unwrap(),
        parameter: Some("2026-11".to_owned()),
        by: Some("ann".to_owned()),
        expires_in: Some(Duration::from_hours(1)),
    };
    let shards = || [0, 1, 2, 4].into_iter().collect();
    let delegated = [3].into_iter().collect();
    let mut ended = Trigger::new(&TriggerRequest::default(), 0, shards(), delegated, due());
    ended.ended_at = Some(due());
    let triggers = [Trigger::new(&request, 3, shards(), ShardRanges::default(), due()), ended];
    let owner: InstanceId = "10.0.0.7@-@4711-9f86d081".parse().unwrap();
    let claimed = ShardEntry::Claimed { owner: owner.clone(), attempt: 1 };
    let over =
        Outcome::ALL.map(|outcome| ShardEntry::Ended { owner: owner.clone(), attempt: 2, outcome });
    let skipped = SkipReason::ALL.map(ShardEntry::Skipped);
    let entries: Vec<ShardEntry> = [claimed].into_iter().chain(over).chain(skipped).collect();
    let run = RunId::scheduled("settle".parse().unwrap(), due());
    let cancellation = Cancellation::new(run, shards(), due());

    let written = triggers.iter().map(Trigger::to_bytes);
    let written = written.chain(entries.iter().map(ShardEntry::to_bytes));
    let written: Vec<Vec<u8>> = written.chain([cancellation.to_bytes()]).collect();
    let stored = golden!("trigger.jsonl", lines(&written));

    let stored: Vec<&[u8]> = stored.lines().map(str::as_bytes).collect();
    let (first, rest) = stored.split_at(triggers.len());
    let (second, last) = rest.split_at(entries.len());
    let read: Vec<Trigger> = first.iter().map(|line| Trigger::read(line).unwrap()).collect();
    assert_eq!(read, triggers);
    let read: Vec<ShardEntry> = second.iter().map(|line| ShardEntry::read(line).unwrap()).collect();
    assert_eq!(read, entries);
    assert_eq!(
        last.iter().map(|line| Cancellation::read(line)).collect::<Vec<_>>(),
        [Ok(cancellation)]
    );
}

/// Every path of a job with the node that it stands for; `None` for paths outside the job's root.
fn nodes(tree: &JobTree) -> Vec<(Path, Option<TreeNode>)> {
    let id = "10.0.0.7@-@4711-9f86d081";
    let parts = successors(Some(ShardNode::Root), |part| match part {
        ShardNode::Root => Some(ShardNode::Owner),
        ShardNode::Owner => Some(ShardNode::Running),
        ShardNode::Running => Some(ShardNode::Failover),
        ShardNode::Failover => Some(ShardNode::Failovering),
        ShardNode::Failovering => Some(ShardNode::Misfire),
        ShardNode::Misfire => Some(ShardNode::Disabled),
        ShardNode::Disabled => None,
    });
    let mut nodes = vec![
        (tree.root().clone(), Some(TreeNode::Root)),
        (tree.config(), Some(TreeNode::Config)),
        (tree.servers(), Some(TreeNode::Parent(0))),
        (tree.server("10.0.0.7"), Some(TreeNode::Server("10.0.0.7".to_owned()))),
        (tree.instances(), Some(TreeNode::Parent(1))),
        (tree.instance(id), Some(TreeNode::Instance(id.to_owned()))),
        (tree.election_latch(), Some(TreeNode::Other)),
        (tree.leader(), Some(TreeNode::Leader)),
        (tree.necessary(), Some(TreeNode::Necessary)),
        (tree.processing(), Some(TreeNode::Processing)),
        (tree.failover_items(), Some(TreeNode::Parent(6))),
        (tree.failover_item(2), Some(TreeNode::FailoverItem(2))),
        (tree.failover_latch(), Some(TreeNode::Other)),
        (tree.sharding(), Some(TreeNode::Parent(7))),
        (tree.triggers(), Some(TreeNode::Other)),
        (tree.trigger(id), Some(TreeNode::Trigger(id.to_owned()))),
        (tree.guarantee(), Some(TreeNode::Other)),
        (tree.started(), Some(TreeNode::StartedGate)),
        (tree.started().join(2).unwrap(), Some(TreeNode::StartedRegistration(2))),
        (tree.started_latch(), Some(TreeNode::Other)),
        (tree.completed(), Some(TreeNode::CompletedGate)),
        (tree.completed().join(2).unwrap(), Some(TreeNode::CompletedRegistration(2))),
        (tree.completed_latch(), Some(TreeNode::Other)),
        (tree.system_time(), Some(TreeNode::Other)),
        (tree.next_instance_ip(), Some(TreeNode::NextInstanceIp)),
        (tree.ledger().clone(), None),
        (tree.ledger_page(2), None),
        (tree.floor(), None),
        (tree.accepted_triggers(), None),
        (tree.accepted_trigger(RunId::triggered(7)), None),
        (tree.trigger_entry(RunId::triggered(7), 2), None),
        (tree.accepted_trigger(Cancellation::name(7)), None),
        (processes_path(&"shop".parse().unwrap()).unwrap(), None),
        (tree.process(&id.parse().unwrap()), None),
    ];
    nodes.extend(parts.map(|part| (tree.shard(2, part), Some(TreeNode::Shard(2, part)))));
    nodes.extend(tree.skeleton().into_iter().enumerate().map(|(index, path)| {
        let node = tree.node_at(&path);
        assert_eq!(node, Some(TreeNode::Parent(index)), "{path}");
        (path, node)
    }));
    nodes
}

#[test]
fn nodes_of_a_job_keep_their_paths() {
    let tree = JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap();
    let nodes = nodes(&tree);

    let paths: BTreeSet<&str> = nodes.iter().map(|(path, _)| path.as_str()).collect();
    let mut text = String::new();
    for path in paths {
        let _ = writeln!(text, "{path}");
    }
    golden!("registry-paths.txt", text);

    for (path, node) in nodes {
        assert_eq!(tree.node_at(&path), node, "{path}");
    }
}
