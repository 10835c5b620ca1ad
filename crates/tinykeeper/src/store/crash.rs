//! Crashes at every step: the process is killed, or the power goes and the disk keeps any part of
//! what was not synced yet. What was acknowledged must be there again, in order, and nothing else.

use std::{fs, path::Path};

use super::{
    platter::{Disk, Fate, Platter, Random, folder, name, read_in, written_out},
    tape::{self, Step},
    *,
};

type Record = (i64, Bytes);

#[test]
fn a_crash_at_any_step_loses_nothing_acknowledged() {
    for options in every_option() {
        let run = Run::of(&SCENARIO, options, None);
        for taken in 0..=run.steps.len() {
            for fate in fates(taken) {
                let disk = run.platter(taken).after(fate);
                let recovered = recover(&disk);

                run.check(&recovered, taken, fate, &format!("{options:?}, step {taken}"));
            }
        }
    }
}

#[test]
fn after_a_crash_at_any_step_one_bad_snapshot_costs_nothing() {
    let options = Options { fsync: true, preallocate: 0 };
    let run = Run::of(&SCENARIO, options, None);
    let mut damaged = 0;
    for taken in 0..=run.steps.len() {
        for fate in fates(taken) {
            let mut disk = run.platter(taken).after(fate);
            let newest = disk.iter_mut().rev().find(|(name, _)| {
                // Not one that is still being written.
                name.starts_with("snapshot.") && name.len() == "snapshot.".len() + 16
            });
            let Some((_, snapshot)) = newest else {
                continue;
            };
            snapshot[40] ^= 0x41;
            damaged += 1;
            let recovered = recover(&disk);

            run.check(&recovered, taken, fate, &format!("step {taken}, snapshot damaged"));
        }
    }
    assert!(damaged > 0, "no step leaves a snapshot");
}

#[test]
fn a_crash_during_recovery_loses_nothing_either() {
    let options = Options { fsync: true, preallocate: 200 };
    let run = Run::of(&SCENARIO, options, None);
    let (mut repairs, mut kept) = (0, 0);
    for taken in 0..=run.steps.len() {
        for fate in [Fate::Kill, Fate::PowerCut, Fate::Anything(taken as u64)] {
            let first = run.platter(taken).after(fate);
            let repair = recover(&first);
            for repaired in 0..repair.steps.len() {
                let mut platter = Platter::holding(&first);
                repair.steps[..repaired].iter().for_each(|step| platter.take(step));
                let second = platter.after(Fate::Anything((taken * 1000 + repaired) as u64));
                let recovered = recover(&second);

                run.check(&recovered, taken, fate, &format!("step {taken}, then {repaired}"));
                assert!(repair.kept.iter().all(|bytes| recovered.kept.contains(bytes)));
                repairs += 1;
                kept += repair.kept.len();
            }
        }
    }
    assert!(repairs > 0 && kept > 0, "{repairs} repairs cut short, {kept} torn ends");
}

#[test]
fn a_batch_cut_at_any_byte_is_whole_or_absent_and_its_bytes_are_kept() {
    let options = Options { fsync: true, preallocate: 0 };
    let run = Run::of(&SCENARIO, options, None);
    let mut batches = 0;
    for (taken, step) in run.steps.iter().enumerate() {
        let Step::Write { path, offset, bytes } = step else {
            continue;
        };
        if *offset == 0 || !name(path).starts_with("log.") {
            continue;
        }
        batches += 1;
        let before = run.acknowledged(taken);
        for cut in 0..=bytes.len() {
            let mut platter = run.platter(taken);
            let written = bytes[..cut].to_vec();
            platter.take(&Step::Write { path: path.clone(), offset: *offset, bytes: written });
            let dir = written_out(&platter.after(Fate::Kill));
            let (records, torn) = read(dir.path());

            let whole = cut == bytes.len();
            let expected = if whole { run.acknowledged(taken + 2) } else { before };
            assert_eq!(records, run.history[..expected], "step {taken} cut at {cut}");
            // A batch may end in zeros, which are not told from what was never written.
            let kept = bytes[..cut].iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
            if whole || kept == 0 {
                assert_eq!(torn, None);
            } else {
                let torn = torn.unwrap();
                assert_eq!((torn.offset, torn.bytes), (*offset, kept as u64));
                assert_eq!(fs::read(&torn.kept).unwrap(), bytes[..kept]);
                assert_eq!(name(&torn.log), name(path));
            }
        }
    }
    let commits = SCENARIO.iter().filter(|act| matches!(act, Act::Commit(_))).count();
    assert_eq!(batches, commits);
}

