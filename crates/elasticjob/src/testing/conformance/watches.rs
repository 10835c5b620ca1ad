//! Guarantees about watches.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    create_path,
    sessions::expire,
    test_server::{TestClient, TestServer},
    within_timeout,
};
use crate::registry::{Create, Digest, Event, ExpectedVersion, Op, Path, Watch, Zxid};

/// Reads a snapshot as a set of paths.
async fn snapshot(watch: &mut Watch) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    loop {
        match within_timeout("a snapshot", watch.next()).await.expect("the watch is open") {
            Event::Init => found.clear(),
            Event::InitApply { path, .. } => {
                found.insert(path);
            }
            Event::InitDone => return found,
            // A change from before the gap.
            Event::Apply { .. } | Event::Delete { .. } => {}
        }
    }
}

/// The paths after a gap: the snapshot, and changes that the client's server did not know yet when the snapshot was read.
async fn paths_after_gap(client: &TestClient, watch: &mut Watch) -> BTreeSet<Path> {
    let mut found = snapshot(watch).await;
    client.registry.sync().await.unwrap();
    while let Some(event) = watch.try_next() {
        match event {
            Event::Apply { path } => found.insert(path),
            Event::Delete { path } => found.remove(&path),
            other => panic!("unexpected second snapshot: {other:?}"),
        };
    }
    found
}

async fn next_changes(watch: &mut Watch, count: usize) -> Vec<Event> {
    let mut changes = Vec::new();
    while changes.len() < count {
        changes.push(within_timeout("a change", watch.next()).await.expect("the watch is open"));
    }
    changes
}

/// A node that the watcher may not read is in the snapshot: it exists. What is below it is unknown.
pub async fn snapshot_contains_nodes_that_may_not_be_read(server: &dyn TestServer) {
    let client = server.join("watch-closed", None).await;
    let base = create_path(&client, "watched").await;
    let jane = Digest { user: "jane".into(), password: "right".into() };
    let jane = server.join("watch-closed", Some(jane)).await;
    let closed = base.join("closed").unwrap();
    for path in [&closed, &closed.join("below").unwrap()] {
        jane.registry.create(Create::persistent(path, "")).await.unwrap();
    }

    let mut watch = client.registry.watch(&base).await.unwrap();

    assert_eq!(snapshot(&mut watch).await, BTreeSet::from([base, closed]));
}

/// A watch reports every existing node, then every change, once each and in order.
pub async fn watch_gives_a_snapshot_then_each_change_once_in_order(server: &dyn TestServer) {
    let (client, other) = (server.join("watch", None).await, server.join("watch", None).await);
    let base = create_path(&client, "watched").await;
    let [a, b, c] = ["a", "a/b", "c"].map(|name| base.join(name).unwrap());
    for path in [&a, &b] {
        other.registry.create(Create::persistent(path, "")).await.unwrap();
    }
    // A server that learns of these nodes only after the watch is set would report them again.
    client.registry.sync().await.unwrap();

    let mut watch = client.registry.watch(&base).await.unwrap();
    assert!(!watch.is_current());
    assert_eq!(snapshot(&mut watch).await, BTreeSet::from([base.clone(), a.clone(), b.clone()]));
    assert!(watch.is_current());

    let apply = |path: &Path| Event::Apply { path: path.clone() };
    let delete = |path: &Path| Event::Delete { path: path.clone() };
    other.registry.set(&b, "1".into(), ExpectedVersion::Any).await.unwrap();
    let session = other.registry.session().id();
    other
        .registry
        .multi(vec![
            Op::Create(Create::ephemeral(&c, "", session)),
            Op::Delete { path: b.clone(), expected: ExpectedVersion::Any },
            Op::Set { path: a.clone(), data: "2".into(), expected: ExpectedVersion::Any },
        ])
        .await
        .unwrap();
    client.registry.delete(&a, ExpectedVersion::Any).await.unwrap();
    other.registry.close().await;

    let changes = next_changes(&mut watch, 6).await;
    assert_eq!(changes, [apply(&b), apply(&c), delete(&b), apply(&a), delete(&a), delete(&c)]);
    client.registry.sync().await.unwrap();
    assert_eq!(watch.try_next(), None, "exactly once");
}

