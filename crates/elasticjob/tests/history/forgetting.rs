//! What is old goes.

use std::{num::NonZeroU32, time::Duration};

use elasticjob::history::{OutputPosition, Pruned, Retention, RunFilter, Sink, StatusState, Store};
use jiff::SignedDuration;

use crate::{
    ground::{Ground, Kind},
    story::{Told, done, failed, noon},
};

const DAY: i64 = 24 * 60 * 60 * 1000;

async fn jobs(store: &Store) -> Vec<String> {
    let runs = store.runs(&RunFilter::default()).await.unwrap().rows;
    runs.into_iter().map(|run| run.job_name).collect()
}

pub(crate) async fn old_runs_go_with_all_that_is_theirs_and_failures_stay_longer(ground: &Ground) {
    let store = ground.open().await;
    let old = Told::of("old", -31 * DAY);
    let mut events = done("old", -31 * DAY, 5);
    events.extend([old.status(StatusState::Running, ""), old.printed(0, &["hello"])]);
    events.extend(done("new", -29 * DAY, 5));
    events.extend(failed("failed", -89 * DAY, "no"));
    events.extend(failed("failed-long-ago", -91 * DAY, "no"));
    events.push(Told::of("never-ended", -91 * DAY).started());
    store.keep(&events).await.unwrap();

    let pruned = store.prune(&Retention::default(), noon()).await.unwrap();
    let again = store.prune(&Retention::default(), noon()).await.unwrap();

    assert_eq!(pruned, Pruned { runs: 3, ..Pruned::default() });
    assert_eq!(again, Pruned::default());
    assert_eq!(jobs(&store).await, ["new", "failed"]);
    assert_eq!(store.run(&old.run().to_string()).await.unwrap(), None);
    let output = store.output(&old.run().to_string(), None, &OutputPosition::default()).await;
    assert_eq!(output.unwrap().lines, []);
    assert_eq!(ground.number("SELECT COUNT(*) FROM JOB_STATUS_TRACE_LOG").await, 0);
    assert_eq!(ground.number("SELECT COUNT(*) FROM JOB_EXECUTION_LOG").await, 3);
}

pub(crate) async fn what_belongs_to_no_run_goes_by_its_age(ground: &Ground) {
    let store = ground.open().await;
    let (old, new) = (Told::of("old", -31 * DAY), Told::of("new", -29 * DAY));
    let mut events = Vec::new();
    for told in [&old, &new] {
        // Fires that came while a run was not over: they have traces, and no run.
        events.push(told.status(StatusState::Staging, ""));
        events.push(told.status(StatusState::Finished, "the run before is not over"));
        events.extend([told.printed(0, &["late"]), told.cut(1, 2)]);
    }
    let failed_then = Told::of("failed", -31 * DAY);
    events.extend(failed("failed", -31 * DAY, "no"));
    events.extend([
        failed_then.status(StatusState::Error, "{0=no}"),
        failed_then.printed(0, &["no"]),
        failed_then.cut(1, 2),
    ]);
    store.keep(&events).await.unwrap();

    let pruned = store.prune(&Retention::default(), noon()).await.unwrap();

    assert_eq!(pruned, Pruned { orphans: 4, ..Pruned::default() });
    for (table, left) in
        [("JOB_STATUS_TRACE_LOG", 3), ("ELASTICJOB_OUTPUT", 2), ("ELASTICJOB_OUTPUT_CUT", 2)]
    {
        assert_eq!(ground.number(&format!("SELECT COUNT(*) FROM {table}")).await, left, "{table}");
    }
}

pub(crate) async fn more_orphans_than_one_step_takes_all_go(ground: &Ground) {
    let store = ground.open().await;
    let mut events = Vec::new();
    for fire in 0..450 {
        let told = Told::of("busy", -40 * DAY + fire * 1000);
        events.extend([told.status(StatusState::Staging, ""), told.printed(0, &["late"])]);
    }
    store.keep(&events).await.unwrap();

    let pruned = store.prune(&Retention::default(), noon()).await.unwrap();

    assert_eq!(pruned, Pruned { orphans: 900, ..Pruned::default() });
}

pub(crate) async fn of_each_job_so_many_runs_are_kept(ground: &Ground) {
    let store = ground.open().await;
    let mut events = Vec::new();
    for run in 0..450 {
        events.extend(done("settle", run * 1000, 5));
    }
    for run in 0..12 {
        events.extend(failed("settle", run * 1000 + 1, "no"));
    }
    events.extend(done("report", 0, 5));
    store.keep(&events).await.unwrap();
    let mut retention = Retention::default();
    retention.runs_per_job = NonZeroU32::new(10).unwrap();

    let pruned = store.prune(&retention, noon() + SignedDuration::from_hours(1)).await.unwrap();

    assert_eq!(pruned.runs, 442);
    let left = ground.number("SELECT COUNT(*) FROM ELASTICJOB_RUN").await;
    assert_eq!(left, 21);
    let newest = &store.runs(&RunFilter::default()).await.unwrap().rows[0];
    assert_eq!(newest.run_id, Told::of("settle", 449_000).run().to_string());
}

pub(crate) async fn what_others_wrote_is_left_alone_unless_it_is_asked_for(ground: &Ground) {
    let store = ground.open().await;
    let (yes, at) = match ground.kind {
        Kind::Postgres => ("true", "'2020-01-01 00:00:00'"),
        Kind::MariaDb => ("1", "'2020-01-01 00:00:00'"),
        Kind::Sqlite => ("1", "1577836800000"),
    };
    for row in 0..3 {
        ground
            .say(&format!(
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
