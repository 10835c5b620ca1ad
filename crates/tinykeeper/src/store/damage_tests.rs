//! Damaged, missing and foreign files: one test for each kind of damage that open must handle.

use std::{
    fs::{self, File},
    path::Path,
};

use super::{
    simulated_disk::temp_dir,
    tests::{change_byte, commit, expected, names, open, three_logs, with_snapshots},
    *,
};

#[test]
fn unreadable_snapshot_loses_nothing() {
    let dir = with_snapshots([10, 20, 30, 40, 50]);
    let newest = files::snapshot_path(dir.path(), 50);
    change_byte(&newest, 40);

    let (mut store, recovered) = open(dir.path());

    assert_eq!(recovered.snapshot.unwrap().0, 40);
    assert_eq!(recovered.records, expected(41..=51));
    assert!(files::with_suffix(&newest, "bad").exists() && !newest.exists());
    commit(&mut store, 52..=60);
    store.begin_snapshot(60).unwrap().write([b"sixty"]).unwrap();
    drop(store);
    assert_eq!(open(dir.path()).1.snapshot.unwrap().0, 60);
    // The next fallback needs the good snapshot before it, not the bad one.
    assert_eq!(
        names(dir.path(), "snapshot."),
        ["snapshot.0000000000000028", "snapshot.0000000000000032.bad", "snapshot.000000000000003c"]
    );
}

#[test]
fn without_a_readable_snapshot_the_logs_must_start_at_the_beginning() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=1);
    store.begin_snapshot(1).unwrap().write([b"one"]).unwrap();
    commit(&mut store, 2..=2);
    drop(store);
    change_byte(&files::snapshot_path(dir.path(), 1), 40);
    let (mut store, recovered) = open(dir.path());
    assert_eq!(recovered.records, expected(1..=2));

    for zxid in 3..=5 {
        commit(&mut store, zxid..=zxid);
        store.begin_snapshot(zxid).unwrap().write([b"more"]).unwrap();
    }
    drop(store);
    for zxid in 4..=5 {
        change_byte(&files::snapshot_path(dir.path(), zxid), 40);
    }
    let before = names(dir.path(), "");
    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    assert!(matches!(error, Error::Gap { follows: 4, reached: 0, .. }), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(names(dir.path(), ""), before);
}

#[test]
fn directory_with_only_unreadable_snapshots_is_not_an_empty_store() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    store.begin_snapshot(0).unwrap().write([b"the empty tree"]).unwrap();
    drop(store);
    change_byte(&files::snapshot_path(dir.path(), 0), 40);

    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    assert!(matches!(error, Error::UnreadableSnapshots { .. }), "{error}");
}

#[test]
fn missing_log_is_a_gap() {
    let dir = three_logs();
    fs::remove_file(files::log_path(dir.path(), 4)).unwrap();

    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    assert!(matches!(error, Error::Gap { follows: 6, reached: 3, .. }), "{error}");
    assert!(error.to_string().contains("log.0000000000000007"));
}

#[test]
fn truncated_log_is_a_gap_unless_it_is_the_last() {
    let dir = three_logs();
    let log = files::log_path(dir.path(), 4);
    let file = File::options().write(true).open(&log).unwrap();
    file.set_len(header::HEADER_LEN as u64).unwrap();

    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    assert!(matches!(error, Error::Gap { follows: 6, reached: 3, .. }), "{error}");
}

#[test]
fn damage_before_the_last_log_is_reported_with_a_working_hint() {
    let dir = three_logs();
    let log = files::log_path(dir.path(), 4);
    change_byte(&log, fs::metadata(&log).unwrap().len() - 1);

    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    let Error::Corrupt { path, offset, .. } = &error else { panic!("{error}") };
    assert_eq!(*path, log);
    let command = format!("truncate -s {offset} {}", log.display());
    assert!(error.hint().is_some_and(|hint| hint.contains(&command)), "{error}");
    fs::remove_file(files::log_path(dir.path(), 7)).unwrap();
    File::options().write(true).open(&log).unwrap().set_len(*offset).unwrap();
    let (mut store, recovered) = open(dir.path());
    assert_eq!(recovered.records, expected(1..=5));
    commit(&mut store, 6..=6);
    drop(store);
    assert_eq!(open(dir.path()).1.records, expected(1..=6));
}

#[test]
fn renamed_log_is_refused() {
    let dir = three_logs();
    fs::rename(files::log_path(dir.path(), 7), files::log_path(dir.path(), 9)).unwrap();

    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    assert!(matches!(error, Error::BadHeader { .. }), "{error}");
}