/// Changes during a connection loss are in the snapshot that follows.
pub async fn watch_restarts_after_a_connection_loss(server: &dyn TestServer) {
    let (client, other) = (server.join("rewatch", None).await, server.join("rewatch", None).await);
    let base = create_path(&client, "rewatched").await;
    let [before, during, after] =
        ["before", "during", "after"].map(|name| base.join(name).unwrap());
    client.registry.create(Create::persistent(&before, "")).await.unwrap();
    let mut watch = client.registry.watch(&base).await.unwrap();
    snapshot(&mut watch).await;

    client.link.cut().await;
    other.registry.create(Create::persistent(&during, "")).await.unwrap();
    other.registry.delete(&before, ExpectedVersion::Any).await.unwrap();
    client.link.heal().await;

    let found = paths_after_gap(&client, &mut watch).await;
    assert_eq!(found, BTreeSet::from([base.clone(), during]));
    assert!(watch.is_current());
    other.registry.create(Create::persistent(&after, "")).await.unwrap();
    assert_eq!(next_changes(&mut watch, 1).await, [Event::Apply { path: after }]);
}

/// A watch outlives its session: in the new session it begins with a snapshot.
pub async fn watch_restarts_after_session_expiry(server: &dyn TestServer) {
    let (client, other) = (server.join("relife", None).await, server.join("relife", None).await);
    let base = create_path(&other, "relife").await;
    let mine = base.join("mine").unwrap();
    let session = client.registry.session().id();
    client.registry.create(Create::ephemeral(&mine, "", session)).await.unwrap();
    let mut watch = client.registry.watch(&base).await.unwrap();
    assert_eq!(snapshot(&mut watch).await, BTreeSet::from([base.clone(), mine]));

    expire(&client, &other).await;

    assert_eq!(paths_after_gap(&client, &mut watch).await, BTreeSet::from([base.clone()]));
    let after = base.join("after").unwrap();
    other.registry.create(Create::persistent(&after, "")).await.unwrap();
    assert_eq!(next_changes(&mut watch, 1).await, [Event::Apply { path: after }]);
}

/// When a client's write is answered, its watch already has every change that was committed before it.
pub async fn write_is_also_a_sync_under_concurrent_writers(server: &dyn TestServer) {
    const WRITERS: usize = 3;
    const OWN_WRITES: usize = 150;
    let client = server.join("write-is-sync", None).await;
    let base = create_path(&client, "write-is-sync").await;
    let mine = base.join("mine").unwrap();
    client.registry.create(Create::persistent(&mine, "")).await.unwrap();
    let mut watch = client.registry.watch(&base).await.unwrap();
    snapshot(&mut watch).await;
    let stop = Arc::new(AtomicBool::new(false));
    let written: Arc<Mutex<Vec<(Zxid, Path)>>> = Arc::default();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let other = server.join("write-is-sync", None).await;
        let (stop, written, base) = (Arc::clone(&stop), Arc::clone(&written), base.clone());
        writers.spawn(async move {
            // Moves the whole client, because its connection must live as long as it writes.
            let other = other;
            let mut turn = 0;
            while !stop.load(Ordering::Relaxed) {
                let path = base.join(format!("w{writer}-{turn}")).unwrap();
                let committed = other.registry.create(Create::persistent(&path, "")).await.unwrap();
                written.lock().unwrap().push((committed.zxid, path));
                turn += 1;
            }
        });
    }

    let mut seen = BTreeSet::new();
    let mut observed = Vec::new();
    for turn in 0..OWN_WRITES {
        let committed = client
            .registry
            .set(&mine, format!("{turn}").into(), ExpectedVersion::Any)
            .await
            .unwrap();
        // No await in between: a change that is not here now came too late.
        while let Some(event) = watch.try_next() {
            if let Event::Apply { path } = event {
                seen.insert(path);
            }
        }
        observed.push((committed.zxid, seen.len(), seen.clone()));
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }

    let written = written.lock().unwrap();
    assert!(written.len() > WRITERS, "the writers wrote nothing, so nothing was tested");
    for (zxid, _, seen) in &observed {
        for (_, path) in written.iter().filter(|(earlier, _)| earlier < zxid) {
            assert!(
                seen.contains(path),
                "{path} was committed before {zxid} and is not in the watch"
            );
        }
    }
    let (first, last) = (observed.first().unwrap().1, observed.last().unwrap().1);
    assert!(last > first, "the writers wrote before or after, not during");
}
