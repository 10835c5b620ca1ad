//! L2, L7, L8, L14, L15, L22: the defects by which Java ElasticJob loses or delays a run, or cannot identify it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    coordination::{ledger::LedgerState, tree::ShardNode},
    execution::{Execution, Failure, OnceListener},
    history::{Event, Sink, SinkError},
    job::{MaxTimeDiff, Misfire, RunId, RunReason},
    registry::memory::MemoryServer,
};

use crate::{
    cluster::{Cluster, RECHECK_SECONDS, clock, fire, job},
    members::with_failover,
    nodes::TestHandler,
};

#[tokio::test(start_paused = true)]
async fn l02_failed_shard_is_released_and_stuck_java_shard_blocks_no_other() {
    let cluster = Cluster::new().await;
    let failing = TestHandler::failing();
    let (node, _connection) = cluster.node(1, with_failover(1), &failing).await;
    cluster.advance_seconds(5).await;
    let parts = [ShardNode::Running, ShardNode::Failover, ShardNode::Failovering];
    for part in parts {
        assert!(!cluster.exists(&cluster.tree.shard(0, part)).await, "{part:?}");
    }
    assert_eq!(cluster.page(0).await.state, LedgerState::Failed);
    cluster.advance_seconds(5).await;
    assert_eq!(failing.attempts().len(), 2, "its next fire runs");
    cluster.stop(node).await;

    // Java 3.0.6 keeps `running` when a shard failed, and stays alive.
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    let one = cluster.join(1, with_failover(4)).await;
    cluster.settle().await;
    java.mark_running(&cluster.tree, 0).await;
    cluster.settle().await;
    let before = cluster.owners(4).await;
    let two = cluster.join(2, with_failover(4)).await;
    cluster.settle().await;
    let after = cluster.owners(4).await;
    assert_eq!(after[0], before[0], "the stuck shard keeps its owner");
    assert!(after[1..].contains(&two.id()), "the other shards are reassigned: {after:?}");
    assert!(!two.run(&fire(1)).await.is_empty() && !one.run(&fire(1)).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn l07_misfire_runs_once_right_after_the_run_it_waited_for() {
    let cluster = Cluster::new().await;
    let slow = TestHandler::blocked();
    let every_two = job(1).cron("0/2 * * * * ?").unwrap().misfire(Misfire::RunOnce);
    let (node, _connection) = cluster.node(1, every_two, &slow).await;
    // The run starts at :02 and ends at :07; :04 and :06 come due meanwhile.
    cluster.advance_seconds(7).await;
    slow.unblock();
    cluster.settle().await;
    let due: Vec<_> =
        slow.attempts().into_iter().map(|attempt| (attempt.due_at, attempt.reason)).collect();
    assert_eq!(
        due,
        [
            ("2026-11-15T06:00:02Z".to_owned(), RunReason::Schedule),
            ("2026-11-15T06:00:06Z".to_owned(), RunReason::Misfire),
        ],
        "no time has passed since the first run ended"
    );
    cluster.advance_seconds(2).await;
    assert_eq!(slow.attempts().len(), 3, "the next fire is on time again");
    cluster.stop(node).await;

    // Only marked shards run again, and a mark that is older than all instances is ignored.
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let hourly = || job(2).cron("0 0 * * * ?").unwrap();
    cluster.write(&cluster.tree.config(), &hourly().to_yaml()).await;
    cluster.write(&cluster.tree.shard(0, ShardNode::Misfire), "").await;
    let (_node, _connection) = cluster.node(1, hourly(), &handler).await;
    cluster.advance_seconds(5).await;
    assert!(handler.attempts().is_empty(), "{:?}", handler.attempts());
    cluster.write(&cluster.tree.shard(1, ShardNode::Misfire), "").await;
    cluster.advance_seconds(1).await;
    assert_eq!(handler.shards_and_reasons(), [(1, RunReason::Misfire)]);
    assert!(
        !cluster.exists(&cluster.tree.shard(1, ShardNode::Misfire)).await,
        "the misfire is compensated"
    );
}

#[tokio::test(start_paused = true)]
async fn l08_trigger_waits_for_the_run_and_is_deleted_if_its_instance_is_dead() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let hourly = job(1).cron("5 0 * * * ?").unwrap();
    let (_node, _connection) = cluster.node(1, hourly, &handler).await;
    cluster.advance_seconds(5).await;
    assert_eq!(handler.attempts().len(), 1);

    let me = cluster.children(&cluster.tree.instances()).await.remove(0);
    cluster.write(&cluster.tree.trigger(&me), "").await;
    cluster.write(&cluster.tree.trigger("10.0.0.9@-@4711"), "").await;
    cluster.settle().await;
    assert!(
        !cluster.exists(&cluster.tree.trigger(&me)).await,
        "the trigger is taken during the run"
    );
    handler.unblock();
    cluster.settle().await;
    assert_eq!(handler.attempts().len(), 2);
    assert!(!handler.attempts()[1].run.starts_with("settle/"), "this is the triggered run");
    cluster.advance_seconds(RECHECK_SECONDS).await;

    assert_eq!(cluster.children(&cluster.tree.triggers()).await, Vec::<String>::new());
    assert_eq!(handler.attempts().len(), 2);
}

/// Counts its calls.
#[derive(Default)]
struct CountingListener {
    before: AtomicUsize,
    after: AtomicUsize,
}

#[async_trait::async_trait]
impl OnceListener for CountingListener {
    async fn before(&self, _: &Execution) -> Result<(), Failure> {
        self.before.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn after(&self, _: &Execution) -> Result<(), Failure> {
        self.after.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn l14_once_listener_is_called_once_per_fire_and_never_waits_forever() {
    let cluster = Cluster::new().await;
    let (one, two) = (TestHandler::immediate(), TestHandler::immediate());
    let listener_calls = Arc::new(CountingListener::default());
    let listener = || Arc::clone(&listener_calls) as Arc<dyn OnceListener>;
    assert!(listener().started_timeout() <= Duration::from_mins(1), "every wait has a limit");
    let (_staying_node, _connection) =
        cluster.node_with(1, with_failover(3), &one, |job| job.once_listener(listener())).await;
    let (dying_node, connection) =
        cluster.node_with(2, with_failover(3), &two, |job| job.once_listener(listener())).await;
    cluster.write(&cluster.tree.shard(1, ShardNode::Disabled), "").await;
    cluster.settle().await;

    cluster.advance(Duration::from_millis(15_900)).await;
    let calls = (
        listener_calls.before.load(Ordering::Relaxed),
        listener_calls.after.load(Ordering::Relaxed),
    );
    assert_eq!(calls, (3, 3), "for three fires");
    assert_eq!(one.attempts().len() + two.attempts().len(), 6);

    // A failover run is not a whole run: it does not wait for other instances, which never register for it.
    two.block();
    cluster.advance_seconds(5).await;
    one.clear();
    drop(dying_node);
    connection.die().await;
    // The clock stands still, so it has not waited.
    cluster.settle().await;
    assert!(
        one.shards_and_reasons().iter().any(|(_, reason)| *reason == RunReason::Failover),
        "{:?}",
        one.shards_and_reasons()
    );
}

#[tokio::test(start_paused = true)]
async fn l15_wrong_clock_prevents_runs_only_if_the_alert_throws() {
    for (alert, runs) in [("LOG", 1), ("THROW", 0)] {
        let registry_clock = clock();
        let server = MemoryServer::new(Arc::new(registry_clock.clone()));
        let wrong_clock = clock();
        wrong_clock.set_wall("2026-11-15T06:10:00Z".parse().unwrap());
        let cluster = Cluster::on_server(server, wrong_clock, "settle").await;
        let handler = TestHandler::immediate();
        let strict = job(1).max_time_diff(MaxTimeDiff::seconds(60)).alert(alert);
        let (_node, _connection) = cluster.node(1, strict, &handler).await;
        for _ in 0..5 {
            registry_clock.advance(Duration::from_secs(1));
            cluster.advance_seconds(1).await;
        }

        assert_eq!(handler.attempts().len(), runs, "{alert}");
    }
}

/// Stores the events it gets, after failing a few times.
#[derive(Default)]
struct FlakySink {
    failures: AtomicUsize,
    events: Mutex<Vec<Event>>,
}

#[async_trait]
impl Sink for FlakySink {
    async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
        if self.failures.fetch_add(1, Ordering::SeqCst) < 4 {
            return Err(SinkError::Unavailable(
                "duplicate key, as the driver reports every error".to_owned(),
            ));
        }
        self.events.lock().unwrap().extend_from_slice(batch);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn l22_run_has_one_id_on_all_instances_and_in_all_records() {
    let cluster = Cluster::new().await;
    let (one, two) = (TestHandler::immediate(), TestHandler::immediate());
    let sink = Arc::new(FlakySink::default());
    let (_first, _connection) =
        cluster.node_with_sink(1, job(2), &one, Arc::clone(&sink) as _).await;
    let (_second, _connection) =
        cluster.node_with_sink(2, job(2), &two, Arc::clone(&sink) as _).await;
    cluster.advance_seconds(15).await;
    let runs = |handler: &TestHandler| {
        handler.attempts().into_iter().map(|attempt| attempt.run).collect::<Vec<_>>()
    };
    assert_eq!(runs(&one), runs(&two), "both nodes see the same three runs");
    assert_eq!(runs(&one).iter().collect::<BTreeSet<_>>().len(), 3);

    let me = cluster.children(&cluster.tree.instances()).await.remove(0);
    for _ in 0..2 {
        cluster.write(&cluster.tree.trigger(&me), "").await;
        cluster.settle().await;
    }
    let all: BTreeSet<String> = runs(&one).into_iter().chain(runs(&two)).collect();
    assert_eq!(all.len(), 5);
    for run in &all {
        assert_eq!(run.parse::<RunId>().unwrap().to_string(), *run, "the text is a run id");
    }
    cluster.advance_seconds(30).await;
    let events = sink.events.lock().unwrap();
    let mut tasks = BTreeSet::new();
    for run in &all {
        let attempts = [&one, &two].map(|handler| {
            handler.attempts().into_iter().filter(|attempt| attempt.run == *run).count()
        });
        let attempts = attempts.into_iter().sum::<usize>();
        let count =
            |matches: &dyn Fn(&Event) -> bool| events.iter().filter(|event| matches(event)).count();
        let is_of_run = |id: &RunId| id.to_string() == *run;
        let started =
            count(&|event| matches!(event, Event::Started(record) if is_of_run(&record.run)));
        let ended =
            count(&|event| matches!(event, Event::Ended(record) if is_of_run(&record.started.run)));
        assert_eq!((started, ended), (attempts, attempts), "{run}");
        tasks.extend(events.iter().filter_map(|event| match event {
            Event::Status(record) if is_of_run(&record.run) => Some(record.task.to_string()),
            _ => None,
        }));
    }
    assert!(tasks.len() < all.len(), "Java's task id is the same in every run: {tasks:?}");
}