#[test]
fn newer_format_version_is_refused() {
    for path in [|dir: &Path| files::log_path(dir, 3), |dir: &Path| files::snapshot_path(dir, 2)] {
        let dir = temp_dir();
        let (mut store, _) = open(dir.path());
        for zxid in 1..=2 {
            commit(&mut store, zxid..=zxid);
            store.begin_snapshot(zxid).unwrap().write([b"snapshot"]).unwrap();
        }
        commit(&mut store, 3..=3);
        drop(store);
        let path = path(dir.path());
        let mut bytes = fs::read(&path).unwrap();
        bytes[11] = 9;
        fs::write(&path, bytes).unwrap();

        let error = Store::open(dir.path(), Options::default()).unwrap_err();

        assert!(matches!(error, Error::NewerVersion { found: 9, known: 1, .. }), "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()));
    }
}

#[test]
fn damage_before_a_later_commit_is_not_a_torn_tail() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=3);
    commit(&mut store, 4..=4);
    drop(store);
    let log = files::log_path(dir.path(), 1);
    let whole = fs::read(&log).unwrap();
    let first_batch = header::HEADER_LEN..batch_end(&whole, header::HEADER_LEN);

    for at in first_batch {
        change_byte(&log, at as u64);
        let error = Store::open(dir.path(), Options::default()).unwrap_err();
        assert!(matches!(error, Error::Corrupt { offset: 36, .. }), "byte {at}: {error}");
        fs::write(&log, &whole).unwrap();
    }

    assert_eq!(open(dir.path()).1.records, expected(1..=4));
}

#[test]
fn later_commit_is_found_across_read_windows() {
    // Large enough that the next frame crosses the windows in which the rest is read.
    for end in (1 << 16) - 14..(1 << 16) + 2 {
        let dir = temp_dir();
        let (mut store, _) = open(dir.path());
        store.append(1, &vec![0; end - batch::FRAME_HEADER_LEN - 12]);
        store.commit().unwrap();
        store.append(2, b"");
        store.commit().unwrap();
        drop(store);
        change_byte(&files::log_path(dir.path(), 1), header::HEADER_LEN as u64 + 100);

        let error = Store::open(dir.path(), Options::default()).unwrap_err();

        assert!(matches!(error, Error::Corrupt { offset: 36, .. }), "{end}: {error}");
    }
}

#[test]
fn without_fsync_damage_after_a_power_loss_is_a_torn_tail() {
    let dir = temp_dir();
    let options = Options { fsync: false, ..Options::default() };
    let (mut store, _) = Store::open(dir.path(), options).unwrap();
    for zxid in 1..=3 {
        commit(&mut store, zxid..=zxid);
    }
    drop(store);
    let log = files::log_path(dir.path(), 1);
    let second = batch_end(&fs::read(&log).unwrap(), header::HEADER_LEN);
    change_byte(&log, second as u64 + 3);

    let (_store, recovered) = Store::open(dir.path(), options).unwrap();

    assert_eq!(recovered.records, expected(1..=1));
    assert_eq!(recovered.torn.unwrap().offset, second as u64);
}

#[test]
fn large_torn_tail_is_saved_completely() {
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    commit(&mut store, 1..=1);
    let end = header::HEADER_LEN as u64 + store.since_snapshot().bytes;
    let payload: Vec<u8> = (1..200_000_u32).map(|n| (n % 255) as u8 + 1).collect();
    store.append(2, &payload);
    store.commit().unwrap();
    drop(store);
    let log = files::log_path(dir.path(), 1);
    change_byte(&log, end + 100);
    let written = fs::read(&log).unwrap();

    let (_store, recovered) = open(dir.path());

    assert_eq!(recovered.records, expected(1..=1));
    let torn = recovered.torn.unwrap();
    assert_eq!((torn.offset, torn.bytes), (end, written.len() as u64 - end));
    assert_eq!(fs::read(torn.saved_to).unwrap(), written[end as usize..]);
    assert_eq!(fs::read(log).unwrap(), written[..end as usize]);
}

#[test]
fn payload_is_never_mistaken_for_a_later_batch() {
    // The frames it contains would be valid at their position in a log with salt 0.
    let dir = temp_dir();
    let (mut store, _) = open(dir.path());
    let mut payload = Vec::new();
    for _ in 0..1000 {
        let mut inner = batch::Batch::default();
        inner.push(99, b"not mine");
        let offset = header::HEADER_LEN + batch::FRAME_HEADER_LEN + 12 + payload.len();
        payload.extend_from_slice(inner.encode(0, offset as u64));
    }
    store.append(1, &payload);
    store.commit().unwrap();
    drop(store);
    change_byte(&files::log_path(dir.path(), 1), header::HEADER_LEN as u64 + 20);

    let (_store, recovered) = open(dir.path());

    assert!(recovered.records.is_empty());
    assert!(recovered.torn.is_some());
}

#[test]
fn directory_in_place_of_a_file_is_an_error() {
    let dir = temp_dir();
    fs::create_dir(files::log_path(dir.path(), 1)).unwrap();

    let error = Store::open(dir.path(), Options::default()).unwrap_err();

    assert!(matches!(error, Error::Io { .. }), "{error}");
}

/// The end of the batch at `start` of a log.
fn batch_end(log: &[u8], start: usize) -> usize {
    start + batch::FRAME_HEADER_LEN + header::u32_at(log, start) as usize
}
