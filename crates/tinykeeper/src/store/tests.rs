//! The store's guarantees to the server, one test each. Crashes are in `crash_tests`, damage in `damage_tests` and
//! `corruption_tests`.

use std::{fs, path::Path};

use super::{simulated_disk::temp_dir, *};

#[test]
fn new_directory_is_created_with_its_parents_and_empty() {
    let dir = temp_dir();
    let nested = dir.path().join("a/b");

    let (store, recovered) = Store::open(&nested, Options::default()).unwrap();

    assert!(recovered.snapshot.is_none() && recovered.records.is_empty());
    assert_eq!(recovered.torn, None);
    assert_eq!(store.since_snapshot(), Backlog::default());
}

#[test]
fn committed_records_survive_and_uncommitted_ones_do_not() {
    for options in all_options() {
        // On a real disk, with real syncs.
        let dir = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(dir.path(), options).unwrap();
        commit(&mut store, 1..=3);
        commit(&mut store, 4..=4);
        store.append(5, b"never committed");
        drop(store);

        let (_store, recovered) = Store::open(dir.path(), options).unwrap();

        assert_eq!(recovered.records, expected(1..=4));
        assert_eq!(recovered.torn, None);
    }
}

#[test]
fn records_continue_across_reopened_stores() {
    let dir = temp_dir();
    for generation in 0..5 {
        let (mut store, recovered) = open(dir.path());
        assert_eq!(recovered.records, expected(1..=generation * 3));

        commit(&mut store, generation * 3 + 1..=generation * 3 + 2);
        commit(&mut store, generation * 3 + 3..=generation * 3 + 3);
    }

    assert_eq!(open(dir.path()).0.since_snapshot().logs, 5);
    assert_eq!(names(dir.path(), "log.").len(), 5);
}

#[test]
fn store_without_commits_leaves_no_log() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());

    store.commit().unwrap();
    drop(store);

    assert_eq!(names(dir.path(), ""), ["lock"]);
}

#[test]
fn payloads_may_be_empty_large_or_zero() {
    let dir = temp_dir();
    let large = vec![0xa5; 40 << 20];
    let (mut store, _) = open(dir.path());
    store.append(1, b"");
    store.append(2, &[0; 100]);
    store.commit().unwrap();
    store.append(3, &large);
    store.commit().unwrap();
    store.append(i64::MAX, b"last");
    store.commit().unwrap();
    drop(store);

    let (_store, recovered) = open(dir.path());

    let payloads: Vec<&[u8]> = recovered.records.iter().map(|(_, payload)| &payload[..]).collect();
    assert_eq!(payloads, [b"".as_slice(), &[0; 100], &large, b"last"]);
}

#[test]
fn log_is_preallocated_and_trimmed_when_closed() {
    let dir = temp_dir();
    let options = Options { fsync: true, preallocate: 4096 };
    let (mut store, _) = Store::open(dir.path(), options).unwrap();
    let log = files::log_path(dir.path(), 1);

    commit(&mut store, 1..=1);
    assert_eq!(fs::metadata(&log).unwrap().len(), 4096);
    commit(&mut store, 2..=400);
    let grown = fs::metadata(&log).unwrap().len();
    let used = header::HEADER_LEN as u64 + store.since_snapshot().bytes;
    drop(store);

    assert!(grown >= used && used > 4096, "{grown} {used}");
    assert_eq!(fs::metadata(&log).unwrap().len(), used);
}

#[test]
fn unclosed_log_is_trimmed_when_opened() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=1);
    let used = header::HEADER_LEN as u64 + store.since_snapshot().bytes;
    let copy = temp_dir();
    let log = files::log_path(copy.path(), 1);
    fs::copy(files::log_path(dir.path(), 1), &log).unwrap();

    let (_store, recovered) = open(copy.path());

    assert_eq!(recovered.records, expected(1..=1));
    assert_eq!(recovered.torn, None);
    assert_eq!(fs::metadata(&log).unwrap().len(), used);
}

#[test]
fn log_is_trimmed_when_a_snapshot_begins() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=1);
    let used = header::HEADER_LEN as u64 + store.since_snapshot().bytes;

    let _writer = store.begin_snapshot(1).unwrap();

    assert_eq!(fs::metadata(files::log_path(dir.path(), 1)).unwrap().len(), used);
}

#[test]
fn second_open_fails_and_names_the_process_that_holds_the_lock() {
    let dir = temp_dir();
    let (store, _) = open(dir.path());

    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    let own = std::process::id();
    assert!(matches!(error, Error::Locked { holder: Some(pid), .. } if pid == own), "{error}");
    assert!(error.to_string().contains(dir.path().to_str().unwrap()) && error.hint().is_some());
    drop(store);
    open(dir.path());
}

