//! Promises about watches.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    ground::{Ground, Member},
    place,
    sessions::expire,
    soon,
};
use crate::registry::{Create, Event, Expected, Op, Path, Watch, Zxid};

/// A snapshot as a set of paths.
async fn snapshot(watch: &mut Watch) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    loop {
        match soon("a snapshot", watch.next()).await.expect("open") {
            Event::Init => found.clear(),
            Event::InitApply { path, .. } => {
                found.insert(path);
            }
            Event::InitDone => return found,
            // Left over from before the gap.
            Event::Apply { .. } | Event::Delete { .. } => {}
        }
    }
}

/// What is there after a gap: the snapshot, and what the member's server had not heard yet when it was walked.
async fn picture(member: &Member, watch: &mut Watch) -> BTreeSet<Path> {
    let mut found = snapshot(watch).await;
    member.registry.sync().await.unwrap();
    while let Some(event) = watch.try_next() {
        match event {
            Event::Apply { path } => found.insert(path),
            Event::Delete { path } => found.remove(&path),
            other => panic!("a second snapshot: {other:?}"),
        };
    }
    found
}

async fn next_changes(watch: &mut Watch, count: usize) -> Vec<Event> {
    let mut changes = Vec::new();
    while changes.len() < count {
        changes.push(soon("a change", watch.next()).await.expect("open"));
    }
    changes
}

/// First everything that is there, then everything that changes, once each and in order.
pub async fn a_watch_is_a_snapshot_and_then_every_change_in_order_exactly_once(
    ground: &dyn Ground,
) {
    let (member, other) = (ground.join("watch", None).await, ground.join("watch", None).await);
    let base = place(&member, "watched").await;
    let [a, b, c] = ["a", "a/b", "c"].map(|name| base.join(name).unwrap());
    for path in [&a, &b] {
        other.registry.create(Create::persistent(path, "")).await.unwrap();
    }
    // A server that hears of them only after the watch is set tells them once more.
    member.registry.sync().await.unwrap();

    let mut watch = member.registry.watch(&base).await.unwrap();
    assert!(!watch.is_current());
    assert_eq!(snapshot(&mut watch).await, BTreeSet::from([base.clone(), a.clone(), b.clone()]));
    assert!(watch.is_current());

    let apply = |path: &Path| Event::Apply { path: path.clone() };
    let delete = |path: &Path| Event::Delete { path: path.clone() };
    other.registry.set(&b, "1".into(), Expected::Any).await.unwrap();
    let session = other.registry.session().id();
    other
        .registry
        .multi(vec![
            Op::Create(Create::ephemeral(&c, "", session)),
            Op::Delete { path: b.clone(), expected: Expected::Any },
            Op::Set { path: a.clone(), data: "2".into(), expected: Expected::Any },
        ])
        .await
        .unwrap();
    member.registry.delete(&a, Expected::Any).await.unwrap();
    other.registry.close().await;

    let changes = next_changes(&mut watch, 6).await;
    assert_eq!(changes, [apply(&b), apply(&c), delete(&b), apply(&a), delete(&a), delete(&c)]);
    member.registry.sync().await.unwrap();
    assert_eq!(watch.try_next(), None, "exactly once");
}

/// What changed while the line was cut is in the snapshot that follows.
pub async fn a_watch_starts_over_after_a_cut(ground: &dyn Ground) {
    let (member, other) = (ground.join("rewatch", None).await, ground.join("rewatch", None).await);
    let base = place(&member, "rewatched").await;
    let [before, during, after] =
        ["before", "during", "after"].map(|name| base.join(name).unwrap());
    member.registry.create(Create::persistent(&before, "")).await.unwrap();
    let mut watch = member.registry.watch(&base).await.unwrap();
    snapshot(&mut watch).await;

    member.line.cut().await;
    other.registry.create(Create::persistent(&during, "")).await.unwrap();
    other.registry.delete(&before, Expected::Any).await.unwrap();
    member.line.heal().await;

    let found = picture(&member, &mut watch).await;
    assert_eq!(found, BTreeSet::from([base.clone(), during]));
    assert!(watch.is_current());
    other.registry.create(Create::persistent(&after, "")).await.unwrap();
    assert_eq!(next_changes(&mut watch, 1).await, [Event::Apply { path: after }]);
}

/// A watch outlives its session: the new one begins with a snapshot.
pub async fn a_watch_starts_over_after_an_expiry(ground: &dyn Ground) {
    let (member, other) = (ground.join("relife", None).await, ground.join("relife", None).await);
    let base = place(&other, "relife").await;
    let mine = base.join("mine").unwrap();
    let session = member.registry.session().id();
    member.registry.create(Create::ephemeral(&mine, "", session)).await.unwrap();
    let mut watch = member.registry.watch(&base).await.unwrap();
    assert_eq!(snapshot(&mut watch).await, BTreeSet::from([base.clone(), mine]));

    expire(&member, &other).await;

    assert_eq!(picture(&member, &mut watch).await, BTreeSet::from([base.clone()]));
    let after = base.join("after").unwrap();
    other.registry.create(Create::persistent(&after, "")).await.unwrap();
    assert_eq!(next_changes(&mut watch, 1).await, [Event::Apply { path: after }]);
}

/// When my write is answered, every change committed before it is in my watch already.
pub async fn a_write_is_also_a_sync_under_concurrent_writers(ground: &dyn Ground) {
    const WRITERS: usize = 3;
    const OWN_WRITES: usize = 150;
    let member = ground.join("write-is-sync", None).await;
    let base = place(&member, "write-is-sync").await;
    let mine = base.join("mine").unwrap();
    member.registry.create(Create::persistent(&mine, "")).await.unwrap();
    let mut watch = member.registry.watch(&base).await.unwrap();
    snapshot(&mut watch).await;
    let stop = Arc::new(AtomicBool::new(false));
    let written: Arc<Mutex<Vec<(Zxid, Path)>>> = Arc::default();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let other = ground.join("write-is-sync", None).await;
        let (stop, written, base) = (Arc::clone(&stop), Arc::clone(&written), base.clone());
        writers.spawn(async move {
            // The whole member: its line must live as long as it writes.
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
    let mut pictures = Vec::new();
    for turn in 0..OWN_WRITES {
        let committed =
            member.registry.set(&mine, format!("{turn}").into(), Expected::Any).await.unwrap();
        // Without awaiting anything in between: what is not here now came too late.
        while let Some(event) = watch.try_next() {
            if let Event::Apply { path } = event {
                seen.insert(path);
            }
        }
        pictures.push((committed.zxid, seen.len(), seen.clone()));
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }

    let written = written.lock().unwrap();
    assert!(written.len() > WRITERS, "nobody wrote: nothing was shown");
    for (zxid, _, seen) in &pictures {
        for (_, path) in written.iter().filter(|(earlier, _)| earlier < zxid) {
            assert!(seen.contains(path), "{path} was committed before {zxid} and not seen by then");
        }
    }
    let (first, last) = (pictures.first().unwrap().1, pictures.last().unwrap().1);
    assert!(last > first, "the writers wrote before or after, not during");
}
