//! The recorder's guarantees, whatever its sinks do.

use std::{collections::HashMap, fs, path::Path, sync::Arc, time::Duration};

use elasticjob::{
    history::{
        AttemptEnded, AttemptId, AttemptStarted, Event, Importance, Line, OutputPrinted, Recorder,
        Recording, Sink,
    },
    job::{FencingToken, Fire, Job, Outcome, Shard},
    runtime::{Clock, SystemRandomness, Tasks},
    testing::ManualClock,
};
use jiff::Timestamp;

use crate::test_sink::{Behaviour, TestSink, advance};

const SECOND: Duration = Duration::from_secs(1);

fn shard(number: i64) -> Shard {
    let job = Job::named("settle").unwrap();
    let due_at = Timestamp::from_second(1_773_828_000 + number).unwrap();
    let fire = Fire::scheduled(job.name.clone(), due_at);
    let task = "settle@-@0@-@READY@-@10.0.0.7@-@4711".parse().unwrap();
    Shard::of(&job, &fire, task, 0, FencingToken::new(number))
}

fn start_of(number: i64) -> Arc<AttemptStarted> {
    let shard = shard(number);
    Arc::new(AttemptStarted::of(&shard, "host".into(), shard.due_at))
}

/// The events of an attempt: start, output and end.
pub(crate) fn attempt(number: i64, (outcome, message): (Outcome, Option<&str>)) -> [Event; 3] {
    let (shard, started) = (shard(number), start_of(number));
    let line = Line { at: started.at, stream: "stdout", text: format!("line of {number}") };
    let printed = OutputPrinted {
        id: AttemptId::of(&shard),
        run: shard.run.clone(),
        item: 0,
        part: 0,
        lines: vec![line],
    };
    let ended = AttemptEnded {
        started: Arc::clone(&started),
        at: started.at,
        outcome,
        message: message.map(ToOwned::to_owned),
    };
    [Event::Started(started), Event::Printed(printed), Event::Ended(ended)]
}

struct Fixture {
    clock: ManualClock,
    tasks: Tasks,
    recording: Recording,
}

impl Fixture {
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
        let events: Vec<Event> =
            numbers.flat_map(|number| attempt(number, (Outcome::Succeeded, None))).collect();
        for event in &events {
            self.recording.record(event.clone());
        }
        events
    }

    async fn advance(&self, span: Duration) {
        advance(&self.clock, span).await;
    }

    /// Stops the recorder as a node does.
    async fn stop(self) -> Recording {
        self.recording.close(10 * SECOND);
        assert!(self.tasks.finish(12 * SECOND).await, "the writers end by themselves");
        self.recording
    }
}

fn recorder(sink: &Arc<TestSink>) -> Recorder {
    Recorder::new().sink("memory", Arc::clone(sink) as Arc<dyn Sink>)
}

#[tokio::test(start_paused = true)]
async fn batches_are_limited_by_count_and_time() {
    let sink = TestSink::new(Behaviour::Good);
    let fixture = Fixture::of(recorder(&sink).batch(10, SECOND));

    let first = fixture.attempts(0..1);
    fixture.advance(SECOND / 2).await;
    assert!(sink.events().is_empty(), "the batch waits for more events");
    fixture.advance(SECOND).await;
    assert_eq!(sink.events(), first);
    fixture.attempts(1..8);
    fixture.advance(Duration::ZERO).await;
    assert_eq!(sink.events().len(), 3 + 20, "full batches do not wait");
    fixture.advance(2 * SECOND).await;

    let sizes: Vec<usize> = sink.batches.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [3, 10, 10, 1]);
    assert_eq!(fixture.recording.counts()[0].1.recorded, 24);
}

