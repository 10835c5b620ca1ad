//! The events that a node records.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use elasticjob::{
    coordination::trigger::TriggerRequest,
    history::{AttemptLost, Event, MissedReason, Recorder, Sink, StatusState},
    job::{
        CatchUp, ExpectedShards, Failover, Job, Misfire, Outcome, Retry, RunReason, Shard,
        ShardSelection,
    },
    node::Node,
    registry::{ExpectedVersion, memory::MemoryServer},
    runtime::Clock,
    schedule::Zone,
    testing::Cluster,
};

use crate::test_sink::{Behaviour, TestSink, TokioClock};

const SECOND: Duration = Duration::from_secs(1);

fn job(cron: &str) -> Job {
    Job::named("settle").unwrap().cron(cron).unwrap().shards(2)
}

fn recorder_to(sink: &Arc<TestSink>) -> Recorder {
    Recorder::new().sink("memory", Arc::clone(sink) as Arc<dyn Sink>)
}

async fn succeed(_: Shard) -> Result<(), String> {
    Ok(())
}

/// Statuses as `STATE message`, in order.
fn traces(sink: &TestSink) -> Vec<String> {
    let statuses = sink.statuses().into_iter();
    statuses.map(|it| format!("{} {}", it.state.as_str(), it.message).trim().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn run_is_recorded_with_shards_and_java_traces() {
    let sink = TestSink::new(Behaviour::Good);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(job("0 0 6 * * ?"), succeed))
        .await
        .unwrap();

    cluster.advance(20 * SECOND).await;

    let (started, ended) = (sink.started(), sink.ended());
    let items: BTreeSet<u32> = started.iter().map(|started| started.item).collect();
    assert_eq!((started.len(), items), (2, BTreeSet::from([0, 1])));
    for started in &started {
        assert_eq!(started.run.to_string(), "settle/1794722400000");
        assert_eq!(started.triggered_by, None);
        assert_eq!(started.attempt.reason, RunReason::Schedule);
        assert_eq!(started.at.to_string(), "2026-11-15T06:00:00Z");
        assert_eq!(started.task.instance.server(), "10.0.0.1");
        assert!(!started.host.is_empty());
    }
    assert!(
        ended
            .iter()
            .all(|ended| ended.outcome == Outcome::Succeeded && started.contains(&ended.started))
    );
    assert_eq!(
        traces(&sink),
        ["TASK_STAGING Job 'settle' execute begin.", "TASK_RUNNING", "TASK_FINISHED"]
    );
    let task = sink.statuses()[0].task.to_string();
    assert!(task.starts_with("settle@-@0,1@-@READY@-@10.0.0.1@-@"), "{task}");
    assert_eq!(node.recording().unwrap().counts()[0].1.recorded, 7);
}

#[tokio::test(start_paused = true)]
async fn retries_are_attempts_and_trace_has_last_failure() {
    let sink = TestSink::new(Behaviour::Good);
    let retrying = job("0 0 6 * * ?").retry(Retry::attempts(3).backoff(SECOND, SECOND));
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let handler = async |shard: Shard| match (shard.item, shard.attempt.number.get()) {
        (0, 1..=2) | (1, _) => Err(format!("no {}", shard.attempt.number)),
        _ => Ok(()),
    };
    let _node =
        cluster.node(|node| node.history(recorder_to(&sink)).job(retrying, handler)).await.unwrap();

    cluster.advance(20 * SECOND).await;

    let mut attempts: Vec<_> = sink
        .ended()
        .into_iter()
        .map(|ended| {
            let attempt = ended.started.attempt;
            (
                ended.started.item,
                attempt.number.get(),
                attempt.reason,
                (ended.outcome, ended.message),
            )
        })
        .collect();
    attempts.sort_by_key(|(item, number, ..)| (*item, *number));
    let failed = |number: u32| (Outcome::Failed, Some(format!("no {number}")));
    assert_eq!(
        attempts,
        [
            (0, 1, RunReason::Schedule, failed(1)),
            (0, 2, RunReason::Retry, failed(2)),
            (0, 3, RunReason::Retry, (Outcome::Succeeded, None)),
            (1, 1, RunReason::Schedule, failed(1)),
            (1, 2, RunReason::Retry, failed(2)),
            (1, 3, RunReason::Retry, failed(3)),
        ]
    );
    let ids: BTreeSet<_> = sink.started().iter().map(|started| started.id).collect();
    assert_eq!(ids.len(), 6);
    assert_eq!(traces(&sink).last().unwrap(), "TASK_ERROR {1=no 3}");
}

#[tokio::test(start_paused = true)]
async fn triggered_run_records_its_user() {
    let sink = TestSink::new(Behaviour::Good);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let _node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(job("0 0 6 * * ?"), succeed))
        .await
        .unwrap();

    let request = TriggerRequest { by: Some("ann".into()), ..TriggerRequest::default() };
    let triggered = cluster.admin().trigger(&"settle".parse().unwrap(), request).await.unwrap();
    cluster.advance(SECOND).await;
    cluster.trigger("settle").await;
    cluster.advance(SECOND).await;

    let (ann, unknown) = (Some("ann".to_owned()), None);
    let by: Vec<Option<String>> =
        sink.started().iter().map(|started| started.triggered_by.clone()).collect();
    assert_eq!(by, [ann.clone(), ann, unknown.clone(), unknown]);
    for started in sink.started() {
        assert_eq!(started.attempt.reason, RunReason::Trigger);
    }
    assert_eq!(sink.started()[0].run, triggered.run);
}

