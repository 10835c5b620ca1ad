//! Tests of the model alone. `tests/differential.rs` compares it with a real ZooKeeper.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::wire::{
    Acl, AddWatchMode, AuthId, Code, Create, CreateMode, EventKind, Op, Perms, SetWatches,
    WatcherType,
};

const ALICE: i64 = 0x11;
const BOB: i64 = 0x22;

fn tree() -> Tree {
    let mut tree = Tree::new();
    tree.open_session(ALICE, 1000, Bytes::from_static(&[1; 16]), 1);
    tree.open_session(BOB, 1000, Bytes::from_static(&[2; 16]), 1);
    tree
}

fn caller(session: i64) -> Caller<'static> {
    Caller { session, ids: &[] }
}

fn create(path: &str, mode: CreateMode) -> Op {
    Op::Create(Create {
        path: path.into(),
        data: Some(Bytes::from_static(b"x")),
        acl: Acl::open(),
        mode,
        with_stat: true,
    })
}

fn set(path: &str) -> Op {
    Op::SetData { path: path.into(), data: Some(Bytes::from_static(b"y")), version: -1 }
}

fn delete(path: &str) -> Op {
    Op::Delete { path: path.into(), version: -1 }
}

fn write(tree: &mut Tree, ops: &[Op]) -> WriteResult {
    tree.write(caller(ALICE), ops, 10)
}

fn create_nodes(tree: &mut Tree, paths: &[&str]) {
    for path in paths {
        write(tree, &[create(path, CreateMode::Persistent)]).outcome.unwrap();
    }
}

fn events_of(written: &WriteResult) -> Vec<(u64, EventKind, &str)> {
    written.notifications.iter().map(|n| (n.watcher.0, n.kind, &*n.path)).collect()
}

#[test]
fn sequence_number_counts_every_child_ever_created() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/q", "/q/plain"]);
    write(&mut tree, &[delete("/q/plain")]).outcome.unwrap();

    let written = write(&mut tree, &[create("/q/n-", CreateMode::PersistentSequential)]);

    let OpResult::Created { path, stat } = &written.outcome.unwrap()[0] else {
        panic!("not created")
    };
    assert_eq!(path, "/q/n-0000000001");
    assert_eq!((stat.czxid, stat.version), (written.zxid, 0));
    let (children, stat) = tree.children(caller(ALICE), "/q", None).unwrap();
    assert_eq!((children.len(), stat.cversion), (1, 3));
}

#[test]
fn refused_operation_undoes_the_whole_multi() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/a", "/a/b", "/c"]);
    let before = tree.to_snapshot();

    let written = write(
        &mut tree,
        &[
            set("/a"),
            delete("/a/b"),
            create("/a/e", CreateMode::Ephemeral),
            create("/a/s-", CreateMode::PersistentSequential),
            delete("/c"),
            delete("/missing"),
        ],
    );

    assert_eq!(written.outcome, Err(Refusal { index: 5, code: Code::NO_NODE }));
    assert_eq!(tree.zxid(), written.zxid);
    assert_eq!(tree.to_snapshot()[8..], before[8..], "only the transaction number moved");
    assert!(tree.ephemerals(ALICE, "/").is_empty());
}

#[test]
fn closing_a_session_deletes_its_ephemerals_only() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/e"]);
    write(&mut tree, &[create("/e/a", CreateMode::Ephemeral)]).outcome.unwrap();
    tree.write(caller(BOB), &[create("/e/b", CreateMode::Ephemeral)], 10).outcome.unwrap();

    let below = write(&mut tree, &[create("/e/a/x", CreateMode::Persistent)]);
    tree.close_session(ALICE, 20);

    assert_eq!(below.outcome, Err(Refusal { index: 0, code: Code::NO_CHILDREN_FOR_EPHEMERALS }));
    assert_eq!(tree.children(caller(BOB), "/e", None).unwrap().0, ["b"]);
    let late = write(&mut tree, &[create("/e/late", CreateMode::Ephemeral)]);
    assert_eq!(late.outcome, Err(Refusal { index: 0, code: Code::SESSION_EXPIRED }));
}