#[tokio::test(start_paused = true)]
async fn events_survive_a_minute_of_outage_in_order() {
    for with_file in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let sink = TestSink::new(Behaviour::Good);
        let mut settings = recorder(&sink).batch(50, SECOND / 2);
        if with_file {
            settings = settings.spill(folder.path());
        }
        let fixture = Fixture::of(settings);
        let mut all = Vec::new();

        for second in 0..90_i64 {
            match second {
                10 => sink.set(Behaviour::Down),
                70 => sink.set(Behaviour::Good),
                _ => {}
            }
            all.extend(fixture.attempts(second * 30..(second + 1) * 30));
            fixture.advance(SECOND).await;
        }
        fixture.advance(15 * SECOND).await;

        assert_eq!(sink.events(), all, "with file: {with_file}");
        let counts = fixture.recording.counts()[0].1;
        assert_eq!((counts.recorded, counts.queued, counts.spill_bytes), (all.len() as u64, 0, 0));
        assert_eq!(counts.spilled > 5_000, with_file);
        assert!((5..60).contains(&counts.failures), "{counts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_jobs_due_together_fit_into_the_queue() {
    let sink = TestSink::new(Behaviour::Hangs);
    let fixture = Fixture::of(recorder(&sink));

    let events = fixture.attempts(0..40_000);

    let counts = fixture.recording.counts()[0].1;
    let dropped: u64 = Importance::ALL.into_iter().map(|worth| counts.dropped(worth)).sum();
    assert_eq!((counts.queued, dropped), (events.len() as u64, 0));
}

#[tokio::test(start_paused = true)]
async fn slow_sink_gets_what_does_not_fit_into_the_queue_from_files() {
    let folder = tempfile::tempdir().unwrap();
    // By tokio's clock; by the test's own clock this is a second.
    let sink = TestSink::new(Behaviour::Slow(Duration::from_millis(10)));
    let settings = recorder(&sink).batch(30, SECOND / 2).queue(200, 1 << 20);
    let fixture = Fixture::of(settings.spill(folder.path()));
    let mut all = Vec::new();

    for second in 0..10_i64 {
        all.extend(fixture.attempts(second * 20..(second + 1) * 20));
        fixture.advance(SECOND).await;
    }
    fixture.advance(30 * SECOND).await;

    assert_eq!(sink.events(), all);
    let counts = fixture.recording.counts()[0].1;
    assert!(counts.spilled > 0 && counts.failures == 0, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn next_process_stores_spilled_events() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TestSink::new(Behaviour::Down);
    let fixture = Fixture::of(recorder(&sink).batch(10, SECOND).spill(folder.path()));
    let mut all = fixture.attempts(0..20);
    fixture.advance(3 * SECOND).await;
    // Killed rather than stopped.
    drop(fixture);

    let fixture = Fixture::of(recorder(&sink).batch(10, SECOND).spill(folder.path()));
    all.extend(fixture.attempts(20..30));
    let recording = fixture.stop().await;
    assert_eq!(recording.counts()[0].1.recorded, 0);
    assert_eq!(recording.counts()[0].1.spilled, 30, "spilled at shutdown");

    sink.set(Behaviour::Good);
    let fixture = Fixture::of(recorder(&sink).batch(10, SECOND).spill(folder.path()));
    all.extend(fixture.attempts(30..31));
    fixture.advance(2 * SECOND).await;

    assert_eq!(sink.events(), all);
}

#[tokio::test(start_paused = true)]
async fn torn_spill_line_is_skipped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TestSink::new(Behaviour::Down);
    let fixture = Fixture::of(recorder(&sink).spill(folder.path()));
    let mut all = fixture.attempts(0..5);
    fixture.advance(2 * SECOND).await;
    drop(fixture);
    tear(folder.path());

    sink.set(Behaviour::Good);
    let fixture = Fixture::of(recorder(&sink).spill(folder.path()));
    fixture.advance(2 * SECOND).await;

    all.pop();
    assert_eq!(sink.events(), all);
    let counts = fixture.recording.counts()[0].1;
    assert_eq!((counts.recorded, counts.unreadable), (14, 1));
}

fn tear(folder: &Path) {
    let path = folder.join("memory/0/00000001.events");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
}

#[tokio::test(start_paused = true)]
async fn full_queue_drops_output_first_and_failures_last() {
    let sink = TestSink::new(Behaviour::Down);
    let fixture = Fixture::of(recorder(&sink).batch(1, SECOND).queue(30, 1 << 20));

    for number in 0..50 {
        let ending = if number % 5 == 0 {
            (Outcome::Failed, Some("no"))
        } else {
            (Outcome::Succeeded, None)
        };
        for event in attempt(number, ending) {
            fixture.recording.record(event);
        }
    }
    fixture.advance(SECOND).await;
    let counts = fixture.recording.counts()[0].1;
    sink.set(Behaviour::Good);
    fixture.advance(15 * SECOND).await;

    let failed = sink.ended().iter().filter(|ended| !ended.outcome.is_success()).count();
    assert_eq!(failed, 10, "no failure is dropped");
    assert!(sink.lines().len() <= 1, "output is dropped first");
    assert_eq!(counts.dropped(Importance::Failure), 0);
    assert_eq!(counts.dropped(Importance::Output), 50 - sink.lines().len() as u64);
    let dropped: u64 = Importance::ALL.iter().map(|worth| counts.dropped(*worth)).sum();
    assert_eq!(
        dropped + sink.events().len() as u64,
        150,
        "every event is stored or counted as dropped"
    );
}

#[tokio::test(start_paused = true)]
async fn full_spill_keeps_everything_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TestSink::new(Behaviour::Down);
    let settings = recorder(&sink).batch(30, SECOND).queue(60, 1 << 20);
    let fixture = Fixture::of(settings.spill(folder.path()).spill_limit(40 * 1024));

    for second in 0..60 {
        fixture.attempts(second * 10..(second + 1) * 10);
        fixture.advance(SECOND).await;
    }
    let down = fixture.recording.counts()[0].1;
    sink.set(Behaviour::Good);
    fixture.advance(15 * SECOND).await;

    let counts = fixture.recording.counts()[0].1;
    let dropped: u64 = Importance::ALL.iter().map(|worth| counts.dropped(*worth)).sum();
    assert!(down.spill_bytes > 20 * 1024 && down.spill_bytes <= 40 * 1024, "{down:?}");
    assert!(dropped > 0);
    assert_eq!(counts.recorded + dropped, 1800);
    assert_eq!(counts.recorded, sink.events().len() as u64);
}