#[test]
fn a_failed_step_is_an_error_and_stops_the_store_but_loses_nothing() {
    for options in every_option() {
        let steps = Run::of(&SCENARIO, options, None).steps.len();
        let mut stopped = 0;
        for fail_at in 0..steps {
            let run = Run::of(&SCENARIO, options, Some(fail_at));
            stopped += usize::from(run.stopped);
            for fate in [Fate::Kill, Fate::PowerCut, Fate::Anything(fail_at as u64)] {
                let taken = run.steps.len();
                let recovered = recover(&run.platter(taken).after(fate));

                run.check(&recovered, taken, fate, &format!("{options:?}, failure {fail_at}"));
            }
        }
        assert!(stopped > 0 && stopped < steps);
    }
}

#[test]
fn many_lives_with_a_crash_each_lose_nothing() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let options = every_option()[random.below(2)];
        let mut disk = Disk::new();
        let mut history: Vec<Record> = Vec::new();
        for life in 0..12 {
            let script: Vec<Act> = (0..12).map(|_| Act::any(&mut random)).collect();
            let mut run = Run::new(options, None, written_out(&disk), life);
            run.live(&script);
            run.end();
            assert_eq!(run.history[..run.found], history, "seed {seed}, life {life}");

            let taken = random.below(run.steps.len() + 1);
            let fate = match random.below(3) {
                0 => Fate::Kill,
                1 => Fate::PowerCut,
                _ => Fate::Anything(random.next()),
            };
            let mut platter = Platter::holding(&disk);
            run.steps[..taken].iter().for_each(|step| platter.take(step));
            disk = platter.after(fate);
            let recovered = recover(&disk);
            run.check(&recovered, taken, fate, &format!("seed {seed}, life {life}, {taken}"));
            history = recovered.records;
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Commit(i64),
    /// Begins a snapshot of everything so far.
    Begin,
    /// Writes the snapshot that was begun.
    Write,
    Reopen,
}

impl Act {
    fn any(random: &mut Random) -> Act {
        match random.below(10) {
            0..=4 => Act::Commit(1 + random.below(4) as i64),
            5..=6 => Act::Begin,
            7..=8 => Act::Write,
            _ => Act::Reopen,
        }
    }
}

const SCENARIO: [Act; 22] = [
    Act::Commit(1),
    Act::Commit(3),
    Act::Begin,
    Act::Write,
    Act::Commit(2),
    Act::Reopen,
    Act::Commit(1),
    Act::Begin,
    Act::Commit(1),
    Act::Write,
    Act::Begin,
    Act::Reopen,
    Act::Commit(5),
    Act::Begin,
    Act::Write,
    Act::Commit(1),
    Act::Begin,
    Act::Commit(1),
    Act::Write,
    Act::Reopen,
    Act::Begin,
    Act::Write,
];

/// What a script did to the disk, and what it was told.
struct Run {
    dir: tempfile::TempDir,
    start: Disk,
    options: Options,
    life: usize,
    steps: Vec<Step>,
    /// Every record appended, in order, those found at the start included.
    history: Vec<Record>,
    found: usize,
    /// After how many steps how many records were acknowledged.
    acknowledgements: Vec<(usize, usize)>,
    stopped: bool,
}

impl Run {
    fn of(script: &[Act], options: Options, fail_at: Option<usize>) -> Run {
        let mut run = Run::new(options, fail_at, folder(), 0);
        run.live(script);
        run.end();
        run
    }

    fn new(options: Options, fail_at: Option<usize>, dir: tempfile::TempDir, life: usize) -> Run {
        let start = read_in(dir.path());
        tape::start(fail_at);
        Run {
            dir,
            start,
            options,
            life,
            steps: Vec::new(),
            history: Vec::new(),
            found: 0,
            acknowledgements: Vec::new(),
            stopped: false,
        }
    }

    /// Plays the script, or as much of it as succeeds.
    fn live(&mut self, script: &[Act]) {
        let Ok((mut store, recovered)) = Store::open(self.dir.path(), self.options) else {
            return;
        };
        self.history = all_records(&recovered);
        self.found = self.history.len();
        self.acknowledge();
        let mut writer = None;
        for act in script {
            match act {
                Act::Commit(records) => {
                    for _ in 0..*records {
                        let zxid = self.newest() + 1;
                        let payload = format!("{zxid} of life {}", self.life);
                        store.append(zxid, payload.as_bytes());
                        self.history.push((zxid, Bytes::from(payload)));
                    }
                    if store.commit().is_err() {
                        assert!(matches!(store.commit(), Err(Error::Stopped { .. })));
                        assert!(matches!(
                            store.begin_snapshot(1 << 40),
                            Err(Error::Stopped { .. })
                        ));
                        self.stopped = true;
                        return;
                    }
                    self.acknowledge();
                }
                Act::Begin => {
                    drop(writer.take());
                    let Ok(begun) = store.begin_snapshot(self.newest()) else {
                        assert!(matches!(store.commit(), Err(Error::Stopped { .. })));
                        self.stopped = true;
                        return;
                    };
                    writer = Some((begun, encode(&self.history)));
                }
                Act::Write => {
                    if let Some((writer, body)) = writer.take() {
                        // The store goes on without it.
                        let _ = writer.write(body.chunks(50));
                    }
                }
                Act::Reopen => {
                    drop(writer.take());
                    drop(store);
                    let Ok((reopened, recovered)) = Store::open(self.dir.path(), self.options)
                    else {
                        return;
                    };
                    assert_eq!(all_records(&recovered), self.history);
                    store = reopened;
                }
            }
        }
    }

