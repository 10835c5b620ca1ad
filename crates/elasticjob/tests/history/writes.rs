//! Events are stored correctly in any order.

use elasticjob::{
    history::{
        AttemptId, AttemptLost, Event, OutputCut, OutputPosition, RunFilter, RunState, Sink, Span,
        StatusState, TraceFilter,
    },
    job::{FencingToken, Outcome, RunReason},
    runtime::{Clock, SystemClock},
};
use jiff::SignedDuration;
use tokio::task::JoinSet;

use crate::{
    database::TestDatabase,
    events::{SampleAttempt, done, noon},
};

pub(crate) async fn run_state_follows_last_attempts_of_shards(database: &TestDatabase) {
    let store = database.open().await;
    let (zero, one) = (SampleAttempt::of("settle", 0), SampleAttempt::of("settle", 0).item(1));
    let id = zero.run().to_string();
    let run = async || store.run(&id).await.unwrap().unwrap().run;

    store.store(&[zero.started(), one.started()]).await.unwrap();
    let started = run().await;
    store.store(&[zero.ended(5, (Outcome::Succeeded, None))]).await.unwrap();
    store.store(&[one.ended(30, (Outcome::Failed, Some("no such order")))]).await.unwrap();
    let failed = run().await;
    let retry = one.again(RunReason::Retry, 100).late(100);
    store.store(&[retry.started()]).await.unwrap();
    let retried = run().await;
    store.store(&[retry.ended(20, (Outcome::Succeeded, None))]).await.unwrap();
    let succeeded = run().await;

    let states = [&started, &failed, &retried, &succeeded].map(|run| run.state);
    assert_eq!(states, [RunState::Running, RunState::Failed, RunState::Running, RunState::Done]);
    assert_eq!((started.shards, started.done, started.ended_at), (2, 0, None));
    assert_eq!(
        (failed.done, failed.failed, failed.failure.as_deref()),
        (1, 1, Some("no such order"))
    );
    assert_eq!((failed.duration_ms, failed.lateness_ms), (Some(30), Some(7)));
    assert_eq!(
        (succeeded.done, succeeded.failed, succeeded.attempts, succeeded.failure),
        (2, 0, 3, None)
    );
    assert_eq!((succeeded.duration_ms, succeeded.lateness_ms), (Some(113), Some(7)));
    assert_eq!(succeeded.sharding_total_count, Some(2));
}

pub(crate) async fn duplicate_event_is_stored_once(database: &TestDatabase) {
    let store = database.open().await;
    let attempt = SampleAttempt::of("settle", 0);
    let mut batch = done("settle", 0, 5);
    batch.push(attempt.status(StatusState::Running, ""));
    batch.push(attempt.printed(0, &["hello"]));
    batch.extend(batch.clone());

    store.store(&batch).await.unwrap();
    let before = store.run(&attempt.run().to_string()).await.unwrap().unwrap();
    store.store(&batch).await.unwrap();
    let after = store.run(&attempt.run().to_string()).await.unwrap().unwrap();

    assert_eq!(before, after);
    assert_eq!((after.executions.len(), after.traces.len()), (2, 1));
    assert_eq!(database.scalar("SELECT COUNT(*) FROM ELASTICJOB_OUTPUT").await, 1);
}

pub(crate) async fn end_stored_before_start_stays(database: &TestDatabase) {
    let store = database.open().await;
    let attempt = SampleAttempt::of("settle", 0);

    store.store(&[attempt.ended(5, (Outcome::TimedOut, Some("after 5 ms")))]).await.unwrap();
    store.store(&[attempt.started()]).await.unwrap();

    let details = store.run(&attempt.run().to_string()).await.unwrap().unwrap();
    let [execution] = &details.executions[..] else { panic!("{details:?}") };
    assert_eq!(execution.outcome, Some(Outcome::TimedOut));
    assert_eq!(execution.failure_cause.as_deref(), Some("after 5 ms"));
    assert_eq!(details.run.state, RunState::Failed);
}

pub(crate) async fn shard_completed_by_failover_is_done(database: &TestDatabase) {
    let store = database.open().await;
    let killed = SampleAttempt::of("settle", 0);
    let taken = killed.on("10.0.0.8@-@1-00000002").again(RunReason::Failover, 200).late(3000);

    // The first attempt has no end.
    store
        .store(&[killed.started(), taken.started(), taken.ended(5, (Outcome::Succeeded, None))])
        .await
        .unwrap();

    let details = store.run(&killed.run().to_string()).await.unwrap().unwrap();
    assert_eq!(details.run.state, RunState::Done);
    let sources: Vec<&str> =
        details.executions.iter().map(|execution| &*execution.execution_source).collect();
    assert_eq!(sources, ["NORMAL_TRIGGER", "FAILOVER"]);
    assert_eq!(details.executions[1].instance.as_deref(), Some("10.0.0.8@-@1-00000002"));
}