#[tokio::test(start_paused = true)]
async fn instance_without_shards_records_that_once() {
    let sink = TestSink::new(Behaviour::Good);
    let one = job("0/5 0 6 * * ?").shards(1);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let _first = cluster
        .node(|node| node.history(recorder_to(&sink)).job(one.clone(), succeed))
        .await
        .unwrap();
    let _second = cluster.node(|node| node.job(one, succeed)).await.unwrap();

    cluster.advance(20 * SECOND).await;

    assert_eq!(
        traces(&sink),
        [
            "TASK_STAGING Job 'settle' execute begin.",
            "TASK_FINISHED Sharding item for job 'settle' is empty."
        ]
    );
    assert!(sink.statuses()[0].task.items.is_empty());
}

/// Takes this long the first time, and no time after that.
fn slow_once(
    first: Duration,
) -> impl Fn(Shard) -> std::pin::Pin<Box<dyn Future<Output = Result<(), String>> + Send>>
+ Send
+ Sync
+ 'static {
    let runs = Arc::new(AtomicU32::new(0));
    move |_| {
        let is_first = runs.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            if is_first {
                tokio::time::sleep(first).await;
            }
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn misfire_is_traced_and_compensated() {
    let sink = TestSink::new(Behaviour::Good);
    let late = job("0/5 * * * * ?").shards(1).misfire(Misfire::RunOnce);
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let _node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(late, slow_once(7 * SECOND)))
        .await
        .unwrap();

    cluster.advance(9 * SECOND).await;

    let reasons: Vec<RunReason> =
        sink.started().iter().map(|started| started.attempt.reason).collect();
    assert_eq!(reasons, [RunReason::Schedule, RunReason::Misfire]);
    let traces = traces(&sink);
    let text = "TASK_FINISHED Previous job 'settle' - shardingItems '[0]' is still running, misfired job will start after previous job completed.";
    assert_eq!(traces[3], text, "{traces:?}");
    let staged = traces.iter().filter(|trace| trace.starts_with("TASK_STAGING")).count();
    let ran = traces.iter().filter(|trace| *trace == "TASK_RUNNING").count();
    assert_eq!(
        (staged, ran),
        (2, 2),
        "to Java ElasticJob, misfire compensation is no separate run"
    );
}

