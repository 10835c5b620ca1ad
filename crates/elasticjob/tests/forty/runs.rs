//! L2, L7, L8, L14, L15, L22: how a run of the ancestor is lost, late, or nobody knows which it was.

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
    coordination::{ledger::State, tree::Part},
    execution::{Execution, Failure, OnceListener},
    history::{Event, Sink, SinkError},
    job::{MaxTimeDiff, Misfire, Reason, RunId},
    registry::memory::MemoryServer,
};

use crate::{
    members::with_failover,
    nodes::Book,
    stage::{Stage, TICK, clock, fire, job},
};

#[tokio::test(start_paused = true)]
async fn l02_a_shard_that_fails_is_given_back_and_javas_that_are_not_hold_up_no_other() {
    let stage = Stage::new().await;
    let failing = Book::failing();
    let (node, _line) = stage.node(1, with_failover(1), &failing).await;
    stage.pass_seconds(5).await;
    let parts = [Part::Running, Part::Failover, Part::Failovering];
    for part in parts {
        assert!(!stage.is_there(&stage.tree.shard(0, part)).await, "{part:?}");
    }
    assert_eq!(stage.page(0).await.state, State::Failed);
    stage.pass_seconds(5).await;
    assert_eq!(failing.tries().len(), 2, "its next fire runs");
    stage.stop(node).await;

    // A later Java keeps `running` when a shard failed, and lives on.
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.9@-@4711").await;
    let one = stage.join(1, with_failover(4)).await;
    stage.settle().await;
    java.runs(&stage.tree, 0).await;
    stage.settle().await;
    let before = stage.owners(4).await;
    let two = stage.join(2, with_failover(4)).await;
    stage.settle().await;
    let after = stage.owners(4).await;
    assert_eq!(after[0], before[0], "the stuck one stays where it is");
    assert!(after[1..].contains(&two.id()), "the others were dealt: {after:?}");
    assert!(!two.run(&fire(1)).await.is_empty() && !one.run(&fire(1)).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn l07_a_late_fire_runs_right_after_the_run_it_waited_for_and_once() {
    let stage = Stage::new().await;
    let slow = Book::closed();
    let every_two = job(1).cron("0/2 * * * * ?").unwrap().if_late(Misfire::RunOnce);
    let (node, _line) = stage.node(1, every_two, &slow).await;
    // Begins at :02, ends at :07; :04 and :06 were due meanwhile.
    stage.pass_seconds(7).await;
    slow.let_end();
    stage.settle().await;
    let due: Vec<_> = slow.tries().into_iter().map(|one| (one.due_at, one.reason)).collect();
    assert_eq!(
        due,
        [
            ("2026-11-15T06:00:02Z".to_owned(), Reason::Due),
            ("2026-11-15T06:00:06Z".to_owned(), Reason::Misfire),
        ],
        "no time has passed since the first one ended"
    );
    stage.pass_seconds(2).await;
    assert_eq!(slow.tries().len(), 3, "then it is on time again");
    stage.stop(node).await;

    // Only what is marked runs again, and a mark from before anybody was there is nobody's.
    let stage = Stage::new().await;
    let book = Book::open();
    let hourly = || job(2).cron("0 0 * * * ?").unwrap();
    stage.write(&stage.tree.config(), &hourly().to_yaml()).await;
    stage.write(&stage.tree.shard(0, Part::Misfire), "").await;
    let (_node, _line) = stage.node(1, hourly(), &book).await;
    stage.pass_seconds(5).await;
    assert!(book.tries().is_empty(), "{:?}", book.tries());
    stage.write(&stage.tree.shard(1, Part::Misfire), "").await;
    stage.pass_seconds(1).await;
    assert_eq!(book.what(), [(1, Reason::Misfire)]);
    assert!(!stage.is_there(&stage.tree.shard(1, Part::Misfire)).await, "made up for");
}

#[tokio::test(start_paused = true)]
async fn l08_a_trigger_during_a_run_runs_right_after_and_one_for_the_dead_never() {
    let stage = Stage::new().await;
    let book = Book::closed();
    let hourly = job(1).cron("5 0 * * * ?").unwrap();
    let (_node, _line) = stage.node(1, hourly, &book).await;
    stage.pass_seconds(5).await;
    assert_eq!(book.tries().len(), 1);

    let me = stage.children(&stage.tree.instances()).await.remove(0);
    stage.write(&stage.tree.trigger(&me), "").await;
    stage.write(&stage.tree.trigger("10.0.0.9@-@4711"), "").await;
    stage.settle().await;
    assert!(!stage.is_there(&stage.tree.trigger(&me)).await, "it is taken while it runs");
    book.let_end();
    stage.settle().await;
    assert_eq!(book.tries().len(), 2);
    assert!(!book.tries()[1].run.starts_with("settle/"), "it is the one that was asked for");
    stage.pass_seconds(TICK).await;

    assert_eq!(stage.children(&stage.tree.triggers()).await, Vec::<String>::new());
    assert_eq!(book.tries().len(), 2);
}

/// Counts how often it was called.
#[derive(Default)]
struct Counting {
    before: AtomicUsize,
    after: AtomicUsize,
}

#[async_trait::async_trait]
impl OnceListener for Counting {
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
async fn l14_a_once_listener_is_called_once_a_fire_also_with_a_disabled_shard_and_waits_for_nobody_who_cannot_come()
 {
    let stage = Stage::new().await;
    let (one, two) = (Book::open(), Book::open());
    let counting = Arc::new(Counting::default());
    let listener = || Arc::clone(&counting) as Arc<dyn OnceListener>;
    assert!(listener().started_timeout() <= Duration::from_mins(1), "there is no waiting for ever");
    let (_stays, _line) =
        stage.node_with(1, with_failover(3), &one, |job| job.once(listener())).await;
    let (dies, line) = stage.node_with(2, with_failover(3), &two, |job| job.once(listener())).await;
    stage.write(&stage.tree.shard(1, Part::Disabled), "").await;
    stage.settle().await;

    stage.pass(Duration::from_millis(15_900)).await;
    let called = (counting.before.load(Ordering::Relaxed), counting.after.load(Ordering::Relaxed));
    assert_eq!(called, (3, 3), "for three fires");
    assert_eq!(one.tries().len() + two.tries().len(), 6);

    // A taken-over shard is not a whole fire: it runs without waiting for those who are not coming.
    two.close();
    stage.pass_seconds(5).await;
    one.clear();
    drop(dies);
    line.die().await;
    // No time passes: it has not waited for anybody.
    stage.settle().await;
    assert!(one.what().iter().any(|(_, reason)| *reason == Reason::Failover), "{:?}", one.what());
}

#[tokio::test(start_paused = true)]
async fn l15_a_clock_that_is_wrong_is_told_and_with_throw_nothing_runs() {
    for (alert, runs) in [("LOG", 1), ("THROW", 0)] {
        let registrys = clock();
        let server = MemoryServer::new(Arc::new(registrys.clone()));
        let wrong = clock();
        wrong.set_wall("2026-11-15T06:10:00Z".parse().unwrap());
        let stage = Stage::on(server, wrong, "settle").await;
        let book = Book::open();
        let strict = job(1).max_time_diff(MaxTimeDiff::seconds(60)).alert(alert);
        let (_node, _line) = stage.node(1, strict, &book).await;
        for _ in 0..5 {
            registrys.advance(Duration::from_secs(1));
            stage.pass_seconds(1).await;
        }

        assert_eq!(book.tries().len(), runs, "{alert}");
    }
}

/// Keeps what it is told, after having failed a few times.
#[derive(Default)]
struct Told {
    failures: AtomicUsize,
    kept: Mutex<Vec<Event>>,
}

#[async_trait]
impl Sink for Told {
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
        if self.failures.fetch_add(1, Ordering::SeqCst) < 4 {
            return Err(SinkError::Later(
                "duplicate key, says the driver of everything".to_owned(),
            ));
        }
        self.kept.lock().unwrap().extend_from_slice(batch);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn l22_a_run_has_one_id_on_all_instances_and_all_that_is_told_of_it_has_it() {
    let stage = Stage::new().await;
    let (one, two) = (Book::open(), Book::open());
    let told = Arc::new(Told::default());
    let (_first, _line) = stage.node_told(1, job(2), &one, Arc::clone(&told) as _).await;
    let (_second, _line) = stage.node_told(2, job(2), &two, Arc::clone(&told) as _).await;
    stage.pass_seconds(15).await;
    let runs = |book: &Book| book.tries().into_iter().map(|one| one.run).collect::<Vec<_>>();
    assert_eq!(runs(&one), runs(&two), "three fires, seen from two sides");
    assert_eq!(runs(&one).iter().collect::<BTreeSet<_>>().len(), 3);

    let me = stage.children(&stage.tree.instances()).await.remove(0);
    for _ in 0..2 {
        stage.write(&stage.tree.trigger(&me), "").await;
        stage.settle().await;
    }
    let all: BTreeSet<String> = runs(&one).into_iter().chain(runs(&two)).collect();
    assert_eq!(all.len(), 5);
    for run in &all {
        assert_eq!(run.parse::<RunId>().unwrap().to_string(), *run, "it can be looked up by it");
    }
    stage.pass_seconds(30).await;
    let told = told.kept.lock().unwrap();
    let mut tasks = BTreeSet::new();
    for run in &all {
        let tried =
            [&one, &two].map(|book| book.tries().into_iter().filter(|one| one.run == *run).count());
        let tried = tried.into_iter().sum::<usize>();
        let count = |is: &dyn Fn(&Event) -> bool| told.iter().filter(|event| is(event)).count();
        let is_it = |id: &RunId| id.to_string() == *run;
        let begun = count(&|event| matches!(event, Event::Started(it) if is_it(&it.run)));
        let ended = count(&|event| matches!(event, Event::Ended(it) if is_it(&it.started.run)));
        assert_eq!((begun, ended), (tried, tried), "{run}");
        tasks.extend(told.iter().filter_map(|event| match event {
            Event::Status(it) if is_it(&it.run) => Some(it.task.to_string()),
            _ => None,
        }));
    }
    assert!(tasks.len() < all.len(), "the ancestor's task id is the same in every run: {tasks:?}");
}