pub(crate) async fn taken_over_attempt_is_lost_until_its_late_end(database: &TestDatabase) {
    let store = database.open().await;
    let attempt = SampleAttempt::of("settle", 0);
    let again = attempt.again(RunReason::Failover, 200).on("10.0.0.8@-@1-00000002").late(5000);
    let id = attempt.run().to_string();
    let outcomes = async || {
        let executions = store.run(&id).await.unwrap().unwrap().executions;
        executions.into_iter().map(|execution| execution.outcome).collect::<Vec<_>>()
    };

    store.store(&[attempt.started()]).await.unwrap();
    store.store(&[again.started()]).await.unwrap();
    let taken_over = outcomes().await;
    store.store(&[attempt.started(), again.ended(5, (Outcome::Succeeded, None))]).await.unwrap();
    let run = store.run(&id).await.unwrap().unwrap();
    store.store(&[attempt.ended(9000, (Outcome::Fenced, Some("fenced")))]).await.unwrap();

    let lost = Some(Outcome::Lost);
    assert_eq!(taken_over, [lost, None]);
    assert_eq!((run.run.state, run.run.failure), (RunState::Done, None));
    assert_eq!(run.executions[0].outcome, lost);
    assert!(run.executions[0].failure_cause.as_deref().unwrap().contains("was gone"));
    assert_eq!(outcomes().await, [Some(Outcome::Fenced), Some(Outcome::Succeeded)]);
}

pub(crate) async fn lost_event_marks_attempts_of_earlier_claims(database: &TestDatabase) {
    let store = database.open().await;
    let (dead, other) = (SampleAttempt::of("settle", 0), SampleAttempt::of("settle", 0).item(1));
    let gone = |token: i64| {
        Event::Lost(AttemptLost {
            run: dead.run(),
            item: 0,
            instance: "10.0.0.7@-@4711".parse().unwrap(),
            token: FencingToken::new(token),
            at: noon(),
        })
    };
    let run = async || store.run(&dead.run().to_string()).await.unwrap().unwrap().run;

    // Another instance's event may arrive first.
    store.store(&[gone(i64::MAX)]).await.unwrap();
    store
        .store(&[dead.started(), other.started(), other.ended(5, (Outcome::Succeeded, None))])
        .await
        .unwrap();
    store.store(&[gone(1)]).await.unwrap();
    let before = run().await.state;
    store.store(&[gone(i64::MAX)]).await.unwrap();
    let lost = run().await;
    store.store(&[dead.ended(90_000, (Outcome::Succeeded, None))]).await.unwrap();

    assert_eq!(before, RunState::Running, "a later claim continues");
    assert_eq!((lost.state, lost.done, lost.failed), (RunState::Failed, 1, 1));
    assert_eq!(lost.failure.unwrap(), "its instance was gone before it ended");
    assert_eq!(run().await.state, RunState::Done);
}

pub(crate) async fn open_attempt_is_lost_once_its_shard_starts_again(database: &TestDatabase) {
    let store = database.open().await;
    let (dead, other) = (SampleAttempt::of("settle", 0), SampleAttempt::of("settle", 0).item(1));
    let id = dead.run().to_string();
    let now = noon() + SignedDuration::from_mins(2);
    let run = async || store.run(&id).await.unwrap().unwrap().run;
    let succeeded = [other.started(), other.ended(5, (Outcome::Succeeded, None))];
    store.store(&[&[dead.started()][..], &succeeded].concat()).await.unwrap();

    // Other jobs, and other shards of this job, do not matter.
    let next = SampleAttempt::of("settle", 60_000);
    store
        .store(&[SampleAttempt::of("ship", 60_000).started(), next.item(1).started()])
        .await
        .unwrap();
    let before = (store.mark_lost(now).await.unwrap(), run().await.state);
    store.store(&[next.started()]).await.unwrap();
    let too_soon = store.mark_lost(noon()).await.unwrap();
    let marked = (store.mark_lost(now).await.unwrap(), store.mark_lost(now).await.unwrap());
    let lost = run().await;
    let still = store.run(&next.run().to_string()).await.unwrap().unwrap().run;
    store.store(&[dead.ended(90_000, (Outcome::Succeeded, None))]).await.unwrap();

    assert_eq!(before, (0, RunState::Running));
    assert_eq!((too_soon, marked), (0, (1, 0)));
    assert_eq!((lost.state, lost.done, lost.failed), (RunState::Failed, 1, 1));
    assert!(lost.failure.unwrap().starts_with("its instance was gone before it ended"));
    assert_eq!(still.state, RunState::Running);
    assert_eq!((run().await.state, run().await.failure), (RunState::Done, None));
}