#[tokio::test(start_paused = true)]
async fn skipped_fire_is_recorded_as_missed() {
    let sink = TestSink::new(Behaviour::Good);
    let skipping = job("0/5 * * * * ?").shards(1).misfire(Misfire::Skip);
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let _node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(skipping, slow_once(7 * SECOND)))
        .await
        .unwrap();

    cluster.advance(9 * SECOND).await;

    let missed: Vec<_> = missed(&sink);
    assert_eq!(missed, [("2026-11-15T06:00:05Z".to_owned(), 1, MissedReason::Skipped)]);
}

#[tokio::test(start_paused = true)]
async fn fires_answered_by_one_run_are_recorded_with_their_count() {
    let sink = TestSink::new(Behaviour::Good);
    let late = job("0/5 * * * * ?").shards(1).misfire(Misfire::RunOnce);
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let _node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(late, slow_once(22 * SECOND)))
        .await
        .unwrap();

    cluster.advance(40 * SECOND).await;

    // The run of :00 ended at :22; then :20 ran, and answered :05, :10 and :15.
    let expected = [("2026-11-15T06:00:05Z".to_owned(), 3, MissedReason::Coalesced)];
    assert_eq!(missed(&sink), expected);
}

#[tokio::test(start_paused = true)]
async fn skipped_fires_are_not_recorded_a_second_time_by_the_next_run() {
    let sink = TestSink::new(Behaviour::Good);
    let skipping = job("0/5 * * * * ?").shards(1).misfire(Misfire::Skip);
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let _node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(skipping, slow_once(22 * SECOND)))
        .await
        .unwrap();

    cluster.advance(40 * SECOND).await;

    let skipped = |second: &str| (format!("2026-11-15T06:00:{second}Z"), 1, MissedReason::Skipped);
    assert_eq!(missed(&sink), ["05", "10", "15", "20"].map(skipped));
}

#[tokio::test(start_paused = true)]
async fn attempt_records_how_many_shards_its_run_should_have() {
    let sink = TestSink::new(Behaviour::Good);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let _node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(job("0 0 6 * * ?").shards(3), succeed))
        .await
        .unwrap();
    cluster.admin().disable_shard(&"settle".parse().unwrap(), 2).await.unwrap();

    cluster.advance(20 * SECOND).await;

    let started = sink.started();
    let expected: Vec<_> = started.iter().map(|started| started.expected).collect();
    let two = Some(ExpectedShards { tracked: 2, untracked: 0 });
    assert_eq!(expected, [two, two], "the disabled shard is not expected");
}

#[tokio::test(start_paused = true)]
async fn fire_of_an_unreadable_shard_is_recorded_as_missed() {
    let sink = TestSink::new(Behaviour::Good);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let _node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(job("0 0 * * * ?").shards(2), succeed))
        .await
        .unwrap();
    cluster.advance(20 * SECOND).await;
    let page = "/test~ledger/settle/1".parse().unwrap();
    cluster.registry().set(&page, "{".into(), ExpectedVersion::Any).await.unwrap();

    cluster.advance_to("2026-11-15T07:00:05Z").await;

    let expected = [("2026-11-15T07:00:00Z".to_owned(), 1, MissedReason::Unreadable)];
    assert_eq!(missed(&sink), expected);
    let ran = sink.started().into_iter().filter(|it| it.due_at.to_string().contains("T07"));
    let ran: Vec<_> = ran.map(|it| (it.item, it.expected.map(|it| it.tracked))).collect();
    assert_eq!(ran, [(0, Some(2))], "a run that lacks a shard can be told");
}

fn missed(sink: &TestSink) -> Vec<(String, u64, MissedReason)> {
    let missed = sink.events().into_iter().filter_map(|event| match event {
        Event::Missed(missed) => Some((missed.first.to_string(), missed.count, missed.reason)),
        _ => None,
    });
    missed.collect()
}