#[test]
fn one_shot_watch_fires_once_and_persistent_watch_always() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/w"]);
    tree.data(caller(ALICE), "/w", Some(WatcherId(1))).unwrap();
    tree.add_watch("/w", WatcherId(2), AddWatchMode::Persistent);

    let first = write(&mut tree, &[set("/w")]);
    let second = write(&mut tree, &[set("/w")]);

    assert_eq!(
        events_of(&first),
        [(1, EventKind::NodeDataChanged, "/w"), (2, EventKind::NodeDataChanged, "/w")]
    );
    assert_eq!(events_of(&second), [(2, EventKind::NodeDataChanged, "/w")]);
}

#[test]
fn recursive_watch_sees_descendants_but_no_children_events() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/w"]);
    tree.add_watch("/w", WatcherId(1), AddWatchMode::PersistentRecursive);

    let written = write(
        &mut tree,
        &[
            create("/w/a", CreateMode::Persistent),
            create("/w/a/b", CreateMode::Persistent),
            set("/w/a"),
            delete("/w/a/b"),
        ],
    );

    assert_eq!(
        events_of(&written),
        [
            (1, EventKind::NodeCreated, "/w/a"),
            (1, EventKind::NodeCreated, "/w/a/b"),
            (1, EventKind::NodeDataChanged, "/w/a"),
            (1, EventKind::NodeDeleted, "/w/a/b"),
        ]
    );
    assert!(events_of(&write(&mut tree, &[create("/other", CreateMode::Persistent)])).is_empty());
}

#[test]
fn watcher_is_notified_once_per_event_even_if_several_watches_match() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/w", "/w/a"]);
    tree.data(caller(ALICE), "/w/a", Some(WatcherId(1))).unwrap();
    tree.children(caller(ALICE), "/w/a", Some(WatcherId(1))).unwrap();
    tree.add_watch("/w", WatcherId(1), AddWatchMode::PersistentRecursive);
    tree.children(caller(ALICE), "/w", Some(WatcherId(1))).unwrap();

    let written = write(&mut tree, &[delete("/w/a")]);

    assert_eq!(
        events_of(&written),
        [(1, EventKind::NodeDeleted, "/w/a"), (1, EventKind::NodeChildrenChanged, "/w")]
    );
    assert_eq!(tree.watch_count(), (1, 1, 1), "only the recursive watch is left");
}

#[test]
fn refused_multi_fires_no_watch() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/w"]);
    tree.data(caller(ALICE), "/w", Some(WatcherId(1))).unwrap();

    let refused = write(&mut tree, &[set("/w"), delete("/missing")]);
    let done = write(&mut tree, &[set("/w")]);

    assert!(events_of(&refused).is_empty());
    assert_eq!(events_of(&done), [(1, EventKind::NodeDataChanged, "/w")]);
}

#[test]
fn set_watches_reports_events_missed_meanwhile() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/same", "/changed", "/parent"]);
    let seen = tree.zxid();
    write(&mut tree, &[set("/changed"), create("/parent/new", CreateMode::Persistent)])
        .outcome
        .unwrap();

    let missed = tree.set_watches(
        WatcherId(1),
        &SetWatches {
            relative_zxid: seen,
            data: vec!["/same".into(), "/changed".into(), "/gone".into()],
            exist: vec!["/parent/new".into(), "/never".into()],
            child: vec!["/parent".into(), "/same".into()],
            ..SetWatches::default()
        },
    );

    let missed: Vec<_> = missed.iter().map(|n| (n.kind, &*n.path)).collect();
    assert_eq!(
        missed,
        [
            (EventKind::NodeDataChanged, "/changed"),
            (EventKind::NodeDeleted, "/gone"),
            (EventKind::NodeCreated, "/parent/new"),
            (EventKind::NodeChildrenChanged, "/parent"),
        ]
    );
    assert!(tree.has_watch("/never", WatcherId(1), WatcherType::Data));
}