pub(crate) async fn run_without_every_expected_shard_is_incomplete(database: &TestDatabase) {
    let store = database.open().await;
    let zero = SampleAttempt::of("settle", 0).expecting(2, 1);
    // A part of a trigger that had to wait expects only what is left, and a takeover knows nothing.
    let one = SampleAttempt::of("settle", 0).item(1).expecting(1, 0);
    let taken_over = SampleAttempt { expected: None, ..one.again(RunReason::Failover, 101) };
    let complete = SampleAttempt::of("report", 0).expecting(1, 0);
    let id = zero.run().to_string();
    let run = async || store.run(&id).await.unwrap().unwrap().run;
    let listed = async |state| {
        let filter = RunFilter { state: Some(state), ..RunFilter::default() };
        store.runs(&filter).await.unwrap().rows.len()
    };
    let succeed =
        |attempt: &SampleAttempt| [attempt.started(), attempt.ended(5, (Outcome::Succeeded, None))];

    store.store(&[succeed(&zero), succeed(&complete)].concat()).await.unwrap();
    let incomplete = run().await;
    assert_eq!((incomplete.state, incomplete.shards), (RunState::Incomplete, 1));
    assert_eq!((incomplete.expected_shards, incomplete.untracked_shards), (Some(2), Some(1)));
    assert_eq!((listed(RunState::Done).await, listed(RunState::Incomplete).await), (1, 1));
    let totals = store.tally(Span::default(), SignedDuration::from_secs(1)).await.unwrap();
    assert_eq!((totals.runs, totals.done, totals.incomplete), (2, 1, 1));
    let figures = store.figures(&["settle"], Span::default()).await.unwrap().remove(0);
    assert_eq!((figures.done, figures.incomplete, figures.last_success), (0, 1, None));
    assert_eq!(figures.success_permille(), Some(0));
    let hour = SignedDuration::from_hours(1);
    let buckets = store.buckets(Some("settle"), Span::default(), hour).await.unwrap();
    assert_eq!((buckets.len(), buckets[0].state.as_str()), (1, "incomplete"));

    store.store(&[one.started()]).await.unwrap();
    store.store(&succeed(&taken_over)).await.unwrap();
    let done = run().await;
    assert_eq!((done.state, done.expected_shards), (RunState::Done, Some(2)));
    assert_eq!((listed(RunState::Done).await, listed(RunState::Incomplete).await), (2, 0));
}

/// The other instance may be about to report that it has started.
pub(crate) async fn run_whose_last_shard_just_ended_is_still_running(database: &TestDatabase) {
    let store = database.open().await;
    let due = SystemClock.now() - SignedDuration::from_secs(5);
    let zero = SampleAttempt { due, ..SampleAttempt::of("settle", 0).expecting(2, 0) };

    store.store(&[zero.started(), zero.ended(5, (Outcome::Succeeded, None))]).await.unwrap();

    let run = store.run(&zero.run().to_string()).await.unwrap().unwrap().run;
    assert_eq!(run.state, RunState::Running);
    let totals = store.tally(Span::default(), SignedDuration::from_secs(60)).await.unwrap();
    assert_eq!((totals.running, totals.incomplete, totals.done), (1, 0, 0));
}

pub(crate) async fn concurrent_writers_agree_on_run_state(database: &TestDatabase) {
    const RUNS: i64 = 30;
    let mut writers = JoinSet::new();
    for item in 0..4 {
        let store = database.open().await;
        writers.spawn(async move {
            for run in 0..RUNS {
                let mut attempt = SampleAttempt::of("settle", run * 1000).item(item);
                attempt.shards = 4;
                store.store(&[attempt.started()]).await.unwrap();
                store.store(&[attempt.ended(5, (Outcome::Succeeded, None))]).await.unwrap();
            }
        });
    }
    writers.join_all().await;

    let runs = database.open().await.runs(&RunFilter::default()).await.unwrap().rows;

    assert_eq!(runs.len() as i64, RUNS);
    for run in runs {
        assert_eq!((run.state, run.shards, run.done), (RunState::Done, 4, 4), "{run:?}");
    }
}