#[test]
fn snapshot_replaces_the_records_up_to_it() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=10);
    let writer = store.begin_snapshot(10).unwrap();
    assert_eq!(store.since_snapshot(), Backlog::default());
    commit(&mut store, 11..=12);
    writer.write([b"ten ".as_slice(), b"", b"records"]).unwrap();
    commit(&mut store, 13..=13);
    let backlog = store.since_snapshot();
    drop(store);

    let (store, recovered) = open(dir.path());

    assert_eq!(recovered.snapshot, Some((10, Bytes::from_static(b"ten records"))));
    assert_eq!(recovered.records, expected(11..=13));
    assert_eq!(store.since_snapshot(), backlog);
    assert_eq!((backlog.records, backlog.logs), (3, 1));
}

#[test]
fn snapshot_may_be_written_by_another_thread_in_any_chunks() {
    let dir = temp_dir();
    let chunks: Vec<Bytes> =
        [0, 1, 1000, 1 << 18, 3, (1 << 18) + 1, 5].map(|n| Bytes::from(vec![n as u8; n])).into();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=1);
    let writer = store.begin_snapshot(1).unwrap();

    let written = chunks.clone();
    std::thread::spawn(move || writer.write(written)).join().unwrap().unwrap();
    drop(store);

    let (_, recovered) = open(dir.path());
    assert_eq!(recovered.snapshot.unwrap().1, chunks.concat());
}

#[test]
fn records_appended_before_a_snapshot_are_committed_with_it() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    append(&mut store, 1..=5);

    let writer = store.begin_snapshot(3).unwrap();
    commit(&mut store, 6..=6);
    writer.write([b"three"]).unwrap();
    drop(store);

    assert_eq!(names(dir.path(), "log."), ["log.0000000000000001", "log.0000000000000006"]);
    let (_store, recovered) = open(dir.path());
    assert_eq!(recovered.snapshot.unwrap().0, 3);
    assert_eq!(recovered.records, expected(4..=6));
}

#[test]
fn dropped_or_failed_snapshot_changes_nothing() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=2);
    drop(store.begin_snapshot(2).unwrap());
    commit(&mut store, 3..=3);
    let writer = store.begin_snapshot(3).unwrap();
    // A directory has the name of the file.
    let obstacle = files::with_suffix(&files::snapshot_path(dir.path(), 3), "tmp");
    fs::create_dir(&obstacle).unwrap();

    let error = writer.write([b"three"]).unwrap_err();
    fs::remove_dir(&obstacle).unwrap();
    commit(&mut store, 4..=4);
    drop(store);

    assert!(matches!(error, Error::Io { action: "create", .. }), "{error}");
    let (_store, recovered) = open(dir.path());
    assert!(recovered.snapshot.is_none());
    assert_eq!(recovered.records, expected(1..=4));
}

#[test]
fn second_snapshot_is_refused_while_one_is_in_progress() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=1);
    let writer = store.begin_snapshot(1).unwrap();

    let error = store.begin_snapshot(1).unwrap_err();

    assert!(matches!(error, Error::SnapshotInProgress { .. }), "{error}");
    commit(&mut store, 2..=2);
    writer.write([b"one"]).unwrap();
    store.begin_snapshot(2).unwrap().write([b"two"]).unwrap();
}

#[test]
fn snapshot_writer_keeps_the_directory_locked_after_the_store_is_dropped() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=1);
    let writer = store.begin_snapshot(1).unwrap();
    drop(store);

    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    assert!(matches!(error, Error::Locked { .. }), "{error}");
    writer.write([b"one"]).unwrap();
    assert_eq!(open(dir.path()).1.snapshot.unwrap().0, 1);
}

#[test]
fn two_snapshots_and_the_logs_since_the_older_are_kept() {
    let dir = with_snapshots([10, 20, 30, 40, 50]);

    assert_eq!(
        names(dir.path(), ""),
        [
            "lock",
            "log.0000000000000029", // 41..=50
            "log.0000000000000033", // 51..=51
            "snapshot.0000000000000028",
            "snapshot.0000000000000032",
        ]
    );
}

#[test]
fn log_without_records_does_not_break_the_chain() {
    let dir = three_logs();
    // Created for a batch that began with zxid 99, which was lost.
    drop(log::Log::create(dir.path(), 99, 7, Options::default()).unwrap());

    let (mut store, recovered) = open(dir.path());
    assert_eq!(recovered.records, expected(1..=7));
    commit(&mut store, 8..=8);
    drop(store);

    assert_eq!(open(dir.path()).1.records, expected(1..=8));
}

#[test]
fn zxid_out_of_order_never_reaches_the_disk() {
    let dir = temp_dir();
    for wrong in [2, 1, 0, -1, i64::MIN] {
        let (mut store, _) = open(dir.path());
        if store.newest < 2 {
            commit(&mut store, 1..=2);
        }
        store.append(wrong, b"wrong");

        let error = store.commit().unwrap_err();

        assert!(matches!(error, Error::OutOfOrder { newest: 2, .. }), "{error}");
        assert!(matches!(store.commit(), Err(Error::Stopped { .. })));
    }
    assert_eq!(open(dir.path()).1.records, expected(1..=2));
}