    fn end(&mut self) {
        self.steps = tape::stop();
    }

    fn newest(&self) -> i64 {
        self.history.last().map_or(0, |(zxid, _)| *zxid)
    }

    fn acknowledge(&mut self) {
        self.acknowledgements.push((tape::recorded(), self.history.len()));
    }

    /// How many records were acknowledged when so many steps were taken.
    fn acknowledged(&self, taken: usize) -> usize {
        let earlier = self.acknowledgements.iter().take_while(|(steps, _)| *steps <= taken);
        earlier.last().map_or(0, |(_, records)| *records)
    }

    fn platter(&self, taken: usize) -> Platter {
        let mut platter = Platter::holding(&self.start);
        self.steps[..taken].iter().for_each(|step| platter.take(step));
        platter
    }

    fn check(&self, recovered: &Recovery, taken: usize, fate: Fate, when: &str) {
        let recovered = &recovered.records;
        let promised = self.options.fsync || matches!(fate, Fate::Kill);
        let least = if promised { self.acknowledged(taken) } else { 0 };
        assert!(recovered.len() >= least, "{when}, {fate:?}: {} of {least}", recovered.len());
        assert_eq!(recovered[..], self.history[..recovered.len()], "{when}, {fate:?}");
    }
}

struct Recovery {
    records: Vec<Record>,
    steps: Vec<Step>,
    /// What is in the files that keep torn ends.
    kept: Vec<Vec<u8>>,
}

/// Opens a folder with these files. Then writes to it, to see that it can be done, and that
/// everything is still there with the new.
fn recover(disk: &Disk) -> Recovery {
    let dir = written_out(disk);
    let options = Options { fsync: true, preallocate: 100 };
    tape::start(None);
    let (mut store, recovered) = Store::open(dir.path(), options).unwrap();
    let steps = tape::stop();
    let records = all_records(&recovered);
    let kept = read_in(dir.path()).into_iter().filter(|(name, _)| name.contains(".torn"));
    let kept = kept.map(|(_, bytes)| bytes).collect();

    tape::start(None);
    let zxid = records.last().map_or(0, |(zxid, _)| *zxid) + 1;
    store.append(zxid, b"one more");
    store.commit().unwrap();
    drop(store);
    let (expected, torn) = read(dir.path());
    assert_eq!(expected[..records.len()], records);
    assert_eq!(expected[records.len()..], [(zxid, Bytes::from_static(b"one more"))]);
    assert_eq!(torn, None);
    tape::stop();
    Recovery { records, steps, kept }
}

fn read(dir: &Path) -> (Vec<Record>, Option<TornTail>) {
    tape::start(None);
    let (_store, recovered) = Store::open(dir, Options::default()).unwrap();
    tape::stop();
    (all_records(&recovered), recovered.torn)
}

/// In these tests a snapshot is the list of the records up to it.
fn all_records(recovered: &Recovered) -> Vec<Record> {
    let mut records = Vec::new();
    if let Some((zxid, body)) = &recovered.snapshot {
        records = batch::records(body.clone(), 0).unwrap();
        assert_eq!(records.last().map_or(0, |(zxid, _)| *zxid), *zxid);
    }
    records.extend(recovered.records.iter().cloned());
    records
}

fn encode(records: &[Record]) -> Vec<u8> {
    let mut batch = Batch::default();
    for (zxid, payload) in records {
        batch.push(*zxid, payload);
    }
    batch.seal(0, 0)[batch::FRAME_LEN..].to_vec()
}

fn fates(seed: usize) -> [Fate; 4] {
    let any = |n| Fate::Anything((seed * 10 + n) as u64);
    [Fate::Kill, Fate::PowerCut, any(0), any(1)]
}

/// Without and with space allocated ahead, with and without waiting for the disk.
fn every_option() -> [Options; 4] {
    [(true, 0), (true, 200), (false, 0), (false, 200)]
        .map(|(fsync, preallocate)| Options { fsync, preallocate })
}
