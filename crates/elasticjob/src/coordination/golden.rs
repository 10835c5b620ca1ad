//! Golden tests of ledger pages, triggers and paths; `tests/golden/README.md` explains why. `tests/golden.rs` covers what nodes write as a whole.
//!
//! Values are spelled out field by field and enums variant by variant, so that an addition does not compile until it has a golden entry, too.

use std::{collections::BTreeSet, fmt::Write, iter::successors};

use jiff::Timestamp;
use testbed::golden;

use super::{
    ledger::{Page, State, TriggerDetails},
    tree::{JobTree, Part, Place, processes},
    trigger::{Ask, Trigger},
};
use crate::{job::RunId, registry::Path};

fn due() -> Timestamp {
    "2026-11-15T06:36:07Z".parse().unwrap()
}

fn lines(documents: &[Vec<u8>]) -> String {
    documents.iter().map(|document| String::from_utf8(document.clone()).unwrap() + "\n").collect()
}

#[test]
fn ledger_pages_are_stored_in_the_same_words() {
    let states = successors(Some(State::Fresh), |state| match state {
        State::Fresh => Some(State::Running),
        State::Running => Some(State::Done),
        State::Done => Some(State::Failed),
        State::Failed => Some(State::Lost),
        State::Lost => None,
    });
    let scheduled = states.map(|state| Page {
        run: Some(RunId::scheduled("settle".parse().unwrap(), due())),
        due_at: Some(due()),
        attempt: 2,
        owner: Some("10.0.0.7@-@4711-9f86d081".parse().unwrap()),
        state,
        asked: None,
    });
    let triggered = Page {
        run: Some(RunId::triggered(7)),
        due_at: Some(due()),
        attempt: 1,
        owner: Some("10.0.0.7@-@4711-9f86d081".parse().unwrap()),
        state: State::Running,
        asked: Some(Box::new(TriggerDetails {
            at: due(),
            parameter: Some("2026-11".to_owned()),
            by: Some("ann".to_owned()),
        })),
    };
    let pages: Vec<Page> = scheduled.chain([triggered, Page::default()]).collect();

    let written: Vec<Vec<u8>> = pages.iter().map(Page::to_bytes).collect();
    let stored = golden!("ledger.jsonl", lines(&written));

    let read: Vec<Page> = stored.lines().map(|line| Page::read(line.as_bytes()).unwrap()).collect();
    assert_eq!(read, pages);
}

#[test]
fn triggers_are_stored_in_the_same_words() {
    let triggers = successors(Some(Trigger::Run(Ask::default())), |trigger| match trigger {
        Trigger::Run(request) if *request == Ask::default() => Some(Trigger::Run(Ask {
            run: Some(RunId::triggered(7)),
            at: Some(due()),
            shards: BTreeSet::from([0, 2]),
            parameter: Some("2026-11".to_owned()),
            by: Some("ann".to_owned()),
        })),
        Trigger::Run(_) => Some(Trigger::Cancel(BTreeSet::from([0, 2]))),
        Trigger::Cancel(_) => None,
    });
    let triggers: Vec<Trigger> = triggers.collect();

    let written: Vec<Vec<u8>> = triggers.iter().map(Trigger::to_bytes).collect();
    let stored = golden!("trigger.jsonl", lines(&written));

    let read: Vec<Trigger> = stored.lines().map(|line| Trigger::read(line.as_bytes())).collect();
    assert_eq!(read, triggers);
}

/// Every path of a job with the node that it stands for; `None` for paths outside the job's root.
fn nodes(tree: &JobTree) -> Vec<(Path, Option<Place>)> {
    let id = "10.0.0.7@-@4711-9f86d081";
    let parts = successors(Some(Part::Itself), |part| match part {
        Part::Itself => Some(Part::Owner),
        Part::Owner => Some(Part::Running),
        Part::Running => Some(Part::Failover),
        Part::Failover => Some(Part::Failovering),
        Part::Failovering => Some(Part::Misfire),
        Part::Misfire => Some(Part::Disabled),
        Part::Disabled => None,
    });
    let mut nodes = vec![
        (tree.root().clone(), Some(Place::Root)),
        (tree.config(), Some(Place::Config)),
        (tree.servers(), Some(Place::Parent(0))),
        (tree.server("10.0.0.7"), Some(Place::Server("10.0.0.7".to_owned()))),
        (tree.instances(), Some(Place::Parent(1))),
        (tree.instance(id), Some(Place::Instance(id.to_owned()))),
        (tree.election_latch(), Some(Place::Other)),
        (tree.leader(), Some(Place::Leader)),
        (tree.necessary(), Some(Place::Necessary)),
        (tree.processing(), Some(Place::Processing)),
        (tree.failover_items(), Some(Place::Parent(6))),
        (tree.failover_item(2), Some(Place::FailoverItem(2))),
        (tree.failover_latch(), Some(Place::Other)),
        (tree.sharding(), Some(Place::Parent(7))),
        (tree.triggers(), Some(Place::Other)),
        (tree.trigger(id), Some(Place::Trigger(id.to_owned()))),
        (tree.guarantee(), Some(Place::Other)),
        (tree.started(), Some(Place::StartedGate)),
        (tree.started().join(2).unwrap(), Some(Place::StartedRegistration(2))),
        (tree.started_latch(), Some(Place::Other)),
        (tree.completed(), Some(Place::CompletedGate)),
        (tree.completed().join(2).unwrap(), Some(Place::CompletedRegistration(2))),
        (tree.completed_latch(), Some(Place::Other)),
        (tree.system_time(), Some(Place::Other)),
        (tree.next_instance_ip(), Some(Place::NextInstanceIp)),
        (tree.ledger().clone(), None),
        (tree.page(2), None),
        (processes(&"shop".parse().unwrap()).unwrap(), None),
        (tree.process(&id.parse().unwrap()), None),
    ];
    nodes.extend(parts.map(|part| (tree.shard(2, part), Some(Place::Shard(2, part)))));
    nodes.extend(tree.skeleton().into_iter().enumerate().map(|(index, path)| {
        let node = tree.place(&path);
        assert_eq!(node, Some(Place::Parent(index)), "{path}");
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
        assert_eq!(tree.place(&path), node, "{path}");
    }
}
