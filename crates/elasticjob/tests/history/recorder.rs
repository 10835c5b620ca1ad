//! Records events into a database; a bad event in a batch does not affect the others.

use elasticjob::job::Outcome;
use std::{sync::Arc, time::Duration};

use elasticjob::{
    history::{
        Counts, Event, HistoryUrl, Importance, OutputPosition, Recorder, Recording, Retention,
        RunFilter, Store,
    },
    runtime::{SystemClock, SystemRandomness, Tasks},
};

use testbed::free_port;

use crate::{
    database::{Kind, TestDatabase},
    events::{SampleAttempt, done},
};

/// Records these events as a node does, and closes the recorder.
async fn record(url: &HistoryUrl, events: Vec<Event>) -> Counts {
    record_with(Recorder::new().database(url.clone(), Retention::default()), events).await
}

fn start(recorder: Recorder, tasks: &mut Tasks) -> Recording {
    recorder.start(&(Arc::new(SystemClock) as _), &(Arc::new(SystemRandomness) as _), tasks)
}

async fn record_with(recorder: Recorder, events: Vec<Event>) -> Counts {
    let mut tasks = Tasks::new();
    let recording = start(recorder, &mut tasks);
    for event in events {
        recording.record(event);
    }
    recording.close(Duration::from_mins(1));
    assert!(tasks.finish(Duration::from_mins(2)).await, "the writers end by themselves");
    recording.counts()[0].1
}

pub(crate) async fn only_events_too_large_for_database_are_dropped(database: &TestDatabase) {
    let huge = SampleAttempt::of("huge", 0);
    let mut events = done("before", 0, 5);
    events.extend([huge.started(), huge.printed(0, &["x".repeat(17 << 20).as_str()])]);
    events.extend(done("after", 0, 5));

    let counts = record(&database.url(), events).await;

    let has_limit = database.kind == Kind::MariaDb;
    assert_eq!(counts.dropped(Importance::Output), u64::from(has_limit), "{counts:?}");
    assert_eq!(counts.recorded, if has_limit { 9 } else { 10 });
    let store = database.open().await;
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().rows.len(), 3);
    let output = store.output(&huge.run().to_string(), None, &OutputPosition::default()).await;
    assert_eq!(output.unwrap().lines.len(), usize::from(!has_limit));
}

pub(crate) async fn large_output_is_stored(database: &TestDatabase) {
    let attempt = SampleAttempt::of("loud", 0);
    let text = "\u{1b}[31m\"red\"\u{1b}[0m ".repeat(1500);
    let mut events: Vec<Event> =
        (0..400).map(|part| attempt.printed(part, &[text.as_str()])).collect();
    events.push(attempt.started());

    let counts = record(&database.url(), events).await;

    assert_eq!((counts.recorded, counts.failures), (401, 0), "{counts:?}");
}

pub(crate) async fn dropped_tables_are_created_again(database: &TestDatabase) {
    let mut tasks = Tasks::new();
    let recorder = Recorder::new().database(database.url(), Retention::default());
    let recorder = recorder.batch(10, Duration::from_millis(10));
    let recording = start(recorder, &mut tasks);
    let record_all = async |events: Vec<Event>| {
        let until = recording.counts()[0].1.recorded + events.len() as u64;
        for event in events {
            recording.record(event);
        }
        let all = async {
            while recording.counts()[0].1.recorded < until {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), all).await.expect("the events are stored");
    };

    record_all(done("before", 0, 5)).await;
    for table in ["JOB_EXECUTION_LOG", "JOB_STATUS_TRACE_LOG", "ELASTICJOB_RUN"] {
        database.execute(&format!("DROP TABLE {table}")).await;
    }
    record_all(done("after", 0, 5)).await;

    let runs = database.open().await.runs(&RunFilter::default()).await.unwrap().rows;
    assert_eq!(runs.iter().map(|run| &*run.job_name).collect::<Vec<_>>(), ["after"]);
}

pub(crate) async fn unsupported_character_changes_only_its_message(database: &TestDatabase) {
    let url = match database.kind {
        // It supports all characters.
        Kind::Sqlite => database.url.clone(),
        Kind::Postgres => {
            let name = format!("{}_latin", database.url.rsplit_once('/').unwrap().1);
            let how = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
            database.execute(&format!("CREATE DATABASE {name} {how}")).await;
            format!("{}_latin", database.url)
        }
        Kind::MariaDb => {
            database.open().await;
            let column = "failure_cause VARCHAR(4000) CHARACTER SET latin1 NULL";
            database.execute(&format!("ALTER TABLE JOB_EXECUTION_LOG MODIFY {column}")).await;
            database.url.clone()
        }
    };
    let url: HistoryUrl = url.parse().unwrap();
    let (one, other) = (SampleAttempt::of("müll", 0), SampleAttempt::of("größe", 0));

    let counts = record(
        &url,
        vec![
            one.ended(5, (Outcome::Failed, Some("🔥 is hot"))),
            other.ended(5, (Outcome::Failed, Some("schön"))),
        ],
    )
    .await;

    assert_eq!(counts.recorded, 2, "{counts:?}");
    let store = Store::open(&url).await.unwrap();
    let cause = async |attempt: &SampleAttempt| {
        let run =
            store.run(&attempt.run().to_string()).await.unwrap().expect("the run keeps its name");
        run.executions[0].failure_cause.clone().unwrap()
    };
    let replacement = if database.kind == Kind::Sqlite { "🔥" } else { "?" };
    assert_eq!(cause(&one).await, format!("{replacement} is hot"));
    assert_eq!(cause(&other).await, "schön");
}

pub(crate) async fn spilled_events_go_to_their_own_database_only(database: &TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let unreachable: HistoryUrl =
        format!("postgres://jane@127.0.0.1:{}/h", free_port()).parse().unwrap();
    let record_into = async |url: &HistoryUrl, events: Vec<Event>| {
        let recorder = Recorder::new().database(url.clone(), Retention::default());
        record_with(recorder.spill(folder.path()), events).await
    };

    let spilled = record_into(&unreachable, done("elsewhere", 0, 5)).await;
    let recorded = record_into(&database.url(), done("here", 0, 5)).await;
    let still = record_into(&unreachable, Vec::new()).await;

    assert_eq!((spilled.recorded, spilled.spilled), (0, 4));
    assert_eq!(recorded.recorded, 4);
    assert_eq!(still.spill_bytes, spilled.spill_bytes, "events still wait for their own database");
    let runs = database.open().await.runs(&RunFilter::default()).await.unwrap().rows;
    assert_eq!(runs.iter().map(|run| &*run.job_name).collect::<Vec<_>>(), ["here"]);
}
