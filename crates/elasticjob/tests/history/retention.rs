//! Old history is deleted.

use std::{num::NonZeroU32, time::Duration};

use elasticjob::history::{
    OutputPosition, PruneSummary, Retention, RunFilter, Sink, StatusState, Store,
};
use jiff::SignedDuration;

use crate::{
    database::{Kind, TestDatabase},
    events::{SampleAttempt, done, failed, noon},
};

const DAY: i64 = 24 * 60 * 60 * 1000;

async fn jobs(store: &Store) -> Vec<String> {
    let runs = store.runs(&RunFilter::default()).await.unwrap().rows;
    runs.into_iter().map(|run| run.job_name).collect()
}

pub(crate) async fn old_runs_are_deleted_and_failures_kept_longer(database: &TestDatabase) {
    let store = database.open().await;
    let old = SampleAttempt::of("old", -31 * DAY);
    let mut events = done("old", -31 * DAY, 5);
    events.extend([old.status(StatusState::Running, ""), old.printed(0, &["hello"])]);
    events.extend(done("new", -29 * DAY, 5));
    events.extend(failed("failed", -89 * DAY, "no"));
    events.extend(failed("failed-long-ago", -91 * DAY, "no"));
    events.push(SampleAttempt::of("never-ended", -91 * DAY).started());
    store.store(&events).await.unwrap();

    let pruned = store.prune(&Retention::default(), noon()).await.unwrap();
    let again = store.prune(&Retention::default(), noon()).await.unwrap();

    assert_eq!(pruned, PruneSummary { runs: 3, ..PruneSummary::default() });
    assert_eq!(again, PruneSummary::default());
    assert_eq!(jobs(&store).await, ["new", "failed"]);
    assert_eq!(store.run(&old.run().to_string()).await.unwrap(), None);
    let output = store.output(&old.run().to_string(), None, &OutputPosition::default()).await;
    assert_eq!(output.unwrap().lines, []);
    assert_eq!(database.scalar("SELECT COUNT(*) FROM JOB_STATUS_TRACE_LOG").await, 0);
    assert_eq!(database.scalar("SELECT COUNT(*) FROM JOB_EXECUTION_LOG").await, 3);
}

pub(crate) async fn old_orphans_are_deleted(database: &TestDatabase) {
    let store = database.open().await;
    let (old, new) = (SampleAttempt::of("old", -31 * DAY), SampleAttempt::of("new", -29 * DAY));
    let mut events = Vec::new();
    for attempt in [&old, &new] {
        // Fires during a previous run: they have traces but no run.
        events.push(attempt.status(StatusState::Staging, ""));
        events.push(attempt.status(StatusState::Finished, "the run before is not over"));
        events.extend([attempt.printed(0, &["late"]), attempt.cut(1, 2)]);
    }
    let failed_then = SampleAttempt::of("failed", -31 * DAY);
    events.extend(failed("failed", -31 * DAY, "no"));
    events.extend([
        failed_then.status(StatusState::Error, "{0=no}"),
        failed_then.printed(0, &["no"]),
        failed_then.cut(1, 2),
    ]);
    store.store(&events).await.unwrap();

    let pruned = store.prune(&Retention::default(), noon()).await.unwrap();

    assert_eq!(pruned, PruneSummary { orphans: 4, ..PruneSummary::default() });
    for (table, left) in
        [("JOB_STATUS_TRACE_LOG", 3), ("ELASTICJOB_OUTPUT", 2), ("ELASTICJOB_OUTPUT_CUT", 2)]
    {
        assert_eq!(
            database.scalar(&format!("SELECT COUNT(*) FROM {table}")).await,
            left,
            "{table}"
        );
    }
}

pub(crate) async fn orphans_are_deleted_in_several_steps(database: &TestDatabase) {
    let store = database.open().await;
    let mut events = Vec::new();
    for fire in 0..450 {
        let attempt = SampleAttempt::of("busy", -40 * DAY + fire * 1000);
        events.extend([attempt.status(StatusState::Staging, ""), attempt.printed(0, &["late"])]);
    }
    store.store(&events).await.unwrap();

    let pruned = store.prune(&Retention::default(), noon()).await.unwrap();

    assert_eq!(pruned, PruneSummary { orphans: 900, ..PruneSummary::default() });
}

pub(crate) async fn only_last_runs_of_each_job_are_kept(database: &TestDatabase) {
    let store = database.open().await;
    let mut events = Vec::new();
    for run in 0..450 {
        events.extend(done("settle", run * 1000, 5));
    }
    for run in 0..12 {
        events.extend(failed("settle", run * 1000 + 1, "no"));
    }
    events.extend(done("report", 0, 5));
    store.store(&events).await.unwrap();
    let mut retention = Retention::default();
    retention.runs_per_job = NonZeroU32::new(10).unwrap();

    let pruned = store.prune(&retention, noon() + SignedDuration::from_hours(1)).await.unwrap();

    assert_eq!(pruned.runs, 442);
    let left = database.scalar("SELECT COUNT(*) FROM ELASTICJOB_RUN").await;
    assert_eq!(left, 21);
    let newest = &store.runs(&RunFilter::default()).await.unwrap().rows[0];
    assert_eq!(newest.run_id, SampleAttempt::of("settle", 449_000).run().to_string());
}

pub(crate) async fn java_rows_are_deleted_only_if_requested(database: &TestDatabase) {
    let store = database.open().await;
    let (yes, at) = match database.kind {
        Kind::Postgres => ("true", "'2020-01-01 00:00:00'"),
        Kind::MariaDb => ("1", "'2020-01-01 00:00:00'"),
        Kind::Sqlite => ("1", "1577836800000"),
    };
    for row in 0..3 {
        database
            .execute(&format!(
                "INSERT INTO JOB_EXECUTION_LOG (id, job_name, task_id, hostname, ip, sharding_item, execution_source, is_success, \
                 start_time) VALUES ('{row}', 'legacy', 't', 'h', 'i', 0, 'NORMAL_TRIGGER', {yes}, {at})"
            ))
            .await;
    }
    let mut retention = Retention::default();
    retention.age = Duration::from_hours(1);

    let left = store.prune(&retention, noon()).await.unwrap();
    retention.foreign = true;
    let gone = store.prune(&retention, noon()).await.unwrap();

    assert_eq!((left.foreign, gone.foreign), (0, 3));
}
