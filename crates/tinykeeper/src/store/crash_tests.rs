//! Crashes at every step: the process is killed, or power is lost and the disk keeps any part of the unsynced data. Acknowledged
//! records must survive, in order, and no others may appear.

use std::{fs, path::Path};

use super::{
    simulated_disk::{
        Crash, Files, Random, SimulatedDisk, name, read_files, temp_dir, write_files,
    },
    step_recorder::{self, Step},
    *,
};

type Record = (i64, Bytes);

#[test]
fn crash_at_any_step_loses_no_acknowledged_record() {
    for options in all_options() {
        let run = Run::of(&SCENARIO, options, None);
        for taken in 0..=run.steps.len() {
            for crash in crashes(taken) {
                let files = run.disk_after(taken).files_after(crash);
                let recovered = recover(&files);

                run.check(&recovered, taken, crash, &format!("{options:?}, step {taken}"));
            }
        }
    }
}

#[test]
fn damaged_snapshot_after_a_crash_at_any_step_loses_nothing() {
    let options = Options { fsync: true, preallocate: 0 };
    let run = Run::of(&SCENARIO, options, None);
    let mut damaged = 0;
    for taken in 0..=run.steps.len() {
        for crash in crashes(taken) {
            let mut files = run.disk_after(taken).files_after(crash);
            let newest = files.iter_mut().rev().find(|(name, _)| {
                // Without unfinished ones.
                name.starts_with("snapshot.") && name.len() == "snapshot.".len() + 16
            });
            let Some((_, snapshot)) = newest else {
                continue;
            };
            snapshot[40] ^= 0x41;
            damaged += 1;
            let recovered = recover(&files);

            run.check(&recovered, taken, crash, &format!("step {taken}, snapshot damaged"));
        }
    }
    assert!(damaged > 0, "no step leaves a snapshot");
}

#[test]
fn crash_during_recovery_loses_nothing() {
    let options = Options { fsync: true, preallocate: 200 };
    let run = Run::of(&SCENARIO, options, None);
    let (mut repairs, mut saved) = (0, 0);
    for taken in 0..=run.steps.len() {
        for crash in [Crash::Kill, Crash::PowerLoss, Crash::Partial(taken as u64)] {
            let first = run.disk_after(taken).files_after(crash);
            let repair = recover(&first);
            for repaired in 0..repair.steps.len() {
                let mut disk = SimulatedDisk::with_files(&first);
                repair.steps[..repaired].iter().for_each(|step| disk.apply(step));
                let second = disk.files_after(Crash::Partial((taken * 1000 + repaired) as u64));
                let recovered = recover(&second);

                run.check(&recovered, taken, crash, &format!("step {taken}, then {repaired}"));
                assert!(repair.saved.iter().all(|bytes| recovered.saved.contains(bytes)));
                repairs += 1;
                saved += repair.saved.len();
            }
        }
    }
    assert!(repairs > 0 && saved > 0, "{repairs} repairs interrupted, {saved} torn tails");
}

#[test]
fn batch_truncated_at_any_byte_is_absent_and_its_bytes_are_saved() {
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
            let mut disk = run.disk_after(taken);
            let written = bytes[..cut].to_vec();
            disk.apply(&Step::Write { path: path.clone(), offset: *offset, bytes: written });
            let dir = write_files(&disk.files_after(Crash::Kill));
            let (records, torn) = read(dir.path());

            let whole = cut == bytes.len();
            let expected = if whole { run.acknowledged(taken + 2) } else { before };
            assert_eq!(records, run.history[..expected], "step {taken} cut at {cut}");
            // A batch may end in zeros, which cannot be distinguished from unwritten space.
            let saved = bytes[..cut].iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
            if whole || saved == 0 {
                assert_eq!(torn, None);
            } else {
                let torn = torn.unwrap();
                assert_eq!((torn.offset, torn.bytes), (*offset, saved as u64));
                assert_eq!(fs::read(&torn.saved_to).unwrap(), bytes[..saved]);
                assert_eq!(name(&torn.log), name(path));
            }
        }
    }
    let commits = SCENARIO.iter().filter(|action| matches!(action, Action::Commit(_))).count();
    assert_eq!(batches, commits);
}

