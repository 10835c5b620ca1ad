//! What a node tells of what happens on it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use elasticjob::{
    coordination::trigger::Ask,
    history::{Ending, Event, Lost, Recorder, Sink, Source, StatusState, Why},
    job::{CatchUp, Failover, Job, Misfire, Reason, Retry, Shard},
    node::Node,
    registry::memory::MemoryServer,
    runtime::Clock,
    schedule::Zone,
    testing::Cluster,
};

use crate::shelf::{Mood, Shelf, TokioClock};

const SECOND: Duration = Duration::from_secs(1);

fn job(cron: &str) -> Job {
    Job::named("settle").unwrap().cron(cron).unwrap().shards(2)
}

fn to(shelf: &Arc<Shelf>) -> Recorder {
    Recorder::new().sink("shelf", Arc::clone(shelf) as Arc<dyn Sink>)
}

async fn good(_: Shard) -> Result<(), String> {
    Ok(())
}

/// Statuses as `STATE message`, in order.
fn traces(shelf: &Shelf) -> Vec<String> {
    let statuses = shelf.statuses().into_iter();
    statuses.map(|it| format!("{} {}", it.state.as_str(), it.message).trim().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_is_told_with_its_shards_and_traced_as_the_ancestor_traces_it() {
    let shelf = Shelf::new(Mood::Good);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let node =
        cluster.node(|node| node.history(to(&shelf)).job(job("0 0 6 * * ?"), good)).await.unwrap();

    cluster.advance(20 * SECOND).await;

    let (started, ended) = (shelf.started(), shelf.ended());
    let items: BTreeSet<u32> = started.iter().map(|started| started.item).collect();
    assert_eq!((started.len(), items), (2, BTreeSet::from([0, 1])));
    for started in &started {
        assert_eq!(started.run.to_string(), "settle/1794722400000");
        assert_eq!(started.source, Source::Schedule);
        assert_eq!(started.attempt.reason, Reason::Due);
        assert_eq!(started.at.to_string(), "2026-11-15T06:00:00Z");
        assert_eq!(started.task.instance.server(), "10.0.0.1");
        assert!(!started.host.is_empty());
    }
    assert!(
        ended.iter().all(|ended| ended.ending == Ending::Done && started.contains(&ended.started))
    );
    assert_eq!(
        traces(&shelf),
        ["TASK_STAGING Job 'settle' execute begin.", "TASK_RUNNING", "TASK_FINISHED"]
    );
    let task = shelf.statuses()[0].task.to_string();
    assert!(task.starts_with("settle@-@0,1@-@READY@-@10.0.0.1@-@"), "{task}");
    assert_eq!(node.recording().unwrap().counts()[0].1.recorded, 7);
}

#[tokio::test(start_paused = true)]
async fn every_retry_is_an_attempt_of_its_own_and_the_trace_has_the_last_word() {
    let shelf = Shelf::new(Mood::Good);
    let retrying = job("0 0 6 * * ?").if_shard_fails(Retry::attempts(3).backoff(SECOND, SECOND));
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let handler = async |shard: Shard| match (shard.item, shard.attempt.number.get()) {
        (0, 1..=2) | (1, _) => Err(format!("no {}", shard.attempt.number)),
        _ => Ok(()),
    };
    let _node = cluster.node(|node| node.history(to(&shelf)).job(retrying, handler)).await.unwrap();

    cluster.advance(20 * SECOND).await;

    let mut attempts: Vec<_> = shelf
        .ended()
        .into_iter()
        .map(|ended| {
            let attempt = ended.started.attempt;
            (ended.started.item, attempt.number.get(), attempt.reason, ended.ending)
        })
        .collect();
    attempts.sort_by_key(|(item, number, ..)| (*item, *number));
    let failed = |number: u32| Ending::Failed(format!("no {number}"));
    assert_eq!(
        attempts,
        [
            (0, 1, Reason::Due, failed(1)),
            (0, 2, Reason::Retry, failed(2)),
            (0, 3, Reason::Retry, Ending::Done),
            (1, 1, Reason::Due, failed(1)),
            (1, 2, Reason::Retry, failed(2)),
            (1, 3, Reason::Retry, failed(3)),
        ]
    );
    let ids: BTreeSet<_> = shelf.started().iter().map(|started| started.id).collect();
    assert_eq!(ids.len(), 6);
    assert_eq!(traces(&shelf).last().unwrap(), "TASK_ERROR {1=no 3}");
}

#[tokio::test(start_paused = true)]
async fn a_triggered_run_says_who_triggered_it() {
    let shelf = Shelf::new(Mood::Good);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let _node =
        cluster.node(|node| node.history(to(&shelf)).job(job("0 0 6 * * ?"), good)).await.unwrap();

    let ask = Ask { by: Some("ann".into()), ..Ask::default() };
    let asked = cluster.admin().trigger(&"settle".parse().unwrap(), ask).await.unwrap();
    cluster.advance(SECOND).await;
    cluster.trigger("settle").await;
    cluster.advance(SECOND).await;

    let sources: Vec<Source> =
        shelf.started().iter().map(|started| started.source.clone()).collect();
    let by = |by: Option<&str>| Source::Trigger { by: by.map(ToOwned::to_owned) };
    assert_eq!(sources, [by(Some("ann")), by(Some("ann")), by(None), by(None)]);
    assert_eq!(shelf.started()[0].run, asked.run);
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_shards_says_so_once() {
    let shelf = Shelf::new(Mood::Good);
    let one = job("0/5 0 6 * * ?").shards(1);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let _first =
        cluster.node(|node| node.history(to(&shelf)).job(one.clone(), good)).await.unwrap();
    let _second = cluster.node(|node| node.job(one, good)).await.unwrap();

    cluster.advance(20 * SECOND).await;

    assert_eq!(
        traces(&shelf),
        [
            "TASK_STAGING Job 'settle' execute begin.",
            "TASK_FINISHED Sharding item for job 'settle' is empty."
        ]
    );
    assert!(shelf.statuses()[0].task.items.is_empty());
}

/// Takes seven seconds the first time, none after that.
fn slow_once()
-> impl Fn(Shard) -> std::pin::Pin<Box<dyn Future<Output = Result<(), String>> + Send>>
+ Send
+ Sync
+ 'static {
    let runs = Arc::new(AtomicU32::new(0));
    move |_| {
        let first = runs.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            if first {
                tokio::time::sleep(7 * SECOND).await;
            }
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_due_too_early_is_told_and_made_up_for_as_misfire() {
    let shelf = Shelf::new(Mood::Good);
    let late = job("0/5 * * * * ?").shards(1).if_late(Misfire::RunOnce);
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let _node = cluster.node(|node| node.history(to(&shelf)).job(late, slow_once())).await.unwrap();

    cluster.advance(9 * SECOND).await;

    let reasons: Vec<Reason> =
        shelf.started().iter().map(|started| started.attempt.reason).collect();
    assert_eq!(reasons, [Reason::Due, Reason::Misfire]);
    let traces = traces(&shelf);
    let text = "TASK_FINISHED Previous job 'settle' - shardingItems '[0]' is still running, misfired job will start after previous job completed.";
    assert_eq!(traces[3], text, "{traces:?}");
    let staged = traces.iter().filter(|trace| trace.starts_with("TASK_STAGING")).count();
    let ran = traces.iter().filter(|trace| *trace == "TASK_RUNNING").count();
    assert_eq!((staged, ran), (2, 2), "what makes up is no run of its own to the ancestor");
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_because_it_still_runs_is_told() {
    let shelf = Shelf::new(Mood::Good);
    let skipping = job("0/5 * * * * ?").shards(1).if_late(Misfire::Skip);
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let _node =
        cluster.node(|node| node.history(to(&shelf)).job(skipping, slow_once())).await.unwrap();

    cluster.advance(9 * SECOND).await;

    let missed: Vec<_> = missed(&shelf);
    assert_eq!(missed, [("2026-11-15T06:00:05Z".to_owned(), 1, Why::Skipped)]);
}

fn missed(shelf: &Shelf) -> Vec<(String, u64, Why)> {
    let missed = shelf.events().into_iter().filter_map(|event| match event {
        Event::Missed(missed) => Some((missed.first.to_string(), missed.count, missed.why)),
        _ => None,
    });
    missed.collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_due_while_nobody_was_there_is_told_or_caught_up_with() {
    let shelf = Shelf::new(Mood::Good);
    let hourly = job("0 0 * * * ?").shards(1).if_nobody_was_there(CatchUp::Last);
    let mut cluster = Cluster::at("2026-11-15T05:30:00Z").await;
    let first = cluster.node(|node| node.job(hourly.clone(), good)).await.unwrap();
    cluster.advance_to("2026-11-15T06:30:00Z").await;
    first.stop().await;
    cluster.advance_to("2026-11-15T09:30:00Z").await;

    let _second = cluster.node(|node| node.history(to(&shelf)).job(hourly, good)).await.unwrap();
    cluster.advance(10 * SECOND).await;

    assert_eq!(missed(&shelf), [("2026-11-15T07:00:00Z".to_owned(), 2, Why::NobodyThere)]);
    let caught_up: Vec<(String, Reason)> = shelf
        .started()
        .iter()
        .map(|started| (started.due_at.to_string(), started.attempt.reason))
        .collect();
    assert_eq!(caught_up, [("2026-11-15T09:00:00Z".to_owned(), Reason::CatchUp)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_over_is_told_as_failover() {
    let shelf = Shelf::new(Mood::Good);
    let nightly = job("0 0 6 * * ?").if_node_dies(Failover::TakeOver);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let stuck = async |_: Shard| std::future::pending::<Result<(), String>>().await;
    let first = cluster.node(|node| node.job(nightly.clone(), stuck)).await.unwrap();
    let _second = cluster.node(|node| node.history(to(&shelf)).job(nightly, good)).await.unwrap();

    cluster.advance(12 * SECOND).await;
    drop(first);
    cluster.advance(5 * SECOND).await;

    let runs: Vec<(u32, Reason)> = shelf
        .started()
        .iter()
        .map(|started| (started.attempt.number.get(), started.attempt.reason))
        .collect();
    assert_eq!(runs, [(1, Reason::Due), (2, Reason::Failover)]);
    assert_eq!(shelf.started()[0].run, shelf.started()[1].run);
}

#[tokio::test(start_paused = true)]
async fn what_died_with_its_instance_is_told_by_whoever_is_left_though_nobody_takes_it_over() {
    let (shelf, dying) = (Shelf::new(Mood::Good), Shelf::new(Mood::Good));
    let nightly = job("0 0 6 * * ?").if_node_dies(Failover::Wait);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let stuck = async |_: Shard| std::future::pending::<Result<(), String>>().await;
    let first =
        cluster.node(|node| node.history(to(&dying)).job(nightly.clone(), stuck)).await.unwrap();
    let _second = cluster.node(|node| node.history(to(&shelf)).job(nightly, good)).await.unwrap();

    cluster.advance(12 * SECOND).await;
    drop(first);
    cluster.advance(5 * SECOND).await;

    let lost = |event| if let Event::Lost(lost) = event { Some(lost) } else { None };
    let lost: Vec<Lost> = shelf.events().into_iter().filter_map(lost).collect();
    let begun = &dying.started()[0];
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!((&lost[0].run, lost[0].item), (&begun.run, begun.item));
    assert_eq!(lost[0].instance, begun.task.instance);
    assert!(lost[0].token > begun.token);
}

#[tokio::test(start_paused = true)]
async fn what_outlives_its_time_and_what_is_told_to_end_is_told() {
    let shelf = Shelf::new(Mood::Good);
    let short = job("0 0 6 * * ?").timeout(5 * SECOND);
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let stuck = async |_: Shard| std::future::pending::<Result<(), String>>().await;
    let _node = cluster.node(|node| node.history(to(&shelf)).job(short, stuck)).await.unwrap();

    cluster.advance(12 * SECOND).await;
    let shards = BTreeSet::from([1]);
    cluster.admin().cancel(&"settle".parse().unwrap(), &shards).await.unwrap();
    cluster.advance(30 * SECOND).await;

    let mut endings: Vec<(u32, Ending)> =
        shelf.ended().into_iter().map(|ended| (ended.started.item, ended.ending)).collect();
    endings.sort_by_key(|(item, _)| *item);
    assert_eq!(
        endings,
        [
            (0, Ending::TimedOut("took longer than 5s".into())),
            (1, Ending::Cancelled("cancelled: on request".into())),
        ]
    );
    let last = shelf.statuses().pop().unwrap();
    assert_eq!(last.state, StatusState::Error);
}

#[tokio::test(start_paused = true)]
async fn whatever_the_sink_does_jobs_run_at_the_same_instants() {
    let mut stories = Vec::new();
    for mood in [None, Some(Mood::Good), Some(Mood::Down), Some(Mood::Silent), Some(Mood::Mad)] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&seen);
        let handler = move |shard: Shard| {
            let book = Arc::clone(&book);
            async move {
                book.lock().unwrap().push((shard.due_at.to_string(), shard.item, false));
                tokio::time::sleep(SECOND / 4).await;
                book.lock().unwrap().push((shard.due_at.to_string(), shard.item, true));
                Ok::<(), String>(())
            }
        };
        let mut cluster = Cluster::at("2026-11-15T06:00:00Z").await;
        let node = cluster.node(|node| {
            match mood {
                Some(mood) => node.history(to(&Shelf::new(mood)).queue(50, 1 << 20)),
                None => node,
            }
            .job(job("0/1 * * * * ?"), handler)
        });
        let _node = node.await.unwrap();

        let mut story = Vec::new();
        for _ in 0..600 {
            cluster.advance(SECOND / 10).await;
            let mut now = std::mem::take(&mut *seen.lock().unwrap());
            now.sort();
            story.push(now);
        }
        stories.push(story);
    }

    assert!(stories[0].concat().len() > 200);
    for story in &stories[1..] {
        assert_eq!(*story, stories[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_last_is_kept_when_the_node_stops() {
    let shelf = Shelf::new(Mood::Good);
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let node =
        cluster.node(|node| node.history(to(&shelf)).job(job("0 0 6 * * ?"), good)).await.unwrap();

    cluster.advance(SECOND).await;
    assert!(shelf.events().is_empty(), "it waits for others");
    node.stop().await;

    assert_eq!(shelf.ended().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_ends_after_its_lease_is_told_as_fenced() {
    let shelf = Shelf::new(Mood::Good);
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
        .history(to(&shelf))
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

    assert_eq!(shelf.ended()[0].ending, Ending::Fenced);
    let lost: Vec<_> =
        shelf.statuses().into_iter().filter(|it| it.state == StatusState::Lost).collect();
    assert_eq!(lost.len(), 1);
    assert!(lost[0].message.starts_with("{0=ended after its lease was lost"), "{lost:?}");
}