#[test]
fn removing_a_watch_twice_fails_the_second_time() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/w"]);
    tree.add_watch("/w", WatcherId(1), AddWatchMode::Persistent);
    tree.data(caller(ALICE), "/w", Some(WatcherId(1))).unwrap();

    assert!(tree.remove_watch("/w", WatcherId(1), WatcherType::Persistent));
    assert!(!tree.remove_watch("/w", WatcherId(1), WatcherType::Persistent));
    assert!(tree.has_watch("/w", WatcherId(1), WatcherType::Data));
    tree.remove_watcher(WatcherId(1));
    assert_eq!(tree.watch_count(), (0, 0, 0));
}

#[test]
fn container_is_swept_after_its_last_child_but_not_before_its_first() {
    let mut tree = tree();
    write(&mut tree, &[create("/c", CreateMode::Container)]).outcome.unwrap();
    assert!(tree.sweep(100).is_empty(), "never had a child");
    create_nodes(&mut tree, &["/c/x"]);
    assert!(tree.sweep(100).is_empty(), "has a child");
    write(&mut tree, &[delete("/c/x")]).outcome.unwrap();

    assert_eq!(tree.sweep(100).len(), 1);
    assert_eq!(tree.exists("/c", None), Err(Code::NO_NODE));
}

#[test]
fn ttl_node_is_swept_when_unchanged_for_its_ttl() {
    let mut tree = tree();
    write(&mut tree, &[create("/t", CreateMode::PersistentTtl(50))]).outcome.unwrap();

    assert!(tree.sweep(60).is_empty());
    assert_eq!(tree.sweep(61).len(), 1);
}

#[test]
fn unreadable_node_is_refused_as_not_authorised_not_as_absent() {
    let mut tree = tree();
    let jane = [AuthId::digest("jane:secret")];
    let owned = Op::Create(Create {
        path: "/mine".into(),
        data: None,
        acl: Acl::creator_all(),
        mode: CreateMode::Persistent,
        with_stat: false,
    });
    tree.write(Caller { session: ALICE, ids: &jane }, &[owned], 1).outcome.unwrap();
    tree.add_watch("/mine", WatcherId(1), AddWatchMode::PersistentRecursive);

    let stranger = caller(BOB);
    assert_eq!(tree.data(stranger, "/mine", None).unwrap_err(), Code::NO_AUTH);
    assert_eq!(tree.children(stranger, "/mine", None).unwrap_err(), Code::NO_AUTH);
    assert_eq!(tree.acl(stranger, "/mine").unwrap_err(), Code::NO_AUTH);
    let refused = tree.write(stranger, &[set("/mine")], 2).outcome;
    assert_eq!(refused, Err(Refusal { index: 0, code: Code::NO_AUTH }));
    let written = tree.write(Caller { session: ALICE, ids: &jane }, &[set("/mine")], 2);
    let acl = written.notifications[0].acl.as_deref().expect("an access list to check");
    assert!(!is_allowed(acl, Perms::READ, &[]) && is_allowed(acl, Perms::READ, &jane));
}

#[test]
fn password_is_valid_only_for_its_session() {
    let tree = tree();

    assert!(tree.is_valid_session(ALICE, &[1; 16]));
    assert!(!tree.is_valid_session(ALICE, &[2; 16]));
    assert!(!tree.is_valid_session(ALICE, &[]));
    assert!(!tree.is_valid_session(0x33, &[1; 16]));
}

