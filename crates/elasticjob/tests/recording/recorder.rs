//! What the recorder promises, whatever its sinks do.

use std::{collections::HashMap, fs, path::Path, sync::Arc, time::Duration};

use elasticjob::{
    history::{
        AttemptId, Ended, Ending, Event, Line, Printed, Recorder, Recording, Sink, Source, Started,
        Worth,
    },
    job::{FencingToken, Fire, Job, Shard},
    runtime::{Clock, SystemRandomness, Tasks},
    testing::ManualClock,
};
use jiff::Timestamp;

use crate::shelf::{Mood, Shelf, pass};

const SECOND: Duration = Duration::from_secs(1);

fn shard(number: i64) -> Shard {
    let job = Job::named("settle").unwrap();
    let due_at = Timestamp::from_second(1_773_828_000 + number).unwrap();
    let fire = Fire::scheduled(job.name.clone(), due_at);
    let task = "settle@-@0@-@READY@-@10.0.0.7@-@4711".parse().unwrap();
    Shard::of(&job, &fire, task, 0, FencingToken::new(number))
}

fn begin(number: i64) -> Arc<Started> {
    let shard = shard(number);
    Arc::new(Started::of(&shard, Source::Schedule, "host".into(), shard.due_at))
}

/// A whole attempt: it begins, prints and ends.
pub(crate) fn attempt(number: i64, ending: Ending) -> [Event; 3] {
    let (shard, started) = (shard(number), begin(number));
    let line = Line { at: started.at, stream: "stdout", text: format!("line of {number}") };
    let printed = Printed {
        id: AttemptId::of(&shard),
        run: shard.run.clone(),
        item: 0,
        part: 0,
        lines: vec![line],
    };
    let ended = Ended { started: Arc::clone(&started), at: started.at, ending };
    [Event::Started(started), Event::Printed(printed), Event::Ended(ended)]
}

struct Bench {
    clock: ManualClock,
    tasks: Tasks,
    recording: Recording,
}

impl Bench {
    fn of(recorder: Recorder) -> Self {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let mut tasks = Tasks::new();
        let recording = recorder.start(
            &(Arc::new(clock.clone()) as Arc<dyn Clock>),
            &(Arc::new(SystemRandomness) as _),
            &mut tasks,
        );
        Self { clock, tasks, recording }
    }

    fn attempts(&self, numbers: std::ops::Range<i64>) -> Vec<Event> {
        let events: Vec<Event> = numbers.flat_map(|number| attempt(number, Ending::Done)).collect();
        for event in &events {
            self.recording.record(event.clone());
        }
        events
    }

    async fn pass(&self, span: Duration) {
        pass(&self.clock, span).await;
    }

    /// Stops as a node does.
    async fn stop(self) -> Recording {
        self.recording.close(10 * SECOND);
        assert!(self.tasks.finish(12 * SECOND).await, "it ends by itself");
        self.recording
    }
}

fn recorder(shelf: &Arc<Shelf>) -> Recorder {
    Recorder::new().sink("shelf", Arc::clone(shelf) as Arc<dyn Sink>)
}

#[tokio::test(start_paused = true)]
async fn events_are_kept_in_batches_by_number_and_by_time() {
    let shelf = Shelf::new(Mood::Good);
    let bench = Bench::of(recorder(&shelf).batch(10, SECOND));

    let first = bench.attempts(0..1);
    bench.pass(SECOND / 2).await;
    assert!(shelf.events().is_empty(), "others may come");
    bench.pass(SECOND).await;
    assert_eq!(shelf.events(), first);
    bench.attempts(1..8);
    bench.pass(Duration::ZERO).await;
    assert_eq!(shelf.events().len(), 3 + 20, "whole batches do not wait");
    bench.pass(2 * SECOND).await;

    let sizes: Vec<usize> = shelf.batches.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [3, 10, 10, 1]);
    assert_eq!(bench.recording.counts()[0].1.recorded, 24);
}