#[test]
fn failed_step_stops_the_store_but_loses_nothing() {
    for options in all_options() {
        let steps = Run::of(&SCENARIO, options, None).steps.len();
        let mut stopped = 0;
        for fail_at in 0..steps {
            let run = Run::of(&SCENARIO, options, Some(fail_at));
            stopped += usize::from(run.stopped);
            for crash in [Crash::Kill, Crash::PowerLoss, Crash::Partial(fail_at as u64)] {
                let taken = run.steps.len();
                let recovered = recover(&run.disk_after(taken).files_after(crash));

                run.check(&recovered, taken, crash, &format!("{options:?}, failure {fail_at}"));
            }
        }
        assert!(stopped > 0 && stopped < steps);
    }
}

#[test]
fn repeated_crashes_of_random_scenarios_lose_nothing() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let options = all_options()[random.below(2)];
        let mut files = Files::new();
        let mut history: Vec<Record> = Vec::new();
        for generation in 0..12 {
            let script: Vec<Action> = (0..12).map(|_| Action::any(&mut random)).collect();
            let mut run = Run::new(options, None, write_files(&files), generation);
            run.play(&script);
            run.end();
            assert_eq!(run.history[..run.found], history, "seed {seed}, generation {generation}");

            let taken = random.below(run.steps.len() + 1);
            let crash = match random.below(3) {
                0 => Crash::Kill,
                1 => Crash::PowerLoss,
                _ => Crash::Partial(random.next()),
            };
            let mut disk = SimulatedDisk::with_files(&files);
            run.steps[..taken].iter().for_each(|step| disk.apply(step));
            files = disk.files_after(crash);
            let recovered = recover(&files);
            run.check(
                &recovered,
                taken,
                crash,
                &format!("seed {seed}, generation {generation}, {taken}"),
            );
            history = recovered.records;
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Commit(i64),
    /// Begins a snapshot of everything so far.
    Begin,
    /// Writes the snapshot that was begun.
    Write,
    Reopen,
}

impl Action {
    fn any(random: &mut Random) -> Action {
        match random.below(10) {
            0..=4 => Action::Commit(1 + random.below(4) as i64),
            5..=6 => Action::Begin,
            7..=8 => Action::Write,
            _ => Action::Reopen,
        }
    }
}

const SCENARIO: [Action; 22] = [
    Action::Commit(1),
    Action::Commit(3),
    Action::Begin,
    Action::Write,
    Action::Commit(2),
    Action::Reopen,
    Action::Commit(1),
    Action::Begin,
    Action::Commit(1),
    Action::Write,
    Action::Begin,
    Action::Reopen,
    Action::Commit(5),
    Action::Begin,
    Action::Write,
    Action::Commit(1),
    Action::Begin,
    Action::Commit(1),
    Action::Write,
    Action::Reopen,
    Action::Begin,
    Action::Write,
];

/// A run of a script: its steps on disk, its records and their acknowledgements.
struct Run {
    dir: tempfile::TempDir,
    start: Files,
    options: Options,
    generation: usize,
    steps: Vec<Step>,
    /// Every record appended, in order, including those found at the start.
    history: Vec<Record>,
    found: usize,
    /// Number of steps, and number of records acknowledged after them.
    acknowledged_after: Vec<(usize, usize)>,
    stopped: bool,
}

impl Run {
    fn of(script: &[Action], options: Options, fail_at: Option<usize>) -> Run {
        let mut run = Run::new(options, fail_at, temp_dir(), 0);
        run.play(script);
        run.end();
        run
    }

    fn new(
        options: Options,
        fail_at: Option<usize>,
        dir: tempfile::TempDir,
        generation: usize,
    ) -> Run {
        let start = read_files(dir.path());
        step_recorder::start(fail_at);
        Run {
            dir,
            start,
            options,
            generation,
            steps: Vec::new(),
            history: Vec::new(),
            found: 0,
            acknowledged_after: Vec::new(),
            stopped: false,
        }
    }