#[tokio::test(start_paused = true)]
async fn every_stored_run_has_its_end_when_space_is_short() {
    for with_file in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let sink = TestSink::new(Behaviour::Down);
        let mut settings = recorder(&sink).batch(30, SECOND).queue(120, 1 << 20);
        if with_file {
            settings = settings.spill(folder.path()).spill_limit(60 * 1024);
        }
        let fixture = Fixture::of(settings);

        for second in 0..10 {
            fixture.attempts(second * 10..(second + 1) * 10);
            fixture.advance(SECOND).await;
        }
        sink.set(Behaviour::Good);
        fixture.advance(15 * SECOND).await;

        let counts = fixture.recording.counts()[0].1;
        assert!(counts.dropped(Importance::Output) > 0 && counts.dropped(Importance::Progress) > 0);
        assert_eq!(counts.dropped(Importance::Success), 0, "with file: {with_file}: {counts:?}");
        assert_eq!(sink.ended().len(), 100);
    }
}

#[tokio::test(start_paused = true)]
async fn refusing_sink_is_retried_rarely_and_gets_all_events() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TestSink::new(Behaviour::Refuses("the table has other columns"));
    let fixture = Fixture::of(recorder(&sink).spill(folder.path()));
    let mut all = Vec::new();

    for minute in 0..10 {
        all.extend(fixture.attempts(minute..minute + 1));
        fixture.advance(60 * SECOND).await;
    }
    assert!((3..8).contains(&sink.calls()), "{}", sink.calls());
    sink.set(Behaviour::Good);
    fixture.advance(601 * SECOND).await;

    assert_eq!(sink.events(), all);
}