#[tokio::test(start_paused = true)]
async fn after_a_minute_without_database_every_event_is_there_once_and_in_order() {
    for with_file in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(Mood::Good);
        let mut settings = recorder(&shelf).batch(50, SECOND / 2);
        if with_file {
            settings = settings.spill(folder.path());
        }
        let bench = Bench::of(settings);
        let mut all = Vec::new();

        for second in 0..90_i64 {
            match second {
                10 => shelf.set(Mood::Down),
                70 => shelf.set(Mood::Good),
                _ => {}
            }
            all.extend(bench.attempts(second * 30..(second + 1) * 30));
            bench.pass(SECOND).await;
        }
        bench.pass(15 * SECOND).await;

        assert_eq!(shelf.events(), all, "with file: {with_file}");
        let counts = bench.recording.counts()[0].1;
        assert_eq!((counts.recorded, counts.queued, counts.spill_bytes), (all.len() as u64, 0, 0));
        assert_eq!(counts.spilled > 5_000, with_file);
        assert!((5..60).contains(&counts.failures), "{counts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_the_file_is_kept_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(Mood::Down);
    let bench = Bench::of(recorder(&shelf).batch(10, SECOND).spill(folder.path()));
    let mut all = bench.attempts(0..20);
    bench.pass(3 * SECOND).await;
    // Killed, and not stopped.
    drop(bench);

    let bench = Bench::of(recorder(&shelf).batch(10, SECOND).spill(folder.path()));
    all.extend(bench.attempts(20..30));
    let recording = bench.stop().await;
    assert_eq!(recording.counts()[0].1.recorded, 0);
    assert_eq!(recording.counts()[0].1.spilled, 30, "what was left at the end");

    shelf.set(Mood::Good);
    let bench = Bench::of(recorder(&shelf).batch(10, SECOND).spill(folder.path()));
    all.extend(bench.attempts(30..31));
    bench.pass(2 * SECOND).await;

    assert_eq!(shelf.events(), all);
}

#[tokio::test(start_paused = true)]
async fn a_torn_tail_is_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(Mood::Down);
    let bench = Bench::of(recorder(&shelf).spill(folder.path()));
    let mut all = bench.attempts(0..5);
    bench.pass(2 * SECOND).await;
    drop(bench);
    tear(folder.path());

    shelf.set(Mood::Good);
    let bench = Bench::of(recorder(&shelf).spill(folder.path()));
    bench.pass(2 * SECOND).await;

    all.pop();
    assert_eq!(shelf.events(), all);
    let counts = bench.recording.counts()[0].1;
    assert_eq!((counts.recorded, counts.unreadable), (14, 1));
}

