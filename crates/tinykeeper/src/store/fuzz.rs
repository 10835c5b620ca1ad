//! Bytes that are not what was written: open fails, or answers a prefix of what was written. It
//! never panics, never invents, never reorders.

use std::{collections::BTreeMap, fs, path::Path};

use proptest::{prelude::*, test_runner::TestRunner};

use super::{
    files,
    platter::{Disk, folder, read_in, written_out},
    *,
};

type Record = (i64, Bytes);

/// What happens to one file.
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

    /// Does this to the `which`th file.
    fn befall(&self, disk: &mut Disk, which: usize) {
        let name = disk.keys().nth(which % disk.len()).unwrap().clone();
        let file = disk.get_mut(&name).unwrap();
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
                disk.remove(&name);
            }
        }
    }
}

#[test]
fn any_damage_is_an_error_or_leaves_a_prefix() {
    let written = [written(false), written(true)];
    let damages = prop::collection::vec((any::<usize>(), Damage::any()), 1..4);
    let case = (damages, any::<bool>());
    check(&case, |(damages, fsync)| {
        let (mut disk, history) = written[usize::from(fsync)].clone();
        for (which, damage) in damages {
            damage.befall(&mut disk, which);
        }

        if let Ok(records) = recovered(&disk) {
            prop_assert!(records.len() <= history.len());
            prop_assert_eq!(&records[..], &history[..records.len()]);
        }
        Ok(())
    });
}

#[test]
fn damage_to_the_last_batch_costs_that_batch_only() {
    let written = written(true);
    let allocated_ahead = 0..200_usize;
    check(&(Damage::any(), allocated_ahead), |(damage, zeros)| {
        let (mut disk, history) = written.clone();
        let (name, mut log) = last_log(&disk);
        let sound = log.len() - LAST_BATCH;
        log.resize(log.len() + zeros, 0);
        let mut tail = Disk::from([("tail".to_owned(), log.split_off(sound))]);
        damage.befall(&mut tail, 0);
        log.extend(tail.into_values().flatten());
        disk.insert(name, log);

        let records = recovered(&disk).unwrap();

        prop_assert!(records.len() >= history.len() - 1);
        prop_assert_eq!(&records[..], &history[..records.len()]);
        Ok(())
    });
}

#[test]
fn no_content_of_any_file_makes_open_panic() {
    let (sound, _) = written(true);
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    let files = prop::collection::btree_map(name(), bytes, 0..5);
    check(&(files, any::<bool>()), |(files, headed)| {
        let garbage = |(name, mut bytes): (String, Vec<u8>)| {
            if headed {
                // With a header that is right, the rest is looked at too.
                let (_, like) = sound.iter().find(|(other, _)| other[..3] == name[..3]).unwrap();
                bytes.splice(0..0, like[..header::HEADER_LEN].iter().copied());
            }
            (name, bytes)
        };
        let disk: Disk = files.into_iter().map(garbage).collect();

        if let Ok(records) = recovered(&disk) {
            prop_assert!(records.is_empty());
        }
        Ok(())
    });
}

#[test]
fn a_length_that_asks_for_more_than_the_file_has_is_not_allocated() {
    let dir = folder();
    let header = header::Header::new(header::Kind::Log, 0);
    // A frame with the right seal that claims a gigabyte.
    let mut sealed = Vec::new();
    sealed.extend_from_slice(&header.salt.to_be_bytes());
    sealed.extend_from_slice(&(header::HEADER_LEN as u64).to_be_bytes());
    sealed.extend_from_slice(&(batch::MAX_BODY as u32).to_be_bytes());
    sealed.extend_from_slice(&7_u32.to_be_bytes());
    let mut log = header.encode().to_vec();
    log.extend_from_slice(&sealed[16..]);
    log.extend_from_slice(&crc32fast::hash(&sealed).to_be_bytes());
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

/// The last batch of what is written below: frame, zxid, length, payload.
const LAST_BATCH: usize = batch::FRAME_LEN + 12 + 20;

/// Two snapshots, three logs from the older one on, and a last log with several batches.
fn written(fsync: bool) -> (Disk, Vec<Record>) {
    let dir = folder();
    let options = Options { fsync, preallocate: 0 };
    let mut history: Vec<Record> = Vec::new();
    tape::start(None);
    for life in 0..3 {
        let (mut store, _) = Store::open(dir.path(), options).unwrap();
        for batch in [3, 1, 1, 1] {
            for _ in 0..batch {
                let zxid = history.len() as i64 + 1;
                let payload = Bytes::from(format!("payload of {zxid:09}"));
                store.append(zxid, &payload);
                history.push((zxid, payload));
            }
            store.commit().unwrap();
            if life < 2 && batch == 3 {
                let zxid = history.len() as i64;
                store.begin_snapshot(zxid).unwrap().write([zxid.to_be_bytes()]).unwrap();
            }
        }
    }
    tape::stop();
    let mut disk = read_in(dir.path());
    disk.remove("lock");
    (disk, history)
}

fn last_log(disk: &Disk) -> (String, Vec<u8>) {
    let logs: BTreeMap<_, _> = disk.iter().filter(|(name, _)| name.starts_with("log.")).collect();
    let (name, log) = logs.into_iter().next_back().unwrap();
    (name.clone(), log.clone())
}

/// What open makes of these files; a snapshot stands for the records up to its zxid.
fn recovered(disk: &Disk) -> Result<Vec<Record>, Error> {
    let dir = written_out(disk);
    tape::start(None);
    let opened = Store::open(dir.path(), Options::default());
    tape::stop();
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
