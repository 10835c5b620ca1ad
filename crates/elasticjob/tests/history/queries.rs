//! Queries find what was stored.

use elasticjob::job::Outcome;
use std::collections::BTreeSet;

use elasticjob::history::{
    Event, ExecutionFilter, FiresMissed, MissedReason, NameKind, RunFilter, RunState, Sink, Span,
    StatusState, Store, TraceFilter,
};
use jiff::SignedDuration;

use crate::{
    database::TestDatabase,
    events::{SampleAttempt, after, done, failed, noon},
};

async fn ids(store: &Store, filter: RunFilter) -> Vec<String> {
    let runs = store.runs(&filter).await.unwrap().rows;
    runs.into_iter().map(|run| run.run_id).collect()
}

pub(crate) async fn pages_continue_without_gaps_or_duplicates(database: &TestDatabase) {
    let store = database.open().await;
    // Many runs with the same time, and some executions without a run.
    for run in 0..10 {
        store.store(&done(&format!("job-{run}"), (run % 3) * 1000, 5)).await.unwrap();
    }
    database.execute("UPDATE JOB_EXECUTION_LOG SET run_id = NULL WHERE job_name IN ('job-1', 'job-2', 'job-3')").await;
    database
        .execute("DELETE FROM ELASTICJOB_RUN WHERE job_name IN ('job-1', 'job-2', 'job-3')")
        .await;
    let mut filter = RunFilter { limit: Some(3), ..RunFilter::default() };
    let mut seen = Vec::new();

    loop {
        let page = store.runs(&filter).await.unwrap();
        assert!(page.rows.len() <= 3);
        seen.extend(page.rows);
        // Through its text form, as in a client.
        filter.after = page.next.map(|next| next.to_string().parse().unwrap());
        if filter.after.is_none() {
            break;
        }
    }

    let distinct: BTreeSet<&str> = seen.iter().map(|run| &*run.run_id).collect();
    assert_eq!((seen.len(), distinct.len()), (13, 13));
    // On MySQL, Java ElasticJob's rows have whole seconds only.
    let seconds: Vec<i64> = seen.iter().map(|run| run.started_at.unwrap().as_second()).collect();
    assert!(seconds.is_sorted_by(|one, next| one >= next), "{seconds:?}");

    let mut filter = ExecutionFilter { limit: Some(3), ..ExecutionFilter::default() };
    let mut executions = BTreeSet::new();
    loop {
        let page = store.executions(&filter).await.unwrap();
        executions.extend(page.rows.into_iter().map(|execution| execution.id));
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    assert_eq!(executions.len(), 20);
}

pub(crate) async fn runs_are_filtered(database: &TestDatabase) {
    let store = database.open().await;
    store.store(&done("settle", 0, 5)).await.unwrap();
    store.store(&failed("settle", 10_000, "no")).await.unwrap();
    store
        .store(&[SampleAttempt::of("report", 20_000).on("10.0.0.8@-@1-00000002").started()])
        .await
        .unwrap();
    let triggered = SampleAttempt::of("report", 0).late(30_000).triggered(7, Some("jane"));
    store.store(&[triggered.ended(1, (Outcome::Cancelled, Some("enough")))]).await.unwrap();
    let [succeeded, failing, running] = [
        SampleAttempt::of("settle", 0).run().to_string(),
        SampleAttempt::of("settle", 10_000).run().to_string(),
        SampleAttempt::of("report", 20_000).run().to_string(),
    ];
    let triggered = triggered.run().to_string();
    let any = RunFilter::default;

    for (filter, found) in [
        (any(), vec![&triggered, &running, &failing, &succeeded]),
        (RunFilter { job: Some("settle".to_owned()), ..any() }, vec![&failing, &succeeded]),
        (RunFilter { job: Some("nothing".to_owned()), ..any() }, vec![]),
        (RunFilter { state: Some(RunState::Failed), ..any() }, vec![&failing]),
        (RunFilter { state: Some(RunState::Running), ..any() }, vec![&running]),
        (RunFilter { state: Some(RunState::Cancelled), ..any() }, vec![&triggered]),
        (RunFilter { source: Some("trigger".to_owned()), ..any() }, vec![&triggered]),
        (RunFilter { instance: Some("10.0.0.8@-@1-00000002".to_owned()), ..any() }, vec![&running]),
        (
            RunFilter {
                span: Span { since: Some(after(5000)), until: Some(after(15_000)) },
                ..any()
            },
            vec![&failing],
        ),
        (RunFilter { limit: Some(1), ..any() }, vec![&triggered]),
    ] {
        let description = format!("{filter:?}");
        assert_eq!(ids(&store, filter).await.iter().collect::<Vec<_>>(), found, "{description}");
    }
    let triggered = store.run(&triggered).await.unwrap().unwrap().run;
    assert_eq!((triggered.triggered_by.as_deref(), triggered.lateness_ms), (Some("jane"), None));
    assert_eq!(store.run("nothing/1").await.unwrap(), None);
    assert_eq!(store.jobs().await.unwrap(), ["report", "settle"]);
}

pub(crate) async fn executions_and_traces_are_filtered(database: &TestDatabase) {
    let store = database.open().await;
    store.store(&done("settle", 0, 5)).await.unwrap();
    store.store(&failed("report", 10_000, "no")).await.unwrap();
    let attempt = SampleAttempt::of("settle", 0);
    store
        .store(&[
            attempt.status(StatusState::Running, ""),
            attempt.status(StatusState::Finished, ""),
        ])
        .await
        .unwrap();
    store
        .store(&[SampleAttempt::of("report", 10_000).status(StatusState::Error, "no")])
        .await
        .unwrap();
    let any = ExecutionFilter::default;

    for (filter, count) in [
        (any(), 3),
        (ExecutionFilter { job: Some("settle".to_owned()), ..any() }, 2),
        (ExecutionFilter { success: Some(false), ..any() }, 1),
        (ExecutionFilter { ip: Some("10.0.0.7".to_owned()), ..any() }, 3),
        (ExecutionFilter { ip: Some("10.0.0.1".to_owned()), ..any() }, 0),
        (ExecutionFilter { span: Span::since(after(5000)), ..any() }, 1),
    ] {
        let description = format!("{filter:?}");
        assert_eq!(store.executions(&filter).await.unwrap().rows.len(), count, "{description}");
        assert_eq!(store.execution_count(&filter).await.unwrap(), count as i64, "{description}");
    }
    let any = TraceFilter::default;
    for (filter, count) in [
        (any(), 3),
        (TraceFilter { job: Some("report".to_owned()), ..any() }, 1),
        (TraceFilter { state: Some("TASK_FINISHED".to_owned()), ..any() }, 1),
        (TraceFilter { span: Span { since: None, until: Some(after(5000)) }, ..any() }, 2),
    ] {
        let description = format!("{filter:?}");
        assert_eq!(store.traces(&filter).await.unwrap().rows.len(), count, "{description}");
        assert_eq!(store.trace_count(&filter).await.unwrap(), count as i64, "{description}");
    }
    let traces = store.run(&attempt.run().to_string()).await.unwrap().unwrap().traces;
    let states: Vec<&str> = traces.iter().map(|trace| &*trace.state).collect();
    assert_eq!(states, ["TASK_RUNNING", "TASK_FINISHED"]);
}

pub(crate) async fn figures_have_counts_durations_and_delays(database: &TestDatabase) {
    let store = database.open().await;
    for run in 0..100 {
        let attempt = SampleAttempt::of("settle", run * 1000).late(run);
        let ending =
            if run == 99 { (Outcome::Failed, Some("no")) } else { (Outcome::Succeeded, None) };
        store.store(&[attempt.ended(run + 1, ending)]).await.unwrap();
    }
    store.store(&[SampleAttempt::of("settle", 100_000).started()]).await.unwrap();
    store.store(&done("report", 0, 5)).await.unwrap();

    let all = store.figures(&[], Span::since(noon())).await.unwrap();
    let settle = store.figures(&["settle"], Span::since(after(50_000))).await.unwrap();

    let names: Vec<&str> = all.iter().map(|figures| &*figures.job_name).collect();
    assert_eq!(names, ["report", "settle"]);
    let figures = &all[1];
    assert_eq!((figures.runs, figures.done, figures.failed, figures.running), (101, 99, 1, 1));
    assert_eq!(figures.success_permille(), Some(990));
    let durations = figures.duration_ms.unwrap();
    assert_eq!((durations.p50, durations.p95, durations.p99), (50, 95, 99));
    let lateness = figures.lateness_ms.unwrap();
    assert_eq!((lateness.p50, lateness.p95, lateness.p99), (49, 94, 98));
    assert_eq!(figures.last_run, Some(after(100_007)));
    assert_eq!(figures.last_success, Some(after(98_098)));
    assert_eq!((settle.len(), settle[0].runs), (1, 51));
}

pub(crate) async fn overview_queries_cover_many_jobs(database: &TestDatabase) {
    let store = database.open().await;
    for run in 0..4 {
        store.store(&done("settle", run * 1000, 5)).await.unwrap();
    }
    store.store(&failed("a_b", 9000, "no")).await.unwrap();
    store.store(&done("axb", 0, 5)).await.unwrap();

    let last = store.last_runs(&["settle", "never", "a_b"], 2).await.unwrap();
    let attempts = store.attempts(&last).await.unwrap();
    let tally = store.tally(Span::since(after(1000)), SignedDuration::from_millis(6));
    let tally = tally.await.unwrap();

    let actual: Vec<_> = last.iter().map(|run| (&*run.job_name, run.started_at)).collect();
    let settle = [("settle", Some(after(3007))), ("settle", Some(after(2007)))];
    assert_eq!(actual, [&[("a_b", Some(after(9007)))][..], &settle].concat());
    assert_eq!(attempts.len(), 5, "two shards of each successful run, one of the other");
    assert_eq!((tally.runs, tally.done, tally.failed, tally.late), (4, 3, 1, 4));
    assert_eq!(store.brief(&last[0].run_id).await.unwrap().as_ref(), Some(&last[0]));
    assert_eq!(store.names(NameKind::ExecutedJob, "a_").await.unwrap(), ["a_b"]);
    assert_eq!(store.names(NameKind::Ip, "10.").await.unwrap(), ["10.0.0.7"]);
    assert!(store.names(NameKind::TracedJob, "%").await.unwrap().is_empty());
}

pub(crate) async fn similar_failures_form_one_group(database: &TestDatabase) {
    let store = database.open().await;
    for run in 0..5 {
        let why = format!("order {run} not found\nat line {run}");
        store.store(&failed("settle", run * 1000, &why)).await.unwrap();
    }
    store.store(&failed("settle", 9000, "connection refused")).await.unwrap();
    store.store(&failed("report", 9000, "order 7 not found")).await.unwrap();

    let groups = store.failures(None, Span::default(), 2).await.unwrap();
    let of_report = store.failures(Some("report"), Span::since(noon()), 10).await.unwrap();

    assert_eq!((&*groups[0].message, groups[0].count), ("order <n> not found", 5));
    assert_eq!(groups[0].last_run_id, Some(SampleAttempt::of("settle", 4000).run().to_string()));
    assert_eq!((groups[0].first, groups[0].last), (Some(after(7)), Some(after(4007))));
    assert_eq!(groups.len(), 2);
    assert_eq!((of_report.len(), &*of_report[0].job_name), (1, "report"));
}

pub(crate) async fn buckets_count_runs_per_interval_and_state(database: &TestDatabase) {
    let store = database.open().await;
    for run in 0..4 {
        store.store(&done("settle", run * 1000, 5)).await.unwrap();
    }
    store.store(&failed("settle", 61_000, "no")).await.unwrap();

    let minutes =
        store.buckets(None, Span::since(noon()), SignedDuration::from_mins(1)).await.unwrap();
    let nothing =
        store.buckets(Some("report"), Span::default(), SignedDuration::from_mins(1)).await.unwrap();

    let actual: Vec<_> = minutes.iter().map(|it| (it.from, &*it.state, it.runs)).collect();
    assert_eq!(actual, [(noon(), "done", 4), (after(60_000), "failed", 1)]);
    assert_eq!(nothing, []);
}

pub(crate) async fn missed_fires_are_listed(database: &TestDatabase) {
    let store = database.open().await;
    let missed = Event::Missed(FiresMissed {
        job: "settle".parse().unwrap(),
        first: noon(),
        last: after(5000),
        count: 6,
        reason: MissedReason::NoInstance,
        at: after(6000),
    });
    store.store(&[missed.clone(), missed]).await.unwrap();

    let fires = store.missed(Some("settle"), Span::since(noon()), 10).await.unwrap();

    assert_eq!(fires.len(), 1);
    assert_eq!(
        (fires[0].count, &*fires[0].reason, fires[0].last),
        (6, "nobody_there", Some(after(5000)))
    );
}

pub(crate) async fn coalesced_fires_are_not_counted_as_missed(database: &TestDatabase) {
    let store = database.open().await;
    let fires = |reason: MissedReason, count: u64| {
        let job = "settle".parse().unwrap();
        let (first, last, at) = (after(0), after(5000), after(6000));
        Event::Missed(FiresMissed { job, first, last, count, reason, at })
    };
    let reasons = [
        (MissedReason::Coalesced, 9),
        (MissedReason::Unreadable, 1),
        (MissedReason::NotStarted, 2),
    ];
    store.store(&reasons.map(|(reason, count)| fires(reason, count))).await.unwrap();

    let totals = store.tally(Span::default(), SignedDuration::from_secs(1)).await.unwrap();
    assert_eq!((totals.missed, totals.coalesced), (3, 9));
    let listed = store.missed(Some("settle"), Span::default(), 10).await.unwrap();
    let mut listed: Vec<_> =
        listed.iter().map(|it| (it.count, it.is_coalesced(), it.reason_text())).collect();
    listed.sort_unstable();
    let expected = [
        (1, false, "the ledger page of a shard could not be read"),
        (2, false, "shards could not be claimed in time"),
        (9, true, "answered by the run of a later fire"),
    ];
    assert_eq!(listed, expected);
}

pub(crate) async fn gap_reported_by_several_instances_is_stored_once(database: &TestDatabase) {
    let store = database.open().await;
    let gap = |last: i64, count: u64, reason: MissedReason| {
        let (job, first, last, at) =
            ("settle".parse().unwrap(), noon(), after(last), after(last + 1000));
        Event::Missed(FiresMissed { job, first, last, count, reason, at })
    };
    // Each instance checked at another time, in the same batch or another.
    store
        .store(&[gap(5000, 6, MissedReason::NoInstance), gap(4000, 5, MissedReason::NoInstance)])
        .await
        .unwrap();
    store.store(&[gap(7000, 8, MissedReason::NoInstance)]).await.unwrap();
    store
        .store(&[gap(5000, 6, MissedReason::NoInstance), gap(0, 1, MissedReason::Skipped)])
        .await
        .unwrap();

    let fires = store.missed(Some("settle"), Span::since(noon()), 10).await.unwrap();

    let mut actual: Vec<_> = fires.iter().map(|gap| (&*gap.reason, gap.count, gap.last)).collect();
    actual.sort_unstable();
    assert_eq!(actual, [("nobody_there", 8, Some(after(7000))), ("skipped", 1, Some(after(0)))]);
}