#[tokio::test(start_paused = true)]
async fn fires_without_instance_are_missed_or_caught_up() {
    let sink = TestSink::new(Behaviour::Good);
    let hourly = job("0 0 * * * ?").shards(1).catch_up(CatchUp::Last);
    let mut cluster = Cluster::at("2026-11-15T05:30:00Z").await;
    let first = cluster.node(|node| node.job(hourly.clone(), succeed)).await.unwrap();
    cluster.advance_to("2026-11-15T06:30:00Z").await;
    first.stop().await;
    cluster.advance_to("2026-11-15T09:30:00Z").await;

    let _second =
        cluster.node(|node| node.history(recorder_to(&sink)).job(hourly, succeed)).await.unwrap();
    cluster.advance(10 * SECOND).await;

    assert_eq!(missed(&sink), [("2026-11-15T07:00:00Z".to_owned(), 2, MissedReason::NoInstance)]);
    let caught_up: Vec<(String, RunReason)> = sink
        .started()
        .iter()
        .map(|started| (started.due_at.to_string(), started.attempt.reason))
        .collect();
    assert_eq!(caught_up, [("2026-11-15T09:00:00Z".to_owned(), RunReason::CatchUp)]);
}

#[tokio::test(start_paused = true)]
async fn takeover_is_recorded_as_failover() {
    let sink = TestSink::new(Behaviour::Good);
    let nightly = job("0 0 6 * * ?").failover(Failover::TakeOver);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let stuck = async |_: Shard| std::future::pending::<Result<(), String>>().await;
    let first = cluster.node(|node| node.job(nightly.clone(), stuck)).await.unwrap();
    let _second =
        cluster.node(|node| node.history(recorder_to(&sink)).job(nightly, succeed)).await.unwrap();

    cluster.advance(12 * SECOND).await;
    drop(first);
    cluster.advance(5 * SECOND).await;

    let runs: Vec<(u32, RunReason)> = sink
        .started()
        .iter()
        .map(|started| (started.attempt.number.get(), started.attempt.reason))
        .collect();
    assert_eq!(runs, [(1, RunReason::Schedule), (2, RunReason::Failover)]);
    assert_eq!(sink.started()[0].run, sink.started()[1].run);
}

#[tokio::test(start_paused = true)]
async fn surviving_instance_records_lost_shard_without_failover() {
    let (sink, dying) = (TestSink::new(Behaviour::Good), TestSink::new(Behaviour::Good));
    let nightly = job("0 0 6 * * ?").failover(Failover::Wait);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let stuck = async |_: Shard| std::future::pending::<Result<(), String>>().await;
    let first = cluster
        .node(|node| node.history(recorder_to(&dying)).job(nightly.clone(), stuck))
        .await
        .unwrap();
    let _second =
        cluster.node(|node| node.history(recorder_to(&sink)).job(nightly, succeed)).await.unwrap();

    cluster.advance(12 * SECOND).await;
    drop(first);
    cluster.advance(5 * SECOND).await;

    let lost = |event| if let Event::Lost(lost) = event { Some(lost) } else { None };
    let lost: Vec<AttemptLost> = sink.events().into_iter().filter_map(lost).collect();
    let lost_attempt = &dying.started()[0];
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!((&lost[0].run, lost[0].item), (&lost_attempt.run, lost_attempt.item));
    assert_eq!(lost[0].instance, lost_attempt.task.instance);
    assert!(lost[0].token > lost_attempt.token);
}

#[tokio::test(start_paused = true)]
async fn timeout_and_cancellation_are_recorded() {
    let sink = TestSink::new(Behaviour::Good);
    let short = job("0 0 6 * * ?").timeout(5 * SECOND);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let stuck = async |_: Shard| std::future::pending::<Result<(), String>>().await;
    let _node =
        cluster.node(|node| node.history(recorder_to(&sink)).job(short, stuck)).await.unwrap();

    cluster.advance(12 * SECOND).await;
    let shards = ShardSelection::only([1]).unwrap();
    cluster.admin().cancel(&"settle".parse().unwrap(), &shards).await.unwrap();
    cluster.advance(30 * SECOND).await;

    let mut ended: Vec<(u32, Outcome, Option<String>)> = sink
        .ended()
        .into_iter()
        .map(|ended| (ended.started.item, ended.outcome, ended.message))
        .collect();
    ended.sort_by_key(|(item, ..)| *item);
    assert_eq!(
        ended,
        [
            (0, Outcome::TimedOut, Some("took longer than 5s".to_owned())),
            (1, Outcome::Cancelled, Some("cancelled: on request".to_owned())),
        ]
    );
    let last = sink.statuses().pop().unwrap();
    assert_eq!(last.state, StatusState::Error);
}