    /// Runs the script until its end or the first error.
    fn play(&mut self, script: &[Action]) {
        let Ok((mut store, recovered)) = Store::open(self.dir.path(), self.options) else {
            return;
        };
        self.history = all_records(&recovered);
        self.found = self.history.len();
        self.acknowledge();
        let mut writer = None;
        for act in script {
            match act {
                Action::Commit(records) => {
                    for _ in 0..*records {
                        let zxid = self.newest() + 1;
                        let payload = format!("{zxid} of generation {}", self.generation);
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
                Action::Begin => {
                    drop(writer.take());
                    let Ok(begun) = store.begin_snapshot(self.newest()) else {
                        assert!(matches!(store.commit(), Err(Error::Stopped { .. })));
                        self.stopped = true;
                        return;
                    };
                    writer = Some((begun, encode(&self.history)));
                }
                Action::Write => {
                    if let Some((writer, body)) = writer.take() {
                        // A failed snapshot does not stop the store.
                        let _ = writer.write(body.chunks(50));
                    }
                }
                Action::Reopen => {
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
        self.steps = step_recorder::stop();
    }

    fn newest(&self) -> i64 {
        self.history.last().map_or(0, |(zxid, _)| *zxid)
    }

    fn acknowledge(&mut self) {
        self.acknowledged_after.push((step_recorder::recorded(), self.history.len()));
    }

    /// Number of records acknowledged after `taken` steps.
    fn acknowledged(&self, taken: usize) -> usize {
        let earlier = self.acknowledged_after.iter().take_while(|(steps, _)| *steps <= taken);
        earlier.last().map_or(0, |(_, records)| *records)
    }

    fn disk_after(&self, taken: usize) -> SimulatedDisk {
        let mut disk = SimulatedDisk::with_files(&self.start);
        self.steps[..taken].iter().for_each(|step| disk.apply(step));
        disk
    }

    fn check(&self, recovered: &RecoveredStore, taken: usize, crash: Crash, when: &str) {
        let recovered = &recovered.records;
        let promised = self.options.fsync || matches!(crash, Crash::Kill);
        let least = if promised { self.acknowledged(taken) } else { 0 };
        assert!(recovered.len() >= least, "{when}, {crash:?}: {} of {least}", recovered.len());
        assert_eq!(recovered[..], self.history[..recovered.len()], "{when}, {crash:?}");
    }
}

struct RecoveredStore {
    records: Vec<Record>,
    steps: Vec<Step>,
    /// The contents of the files with saved torn tails.
    saved: Vec<Vec<u8>>,
}

/// Opens a directory with these files, then writes to it and opens it again, to check that the old and new records are there.
fn recover(files: &Files) -> RecoveredStore {
    let dir = write_files(files);
    let options = Options { fsync: true, preallocate: 100 };
    step_recorder::start(None);
    let (mut store, recovered) = Store::open(dir.path(), options).unwrap();
    let steps = step_recorder::stop();
    let records = all_records(&recovered);
    let saved = read_files(dir.path()).into_iter().filter(|(name, _)| name.contains(".torn"));
    let saved = saved.map(|(_, bytes)| bytes).collect();

    step_recorder::start(None);
    let zxid = records.last().map_or(0, |(zxid, _)| *zxid) + 1;
    store.append(zxid, b"one more");
    store.commit().unwrap();
    drop(store);
    let (expected, torn) = read(dir.path());
    assert_eq!(expected[..records.len()], records);
    assert_eq!(expected[records.len()..], [(zxid, Bytes::from_static(b"one more"))]);
    assert_eq!(torn, None);
    step_recorder::stop();
    RecoveredStore { records, steps, saved }
}

fn read(dir: &Path) -> (Vec<Record>, Option<TornTail>) {
    step_recorder::start(None);
    let (_store, recovered) = Store::open(dir, Options::default()).unwrap();
    step_recorder::stop();
    (all_records(&recovered), recovered.torn)
}

/// In these tests a snapshot is the list of the records up to it.
fn all_records(recovered: &Recovery) -> Vec<Record> {
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
    batch.encode(0, 0)[batch::FRAME_HEADER_LEN..].to_vec()
}

fn crashes(seed: usize) -> [Crash; 4] {
    let any = |n| Crash::Partial((seed * 10 + n) as u64);
    [Crash::Kill, Crash::PowerLoss, any(0), any(1)]
}

/// With and without fsync, with and without preallocation.
fn all_options() -> [Options; 4] {
    [(true, 0), (true, 200), (false, 0), (false, 200)]
        .map(|(fsync, preallocate)| Options { fsync, preallocate })
}