fn any_op() -> impl Strategy<Value = Op> {
    let path = prop::sample::select(vec!["/a", "/b", "/a/x", "/a/y", "/a/x/z", "/b/x"]);
    let mode = prop::sample::select(vec![
        CreateMode::Persistent,
        CreateMode::Ephemeral,
        CreateMode::PersistentSequential,
        CreateMode::EphemeralSequential,
        CreateMode::Container,
    ]);
    prop_oneof![
        4 => (path.clone(), mode).prop_map(|(path, mode)| create(path, mode)),
        2 => path.clone().prop_map(set),
        2 => path.clone().prop_map(delete),
        1 => (path, -1..3).prop_map(|(path, version)| Op::Check { path: path.into(), version }),
    ]
}

proptest! {
    #[test]
    fn replay_of_all_transactions_gives_the_same_tree(
        writes in prop::collection::vec((any::<bool>(), prop::collection::vec(any_op(), 1..4)), 1..40)
    ) {
        let mut tree = tree();
        let mut copy = Tree::from_snapshot(tree.to_snapshot()).unwrap();
        let mut frozen = Vec::new();
        for (alice, ops) in writes {
            frozen.push((tree.freeze(), tree.to_snapshot()));
            let session = if alice { ALICE } else { BOB };
            let written = tree.write(caller(session), &ops, 5);
            if let Some(transaction) = written.transaction {
                let mut bytes = bytes::BytesMut::new();
                transaction.encode(&mut bytes);
                copy.replay(&Transaction::decode(bytes.freeze()).unwrap()).unwrap();
            }
            copy.raise_zxid(written.zxid);
        }
        let end = tree.close_session(BOB, 6);
        copy.replay(&end.transaction.unwrap()).unwrap();

        prop_assert_eq!(tree.to_snapshot(), copy.to_snapshot());
        let again = Tree::from_snapshot(tree.to_snapshot()).unwrap();
        prop_assert_eq!(again.to_snapshot(), tree.to_snapshot());
        prop_assert_eq!(again.data_bytes(), tree.data_bytes());
        for (frozen, before) in frozen {
            prop_assert_eq!(frozen.to_snapshot(), before);
        }
    }

    #[test]
    fn decoding_arbitrary_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Tree::from_snapshot(Bytes::from(bytes.clone()));
        let _ = Transaction::decode(Bytes::from(bytes));
    }
}

#[test]
fn frozen_tree_does_not_see_later_changes() {
    let mut tree = tree();
    create_nodes(&mut tree, &["/a", "/a/b", "/c", "/d"]);
    let before = tree.to_snapshot();

    let frozen = tree.freeze();
    write(&mut tree, &[set("/a")]);
    write(&mut tree, &[create("/a/b/new", CreateMode::Ephemeral)]);
    write(&mut tree, &[delete("/c")]);
    write(&mut tree, &[set("/d"), delete("/d"), delete("/missing")]);
    tree.close_session(BOB, 9);

    assert_eq!(frozen.to_snapshot(), before);
    assert_ne!(tree.to_snapshot(), before);
}

/// Measures time: `make test` runs it while nothing else runs.
mod alone {
    use std::time::Instant;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "measures time")]
    fn tree_of_160_000_nodes_is_frozen_within_50_ms() {
        // Code that is not optimised is about four times slower.
        let limit_ms = if cfg!(debug_assertions) { 200 } else { 50 };
        for width in [400, 16_000] {
            let mut tree = tree();
            for parent in 0..160_000 / width {
                let parent = format!("/job-{parent}");
                create_nodes(&mut tree, &[&parent]);
                for child in 0..width {
                    let path = format!("{parent}/shard-{child}");
                    create_nodes(&mut tree, &[&path]);
                }
            }

            let mut stalls = Vec::new();
            for _ in 0..5 {
                let start = Instant::now();
                let frozen = tree.freeze();
                // The first change of a node copies it, with the names of its children.
                create_nodes(&mut tree, &["/job-0/new"]);
                stalls.push(start.elapsed());
                drop(frozen);
                write(&mut tree, &[delete("/job-0/new")]);
            }

            // Other load on this machine delays some of them.
            stalls.sort_unstable();
            assert!(stalls[0].as_millis() < limit_ms, "{width} children: {stalls:?}");
        }
    }
}