#[tokio::test(start_paused = true)]
async fn failing_sink_does_not_delay_jobs() {
    let mut timelines = Vec::new();
    for behaviour in [
        None,
        Some(Behaviour::Good),
        Some(Behaviour::Down),
        Some(Behaviour::Hangs),
        Some(Behaviour::Panics),
    ] {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&calls);
        let handler = move |shard: Shard| {
            let recorded = Arc::clone(&recorded);
            async move {
                recorded.lock().unwrap().push((shard.due_at.to_string(), shard.item, false));
                tokio::time::sleep(SECOND / 4).await;
                recorded.lock().unwrap().push((shard.due_at.to_string(), shard.item, true));
                Ok::<(), String>(())
            }
        };
        let mut cluster = Cluster::at("2026-11-15T06:00:00Z").await;
        let node = cluster.node(|node| {
            match behaviour {
                Some(behaviour) => {
                    node.history(recorder_to(&TestSink::new(behaviour)).queue(50, 1 << 20))
                }
                None => node,
            }
            .job(job("0/1 * * * * ?"), handler)
        });
        let _node = node.await.unwrap();

        let mut timeline = Vec::new();
        for _ in 0..600 {
            cluster.advance(SECOND / 10).await;
            let mut now = std::mem::take(&mut *calls.lock().unwrap());
            now.sort();
            timeline.push(now);
        }
        timelines.push(timeline);
    }

    assert!(timelines[0].concat().len() > 200);
    for timeline in &timelines[1..] {
        assert_eq!(*timeline, timelines[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn last_events_are_stored_when_node_stops() {
    let sink = TestSink::new(Behaviour::Good);
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let node = cluster
        .node(|node| node.history(recorder_to(&sink)).job(job("0 0 6 * * ?"), succeed))
        .await
        .unwrap();

    cluster.advance(SECOND).await;
    assert!(sink.events().is_empty(), "the batch waits for more events");
    node.stop().await;

    assert_eq!(sink.ended().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn attempt_ending_after_lease_is_recorded_as_fenced() {
    let sink = TestSink::new(Behaviour::Good);
    let clock = Arc::new(TokioClock::new());
    let server =
        MemoryServer::new(Arc::clone(&clock) as Arc<dyn Clock>).session_timeout(10 * SECOND);
    let registry = server.join("test".parse().unwrap()).await.unwrap();
    let link = registry.link();
    let stuck = async |_: Shard| std::future::pending::<Result<(), String>>().await;
    let running = Node::on(Arc::new(registry))
        .address(std::net::Ipv4Addr::new(10, 0, 0, 1))
        .clock(clock)
        .zone(Zone::utc())
        .history(recorder_to(&sink))
        .job(job("0/5 * * * * ?").shards(1), stuck)
        .start()
        .await
        .unwrap();

    tokio::time::sleep(7 * SECOND).await;
    link.cut();
    tokio::time::sleep(20 * SECOND).await;
    link.heal();
    tokio::time::sleep(SECOND / 2).await;
    drop(running);

    let ended = &sink.ended()[0];
    assert_eq!(ended.outcome, Outcome::Fenced);
    assert!(ended.message.as_ref().unwrap().contains("lease was lost"));
    let lost: Vec<_> =
        sink.statuses().into_iter().filter(|it| it.state == StatusState::Lost).collect();
    assert_eq!(lost.len(), 1);
    assert!(lost[0].message.starts_with("{0=ended after its lease was lost"), "{lost:?}");
}
