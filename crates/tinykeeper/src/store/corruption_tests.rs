//! Random corruption: open fails, or returns a prefix of the written records. It never panics, and never returns other records or
//! another order.

use std::{collections::BTreeMap, fs, path::Path};

use proptest::{prelude::*, test_runner::TestRunner};

use super::{
    files,
    simulated_disk::{Files, read_files, temp_dir, write_files},
    *,
};

type Record = (i64, Bytes);

/// Damage to one file.
#[derive(Debug, Clone)]
enum Damage {
    Flip { at: usize, bit: u8 },
    Overwrite { at: usize, bytes: Vec<u8> },
    Truncate { at: usize },
    Extend { bytes: Vec<u8> },
    Remove,
}

impl Damage {
    fn any() -> impl Strategy<Value = Damage> {
        let bytes = || prop::collection::vec(any::<u8>(), 1..100);
        let at = any::<usize>;
        prop_oneof![
            4 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
            2 => (at(), bytes()).prop_map(|(at, bytes)| Damage::Overwrite { at, bytes }),
            1 => (at(), 1..300_usize).prop_map(|(at, zeros)| {
                Damage::Overwrite { at, bytes: vec![0; zeros] }
            }),
            2 => at().prop_map(|at| Damage::Truncate { at }),
            1 => bytes().prop_map(|bytes| Damage::Extend { bytes }),
            1 => Just(Damage::Remove),
        ]
    }

    /// Applies the damage to file number `index`.
    fn apply_to(&self, files: &mut Files, index: usize) {
        let name = files.keys().nth(index % files.len()).unwrap().clone();
        let file = files.get_mut(&name).unwrap();
        let len = file.len().max(1);
        match self {
            _ if file.is_empty() => {}
            Damage::Flip { at, bit } => file[at % len] ^= 1 << bit,
            Damage::Overwrite { at, bytes } => {
                let start = at % len;
                let end = len.min(start + bytes.len());
                file[start..end].copy_from_slice(&bytes[..end - start]);
            }
            Damage::Truncate { at } => file.truncate(at % len),
            Damage::Extend { bytes } => file.extend_from_slice(bytes),
            Damage::Remove => {
                files.remove(&name);
            }
        }
    }
}

#[test]
fn any_damage_is_an_error_or_leaves_a_prefix_of_the_records() {
    let written = [written(false), written(true)];
    let damages = prop::collection::vec((any::<usize>(), Damage::any()), 1..4);
    let case = (damages, any::<bool>());
    check(&case, |(damages, fsync)| {
        let (mut contents, history) = written[usize::from(fsync)].clone();
        for (which, damage) in damages {
            damage.apply_to(&mut contents, which);
        }

        if let Ok(records) = recovered(&contents) {
            prop_assert!(records.len() <= history.len());
            prop_assert_eq!(&records[..], &history[..records.len()]);
        }
        Ok(())
    });
}

#[test]
fn damage_to_the_last_batch_loses_only_that_batch() {
    let written = written(true);
    let allocated_ahead = 0..200_usize;
    check(&(Damage::any(), allocated_ahead), |(damage, zeros)| {
        let (mut contents, history) = written.clone();
        let (name, mut log) = last_log(&contents);
        let intact = log.len() - LAST_BATCH;
        log.resize(log.len() + zeros, 0);
        let mut tail = Files::from([("tail".to_owned(), log.split_off(intact))]);
        damage.apply_to(&mut tail, 0);
        log.extend(tail.into_values().flatten());
        contents.insert(name, log);

        let records = recovered(&contents).unwrap();

        prop_assert!(records.len() >= history.len() - 1);
        prop_assert_eq!(&records[..], &history[..records.len()]);
        Ok(())
    });
}

#[test]
fn open_never_panics_on_arbitrary_file_contents() {
    let (intact, _) = written(true);
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    let files = prop::collection::btree_map(name(), bytes, 0..5);
    check(&(files, any::<bool>()), |(files, with_header)| {
        let garbage = |(name, mut bytes): (String, Vec<u8>)| {
            if with_header {
                // With a valid header, the rest of the file is read too.
                let (_, like) = intact.iter().find(|(other, _)| other[..3] == name[..3]).unwrap();
                bytes.splice(0..0, like[..header::HEADER_LEN].iter().copied());
            }
            (name, bytes)
        };
        let contents: Files = files.into_iter().map(garbage).collect();

        if let Ok(records) = recovered(&contents) {
            prop_assert!(records.is_empty());
        }
        Ok(())
    });
}