pub(crate) async fn long_values_are_truncated_and_stored(database: &TestDatabase) {
    let store = database.open().await;
    let name = "报".repeat(150);
    let mut attempt = SampleAttempt::of(&name, 0);
    attempt.shards = 500;
    let cause = format!("{}\0🔥{}", "失败".repeat(1000), "x".repeat(5000));
    let mut task = attempt.task();
    task.items = (0..500).collect();
    let status = elasticjob::history::Status {
        run: attempt.run(),
        task,
        state: StatusState::Error,
        message: cause.clone(),
        at: attempt.due,
    };

    store
        .store(&[
            attempt.ended(5, (Outcome::Failed, Some(&cause))),
            Event::Status(status),
            attempt.printed(0, &["nothing\0 at \"all\" \\ 🔥"]),
        ])
        .await
        .unwrap();

    let details = store.run(&attempt.run().to_string()).await.unwrap().unwrap();
    let cause = details.executions[0].failure_cause.clone().unwrap();
    assert_eq!(cause.chars().count(), 4000);
    assert!(cause.starts_with("失败") && cause.contains('🔥') && cause.ends_with("x…"));
    assert_eq!(details.run.job_name.chars().count(), 100);
    let filter = TraceFilter { job: Some(name), ..TraceFilter::default() };
    let traces = store.traces(&filter).await.unwrap().rows;
    assert!(traces[0].sharding_items.ends_with(", …]"), "{traces:?}");
    assert_eq!(traces[0].task_id.chars().count(), 255);
    let output = store.output(&attempt.run().to_string(), None, &OutputPosition::default()).await;
    assert_eq!(output.unwrap().lines[0].text, "nothing\u{fffd} at \"all\" \\ 🔥");
}

pub(crate) async fn output_can_be_read_while_run_continues(database: &TestDatabase) {
    let store = database.open().await;
    let (zero, one) = (SampleAttempt::of("settle", 0), SampleAttempt::of("settle", 0).item(1));
    let id = zero.run().to_string();
    let texts = |lines: Vec<elasticjob::history::OutputLine>| -> Vec<String> {
        lines.into_iter().map(|line| format!("{}: {}", line.sharding_item, line.text)).collect()
    };

    store.store(&[zero.printed(0, &["a", "b"]), one.printed(0, &["c"])]).await.unwrap();
    let first = store.output(&id, None, &OutputPosition::default()).await.unwrap();
    store.store(&[zero.printed(1, &["d"])]).await.unwrap();
    let second = store.output(&id, None, &first.position).await.unwrap();
    let third = store.output(&id, None, &second.position).await.unwrap();
    let of_one = store.output(&id, Some(1), &OutputPosition::default()).await.unwrap();

    assert_eq!(texts(first.lines), ["0: a", "0: b", "1: c"]);
    assert_eq!(texts(second.lines), ["0: d"]);
    assert_eq!(texts(third.lines), [""; 0]);
    assert_eq!(texts(of_one.lines), ["1: c"]);
}

pub(crate) async fn cut_output_is_noted_once_and_stays_deleted(database: &TestDatabase) {
    let store = database.open().await;
    let attempt = SampleAttempt::of("settle", 0);
    let shard = attempt.shard();
    let cut = |to, bytes| {
        Event::Cut(OutputCut {
            id: AttemptId::of(&shard),
            run: shard.run.clone(),
            item: 0,
            from: 1,
            to,
            bytes,
        })
    };
    let parts: Vec<Event> =
        (0..5).map(|part| attempt.printed(part, &[&part.to_string()])).collect();

    store.store(&parts).await.unwrap();
    store.store(&[cut(3, 200), cut(4, 300)]).await.unwrap();
    store.store(&[parts[2].clone(), cut(3, 200)]).await.unwrap();

    let output = store.output(&attempt.run().to_string(), None, &OutputPosition::default()).await;
    let lines = output.unwrap().lines;
    let texts: Vec<&str> = lines.iter().map(|line| &*line.text).collect();
    assert_eq!(texts, ["0", "… 300 bytes omitted …", "4"]);
    assert_eq!(database.scalar("SELECT COUNT(*) FROM ELASTICJOB_OUTPUT").await, 2);
}