#[tokio::test(start_paused = true)]
async fn only_the_invalid_event_is_dropped() {
    fn is_bad(event: &Event) -> bool {
        matches!(event, Event::Printed(printed) if [shard(17).run, shard(40).run].contains(&printed.run))
    }
    for with_file in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let sink =
            TestSink::new(if with_file { Behaviour::Down } else { Behaviour::Rejects(is_bad) });
        let mut settings = recorder(&sink).batch(100, SECOND);
        if with_file {
            settings = settings.spill(folder.path());
        }
        let fixture = Fixture::of(settings);

        let mut all = fixture.attempts(0..50);
        fixture.advance(2 * SECOND).await;
        sink.set(Behaviour::Rejects(is_bad));
        fixture.advance(15 * SECOND).await;
        all.extend(fixture.attempts(50..60));
        fixture.advance(2 * SECOND).await;

        all.retain(|event| !is_bad(event));
        assert_eq!(sink.events(), all, "in order; with file: {with_file}");
        let counts = fixture.recording.counts()[0].1;
        assert_eq!((counts.recorded, counts.dropped(Importance::Output)), (178, 2));
        assert_eq!((counts.queued, counts.spill_bytes), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn slow_hanging_or_panicking_sink_delays_no_other() {
    let (healthy, panicking) = (TestSink::new(Behaviour::Good), TestSink::new(Behaviour::Panics));
    let (hanging, slow) = (TestSink::new(Behaviour::Hangs), TestSink::new(Behaviour::Slow(SECOND)));
    let fixture = Fixture::of(
        recorder(&panicking)
            .sink("hanging", Arc::clone(&hanging) as Arc<dyn Sink>)
            .sink("slow", Arc::clone(&slow) as Arc<dyn Sink>)
            .sink("healthy", Arc::clone(&healthy) as Arc<dyn Sink>),
    );

    let all = fixture.attempts(0..10);
    fixture.advance(SECOND).await;
    assert_eq!(healthy.events(), all);
    assert!(slow.events().is_empty());
    panicking.set(Behaviour::Good);
    hanging.set(Behaviour::Good);
    fixture.advance(45 * SECOND).await;

    for sink in [&panicking, &hanging] {
        assert_eq!(sink.events(), all, "retried");
    }
    let names: Vec<&str> = fixture.recording.counts().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["memory", "hanging", "slow", "healthy"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_stores_queued_events_within_its_deadline() {
    let healthy = TestSink::new(Behaviour::Good);
    let fixture = Fixture::of(recorder(&healthy));
    let all = fixture.attempts(0..1000);
    fixture.stop().await;
    assert_eq!(healthy.events(), all, "stored at once on shutdown");

    let hanging = TestSink::new(Behaviour::Hangs);
    let fixture = Fixture::of(recorder(&hanging));
    fixture.attempts(0..10);
    fixture.recording.close(10 * SECOND);
    fixture.advance(11 * SECOND).await;
    let recording = fixture.recording.clone();
    assert!(fixture.tasks.finish(SECOND).await, "the writer has ended");
    recording.record(Event::Started(start_of(11)));

    let counts = recording.counts()[0].1;
    assert_eq!(Importance::ALL.map(|worth| counts.dropped(worth)), [10, 11, 10, 0]);
}

#[tokio::test(start_paused = true)]
async fn unwritable_spill_folder_does_not_stop_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let sink = TestSink::new(Behaviour::Down);
    let fixture = Fixture::of(recorder(&sink).spill(&file));

    let all = fixture.attempts(0..10);
    fixture.advance(2 * SECOND).await;
    sink.set(Behaviour::Good);
    fixture.advance(5 * SECOND).await;

    assert_eq!(sink.events(), all, "the events waited in memory");
}

#[tokio::test(start_paused = true)]
async fn deleted_spill_folder_loses_no_other_events() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TestSink::new(Behaviour::Down);
    let fixture = Fixture::of(recorder(&sink).spill(folder.path()));
    fixture.attempts(0..10);
    fixture.advance(SECOND).await;
    fs::remove_dir_all(folder.path().join("memory/0")).unwrap();

    sink.set(Behaviour::Good);
    fixture.advance(5 * SECOND).await;
    let others = fixture.attempts(10..20);
    fixture.advance(2 * SECOND).await;

    assert_eq!(sink.events(), others);
}

#[tokio::test(start_paused = true)]
async fn temporarily_unreadable_spill_file_is_stored_later() {
    let folder = tempfile::tempdir().unwrap();
    let sink = TestSink::new(Behaviour::Down);
    let fixture = Fixture::of(recorder(&sink).spill(folder.path()));
    let waiting = fixture.attempts(0..10);
    fixture.advance(SECOND).await;
    let (file, aside) =
        (folder.path().join("memory/0/00000001.events"), folder.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    // A folder can be opened but not read as a file.
    fs::create_dir(&file).unwrap();
    sink.set(Behaviour::Good);
    fixture.advance(10 * SECOND).await;
    let others = fixture.attempts(10..20);
    fixture.advance(SECOND).await;
    assert_eq!(sink.events(), others, "other events do not wait for it");

    fs::remove_dir(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    fixture.advance(130 * SECOND).await;

    assert_eq!(sink.events(), [others, waiting].concat());
    assert_eq!(fixture.recording.counts()[0].1.recorded, 60);
}

#[test]
fn attempt_id_round_trips() {
    let ids: HashMap<AttemptId, String> = (0..10)
        .map(|number| AttemptId::of(&shard(number)))
        .map(|id| (id, id.to_string()))
        .collect();

    assert_eq!(ids.len(), 10);
    for (id, text) in &ids {
        assert_eq!(text.parse::<AttemptId>().as_ref(), Ok(id));
    }
    for invalid in ["", "settle", &"0".repeat(32), "0000-0"] {
        assert!(invalid.parse::<AttemptId>().is_err());
    }
}