#[test]
fn length_beyond_the_file_is_not_allocated() {
    let dir = temp_dir();
    let header = header::Header::new(header::Kind::Log, 0);
    // A frame with a valid header crc and a length of a gigabyte.
    let mut hashed = Vec::new();
    hashed.extend_from_slice(&header.salt.to_be_bytes());
    hashed.extend_from_slice(&(header::HEADER_LEN as u64).to_be_bytes());
    hashed.extend_from_slice(&(batch::MAX_BODY as u32).to_be_bytes());
    hashed.extend_from_slice(&7_u32.to_be_bytes());
    let mut log = header.encode().to_vec();
    log.extend_from_slice(&hashed[16..]);
    log.extend_from_slice(&crc32fast::hash(&hashed).to_be_bytes());
    log.extend_from_slice(b"not a gigabyte");
    fs::write(files::log_path(dir.path(), 1), log).unwrap();

    let (_store, recovered) = Store::open(dir.path(), Options::default()).unwrap();

    assert!(recovered.records.is_empty());
    assert_eq!(recovered.torn.unwrap().bytes, 26);
}

fn check<S: Strategy>(cases: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..<_>::default() };
    if let Err(failure) = TestRunner::new(config).run(cases, test) {
        panic!("{failure}");
    }
}

fn name() -> impl Strategy<Value = String> {
    (any::<bool>(), 0..4_i64).prop_map(|(log, zxid)| {
        let path = if log { files::log_path } else { files::snapshot_path };
        path(Path::new(""), zxid).to_str().unwrap().to_owned()
    })
}

/// Length of the last batch that `written` writes: frame header, zxid, length, payload.
const LAST_BATCH: usize = batch::FRAME_HEADER_LEN + 12 + 20;

/// A store with two snapshots, three logs from the older one on, and several batches in the last log.
fn written(fsync: bool) -> (Files, Vec<Record>) {
    let dir = temp_dir();
    let options = Options { fsync, preallocate: 0 };
    let mut history: Vec<Record> = Vec::new();
    step_recorder::start(None);
    for generation in 0..3 {
        let (mut store, _) = Store::open(dir.path(), options).unwrap();
        for batch in [3, 1, 1, 1] {
            for _ in 0..batch {
                let zxid = history.len() as i64 + 1;
                let payload = Bytes::from(format!("payload of {zxid:09}"));
                store.append(zxid, &payload);
                history.push((zxid, payload));
            }
            store.commit().unwrap();
            if generation < 2 && batch == 3 {
                let zxid = history.len() as i64;
                store.begin_snapshot(zxid).unwrap().write([zxid.to_be_bytes()]).unwrap();
            }
        }
    }
    step_recorder::stop();
    let mut contents = read_files(dir.path());
    contents.remove("lock");
    (contents, history)
}

fn last_log(contents: &Files) -> (String, Vec<u8>) {
    let logs: BTreeMap<_, _> =
        contents.iter().filter(|(name, _)| name.starts_with("log.")).collect();
    let (name, log) = logs.into_iter().next_back().unwrap();
    (name.clone(), log.clone())
}

/// The records that open recovers from these files; a snapshot represents the records up to its zxid.
fn recovered(contents: &Files) -> Result<Vec<Record>, Error> {
    let dir = write_files(contents);
    step_recorder::start(None);
    let opened = Store::open(dir.path(), Options::default());
    step_recorder::stop();
    let (_store, recovered) = opened?;
    let mut records = Vec::new();
    if let Some((zxid, body)) = recovered.snapshot {
        assert_eq!(body, zxid.to_be_bytes().as_slice());
        let payload = |zxid| Bytes::from(format!("payload of {zxid:09}"));
        records.extend((1..=zxid).map(|zxid| (zxid, payload(zxid))));
    }
    records.extend(recovered.records);
    Ok(records)
}