fn tear(folder: &Path) {
    let path = folder.join("shelf/0/00000001.events");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_room_output_goes_first_then_successes_and_failures_last() {
    let shelf = Shelf::new(Mood::Down);
    let bench = Bench::of(recorder(&shelf).batch(1, SECOND).queue(30, 1 << 20));

    for number in 0..50 {
        let ending = if number % 5 == 0 { Ending::Failed("no".into()) } else { Ending::Done };
        for event in attempt(number, ending) {
            bench.recording.record(event);
        }
    }
    bench.pass(SECOND).await;
    let counts = bench.recording.counts()[0].1;
    shelf.set(Mood::Good);
    bench.pass(15 * SECOND).await;

    let failed = shelf.ended().iter().filter(|ended| !ended.ending.is_done()).count();
    assert_eq!(failed, 10, "no failure is lost");
    assert!(shelf.lines().len() <= 1, "output goes first");
    assert_eq!(counts.dropped(Worth::Failure), 0);
    assert_eq!(counts.dropped(Worth::Output), 50 - shelf.lines().len() as u64);
    let dropped: u64 = Worth::ALL.iter().map(|worth| counts.dropped(*worth)).sum();
    assert_eq!(dropped + shelf.events().len() as u64, 150, "whatever is not kept is counted");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_full_takes_no_more_and_nothing_that_fits_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(Mood::Down);
    let settings = recorder(&shelf).batch(30, SECOND).queue(60, 1 << 20);
    let bench = Bench::of(settings.spill(folder.path()).spill_limit(40 * 1024));

    for second in 0..60 {
        bench.attempts(second * 10..(second + 1) * 10);
        bench.pass(SECOND).await;
    }
    let down = bench.recording.counts()[0].1;
    shelf.set(Mood::Good);
    bench.pass(15 * SECOND).await;

    let counts = bench.recording.counts()[0].1;
    let dropped: u64 = Worth::ALL.iter().map(|worth| counts.dropped(*worth)).sum();
    assert!(down.spill_bytes > 20 * 1024 && down.spill_bytes <= 40 * 1024, "{down:?}");
    assert!(dropped > 0);
    assert_eq!(counts.recorded + dropped, 1800);
    assert_eq!(counts.recorded, shelf.events().len() as u64);
}

#[tokio::test(start_paused = true)]
async fn without_room_every_run_that_is_known_has_its_end() {
    for with_file in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(Mood::Down);
        let mut settings = recorder(&shelf).batch(30, SECOND).queue(120, 1 << 20);
        if with_file {
            settings = settings.spill(folder.path()).spill_limit(60 * 1024);
        }
        let bench = Bench::of(settings);

        for second in 0..10 {
            bench.attempts(second * 10..(second + 1) * 10);
            bench.pass(SECOND).await;
        }
        shelf.set(Mood::Good);
        bench.pass(15 * SECOND).await;

        let counts = bench.recording.counts()[0].1;
        assert!(counts.dropped(Worth::Output) > 0 && counts.dropped(Worth::Progress) > 0);
        assert_eq!(counts.dropped(Worth::Ending), 0, "with file: {with_file}: {counts:?}");
        assert_eq!(shelf.ended().len(), 100);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_refuses_is_asked_rarely_and_has_everything_when_that_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(Mood::Refuses("the table has other columns"));
    let bench = Bench::of(recorder(&shelf).spill(folder.path()));
    let mut all = Vec::new();

    for minute in 0..10 {
        all.extend(bench.attempts(minute..minute + 1));
        bench.pass(60 * SECOND).await;
    }
    assert!((3..8).contains(&shelf.asked()), "{}", shelf.asked());
    shelf.set(Mood::Good);
    bench.pass(601 * SECOND).await;

    assert_eq!(shelf.events(), all);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_kept_is_dropped_alone_and_holds_nothing_up() {
    fn is_bad(event: &Event) -> bool {
        matches!(event, Event::Printed(printed) if [shard(17).run, shard(40).run].contains(&printed.run))
    }
    for with_file in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(if with_file { Mood::Down } else { Mood::Chokes(is_bad) });
        let mut settings = recorder(&shelf).batch(100, SECOND);
        if with_file {
            settings = settings.spill(folder.path());
        }
        let bench = Bench::of(settings);

        let mut all = bench.attempts(0..50);
        bench.pass(2 * SECOND).await;
        shelf.set(Mood::Chokes(is_bad));
        bench.pass(15 * SECOND).await;
        all.extend(bench.attempts(50..60));
        bench.pass(2 * SECOND).await;

        all.retain(|event| !is_bad(event));
        assert_eq!(shelf.events(), all, "in order; with file: {with_file}");
        let counts = bench.recording.counts()[0].1;
        assert_eq!((counts.recorded, counts.dropped(Worth::Output)), (178, 2));
        assert_eq!((counts.queued, counts.spill_bytes), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_a_silent_and_a_mad_sink_hold_up_no_other() {
    let (good, mad) = (Shelf::new(Mood::Good), Shelf::new(Mood::Mad));
    let (silent, slow) = (Shelf::new(Mood::Silent), Shelf::new(Mood::Slow(SECOND)));
    let bench = Bench::of(
        recorder(&mad)
            .sink("silent", Arc::clone(&silent) as Arc<dyn Sink>)
            .sink("slow", Arc::clone(&slow) as Arc<dyn Sink>)
            .sink("good", Arc::clone(&good) as Arc<dyn Sink>),
    );

    let all = bench.attempts(0..10);
    bench.pass(SECOND).await;
    assert_eq!(good.events(), all);
    assert!(slow.events().is_empty());
    mad.set(Mood::Good);
    silent.set(Mood::Good);
    bench.pass(45 * SECOND).await;

    for shelf in [&mad, &silent] {
        assert_eq!(shelf.events(), all, "asked again");
    }
    let names: Vec<&str> = bench.recording.counts().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["shelf", "silent", "slow", "good"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_keeps_what_waits_and_does_not_wait_for_ever() {
    let good = Shelf::new(Mood::Good);
    let bench = Bench::of(recorder(&good));
    let all = bench.attempts(0..1000);
    bench.stop().await;
    assert_eq!(good.events(), all, "at once, without lingering");

    let silent = Shelf::new(Mood::Silent);
    let bench = Bench::of(recorder(&silent));
    bench.attempts(0..10);
    bench.recording.close(10 * SECOND);
    bench.pass(11 * SECOND).await;
    let recording = bench.recording.clone();
    assert!(bench.tasks.finish(SECOND).await, "it has ended");
    recording.record(Event::Started(begin(11)));

    let counts = recording.counts()[0].1;
    assert_eq!(Worth::ALL.map(|worth| counts.dropped(worth)), [10, 11, 10, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_cannot_be_written_to_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let shelf = Shelf::new(Mood::Down);
    let bench = Bench::of(recorder(&shelf).spill(&file));

    let all = bench.attempts(0..10);
    bench.pass(2 * SECOND).await;
    shelf.set(Mood::Good);
    bench.pass(5 * SECOND).await;

    assert_eq!(shelf.events(), all, "it waited in memory");
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_goes_away_while_events_wait_loses_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(Mood::Down);
    let bench = Bench::of(recorder(&shelf).spill(folder.path()));
    bench.attempts(0..10);
    bench.pass(SECOND).await;
    fs::remove_dir_all(folder.path().join("shelf/0")).unwrap();

    shelf.set(Mood::Good);
    bench.pass(5 * SECOND).await;
    let others = bench.attempts(10..20);
    bench.pass(2 * SECOND).await;

    assert_eq!(shelf.events(), others);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_read_for_a_while_is_kept_after_that() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(Mood::Down);
    let bench = Bench::of(recorder(&shelf).spill(folder.path()));
    let waiting = bench.attempts(0..10);
    bench.pass(SECOND).await;
    let (file, aside) =
        (folder.path().join("shelf/0/00000001.events"), folder.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    // Opens, and cannot be read.
    fs::create_dir(&file).unwrap();
    shelf.set(Mood::Good);
    bench.pass(10 * SECOND).await;
    let others = bench.attempts(10..20);
    bench.pass(SECOND).await;
    assert_eq!(shelf.events(), others, "others do not wait for it");

    fs::remove_dir(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    bench.pass(130 * SECOND).await;

    assert_eq!(shelf.events(), [others, waiting].concat());
    assert_eq!(bench.recording.counts()[0].1.recorded, 60);
}

#[test]
fn an_attempt_id_reads_as_it_is_written() {
    let ids: HashMap<AttemptId, String> = (0..10)
        .map(|number| AttemptId::of(&shard(number)))
        .map(|id| (id, id.to_string()))
        .collect();

    assert_eq!(ids.len(), 10);
    for (id, text) in &ids {
        assert_eq!(text.parse::<AttemptId>().as_ref(), Ok(id));
    }
    for wrong in ["", "settle", &"0".repeat(32), "0000-0"] {
        assert!(wrong.parse::<AttemptId>().is_err());
    }
}