#[test]
fn stopped_store_reports_the_cause_and_refuses_writes() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=1);
    append(&mut store, 2..=2);

    step_recorder::start(Some(1));
    let first = store.commit().unwrap_err();
    step_recorder::stop();
    append(&mut store, 3..=3);
    let second = store.commit().unwrap_err();
    let third = store.begin_snapshot(1).unwrap_err();

    assert!(matches!(first, Error::Io { action: "sync", .. }), "{first}");
    let cause = std::error::Error::source(&first).unwrap().to_string();
    for error in [second, third] {
        assert!(matches!(error, Error::Stopped { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("cannot sync") && message.contains(&cause), "{message}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn record_older_than_the_snapshot_is_refused() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=2);
    store.begin_snapshot(100).unwrap().write([b"up to 100"]).unwrap();
    store.append(50, b"would not be replayed");
    assert!(matches!(store.commit(), Err(Error::OutOfOrder { newest: 100, .. })));
    drop(store);

    let (mut store, _) = open(dir.path());
    store.append(50, b"would not be replayed");
    assert!(matches!(store.commit(), Err(Error::OutOfOrder { newest: 100, .. })));
    drop(store);

    let (mut store, _) = open(dir.path());
    assert!(matches!(store.begin_snapshot(99), Err(Error::OutOfOrder { newest: 100, .. })));
    commit(&mut store, 101..=101);
    drop(store);

    let (_store, recovered) = open(dir.path());
    assert_eq!(recovered.snapshot.unwrap().0, 100);
    assert_eq!(recovered.records, expected(101..=101));
}

#[test]
fn records_survive_the_loss_of_a_snapshot_ahead_of_them() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=2);
    store.begin_snapshot(100).unwrap().write([b"up to 100"]).unwrap();
    commit(&mut store, 101..=101);
    drop(store);
    drop(open(dir.path()));
    change_byte(&files::snapshot_path(dir.path(), 100), 40);

    let (_store, recovered) = open(dir.path());

    assert_eq!(recovered.records, [expected(1..=2), expected(101..=101)].concat());
}

#[test]
fn foreign_files_are_left_alone() {
    let dir = three_logs();
    let notes = ["notes.txt", "log", "log.bak", "snapshot.1", "log.0000000000000004.orig"];
    for name in notes {
        fs::write(dir.path().join(name), "mine").unwrap();
    }
    fs::write(dir.path().join("log.0000000000000063.tmp"), "half").unwrap();

    let (mut store, recovered) = open(dir.path());
    for zxid in 8..=10 {
        commit(&mut store, zxid..=zxid);
        store.begin_snapshot(zxid).unwrap().write([b"snapshot"]).unwrap();
    }

    assert_eq!(recovered.records, expected(1..=7));
    assert!(notes.iter().all(|name| dir.path().join(name).exists()));
    assert!(!dir.path().join("log.0000000000000063.tmp").exists());
}

fn all_options() -> [Options; 4] {
    [(true, 0), (true, 1 << 20), (false, 0), (false, 1 << 20)]
        .map(|(fsync, preallocate)| Options { fsync, preallocate })
}

/// Three logs: 1..=3 in two batches, 4..=6 in two batches, 7.
pub(super) fn three_logs() -> tempfile::TempDir {
    let dir = temp_dir();
    for batches in [&[1..=2, 3..=3][..], &[4..=5, 6..=6], &[7..=7]] {
        let (mut store, _) = open(dir.path());
        for zxids in batches {
            commit(&mut store, zxids.clone());
        }
    }
    dir
}

/// Snapshots at these zxids, each begun before and written after the next record's commit.
pub(super) fn with_snapshots(zxids: [i64; 5]) -> tempfile::TempDir {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    let mut next = 1;
    for zxid in zxids {
        commit(&mut store, next..=zxid);
        next = zxid + 2;
        let writer = store.begin_snapshot(zxid).unwrap();
        commit(&mut store, zxid + 1..=zxid + 1);
        writer.write([b"snapshot"]).unwrap();
    }
    drop(store);
    dir
}

pub(super) fn open(dir: &Path) -> (Store, Recovery) {
    Store::open(dir, Options::default()).unwrap()
}

fn append(store: &mut Store, zxids: std::ops::RangeInclusive<i64>) {
    for (zxid, payload) in expected(zxids) {
        store.append(zxid, &payload);
    }
}

pub(super) fn commit(store: &mut Store, zxids: std::ops::RangeInclusive<i64>) {
    append(store, zxids);
    store.commit().unwrap();
}

pub(super) fn expected(zxids: std::ops::RangeInclusive<i64>) -> Vec<(i64, Bytes)> {
    zxids.map(|zxid| (zxid, Bytes::from(format!("payload of {zxid}")))).collect()
}

pub(super) fn names(dir: &Path, prefix: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    names
}

pub(super) fn change_byte(path: &Path, at: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at as usize] ^= 0x41;
    fs::write(path, bytes).unwrap();
}
