//! No due fire vanishes: it runs, is made up for, or is reported.

use std::time::Duration;

use elasticjob::{
    coordination::tree::Part,
    job::{CatchUp, Job, Misfire, Reason},
};

use crate::{
    log::Log,
    members::with_failover,
    nodes::{Book, Try},
    stage::{Stage, job},
};

fn due(tries: &[Try]) -> Vec<(u32, String, Reason)> {
    tries.iter().map(|one| (one.item, one.due_at.clone(), one.reason)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fire_that_is_due_while_the_registry_is_out_of_reach_runs_when_it_answers_again() {
    let stage = Stage::new().await;
    let book = Book::open();
    let (_node, line) = stage.node(1, job(1).cron("5 0 * * * ?").unwrap(), &book).await;

    line.link.cut();
    stage.pass_seconds(8).await;
    assert!(book.tries().is_empty());
    line.link.heal();
    stage.pass_seconds(2).await;

    let tries = book.tries();
    assert_eq!(tries.len(), 1, "{tries:?}");
    assert_eq!(tries[0].due_at, "2026-11-15T06:00:05Z");
}

#[tokio::test(start_paused = true)]
async fn a_fire_whose_owner_was_dead_and_not_known_to_be_is_run_by_the_next_owner() {
    let stage = Stage::new().await;
    let (survivor, dying) = (Book::open(), Book::open());
    let hourly = || with_failover(2).cron("5 0 * * * ?").unwrap();
    let (_survives, _line) = stage.node(1, hourly(), &survivor).await;
    let (dies, line) = stage.node(2, hourly(), &dying).await;
    // A page that says nothing of a fire is one of a shard that ran before.
    stage.pass(Duration::from_mins(30)).await;
    assert_eq!((survivor.tries().len(), dying.tries().len()), (1, 1));
    survivor.clear();

    // It is gone before the fire, and the registry finds out after.
    drop(dies);
    stage.pass(Duration::from_mins(30) + Duration::from_secs(10)).await;
    assert_eq!(survivor.tries().len(), 1, "its own");
    line.die().await;
    stage.pass_seconds(2).await;

    assert!(dying.tries().len() == 1);
    let tries = survivor.tries();
    assert_eq!(
        due(&tries[1..]),
        [(0, "2026-11-15T07:00:05Z".to_owned(), Reason::Misfire)],
        "{tries:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn fires_of_a_time_when_nobody_was_there_are_caught_up_with_as_the_job_says() {
    let every_hour =
        |policy| -> Job { job(1).cron("0 0 * * * ?").unwrap().if_nobody_was_there(policy) };
    let window = Duration::from_mins(150);
    for (policy, hours, left_out) in [
        (CatchUp::None, vec![], "count=3 first=2026-11-15T08:00:00Z last=2026-11-15T10:00:00Z"),
        (CatchUp::Last, vec![10], "count=2 first=2026-11-15T08:00:00Z last=2026-11-15T09:00:00Z"),
        (
            CatchUp::All { window },
            vec![9, 10],
            "count=1 first=2026-11-15T08:00:00Z last=2026-11-15T08:00:00Z",
        ),
    ] {
        let stage = Stage::new().await;
        let (before, after) = (Book::open(), Book::open());
        let (node, _line) = stage.node(1, every_hour(policy), &before).await;
        stage.pass(Duration::from_mins(61)).await;
        assert_eq!(before.tries().len(), 1, "seven o'clock");
        stage.stop(node).await;
        stage.clock.advance(Duration::from_mins(210));
        Log::listen();
        let (_node, _line) = stage.node(1, every_hour(policy), &after).await;
        stage.pass_seconds(5).await;

        let caught_up = due(&after.tries());
        let wanted = hours
            .into_iter()
            .map(|hour| (0, format!("2026-11-15T{hour:02}:00:00Z"), Reason::CatchUp));
        assert_eq!(caught_up, wanted.collect::<Vec<_>>(), "{policy:?}");
        let told = Log::read();
        let told = told.lines().find(|line| line.contains("due while nobody was there"));
        assert!(told.is_some_and(|line| line.contains(left_out)), "{policy:?}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_fire_runs_right_after_our_own_run_beside_java_too() {
    let stage = Stage::new().await;
    let slow = Book::closed();
    let every_two = job(2).cron("0/2 * * * * ?").unwrap().if_late(Misfire::RunOnce);
    let (_node, _line) = stage.node(1, every_two, &slow).await;
    let java = stage.java("10.0.0.9@-@4711").await;
    stage.pass_seconds(1).await;
    assert_eq!(stage.owners(2).await[0], java.id);

    // Begins at :02, ends at :07; :04 and :06 were due meanwhile, and nobody but us can have run it then.
    stage.pass_seconds(6).await;
    slow.let_end();
    stage.settle().await;

    let expected = [
        (1, "2026-11-15T06:00:02Z".to_owned(), Reason::Due),
        (1, "2026-11-15T06:00:06Z".to_owned(), Reason::Misfire),
    ];
    assert_eq!(due(&slow.tries()), expected);
}

#[tokio::test(start_paused = true)]
async fn a_leader_does_not_wait_for_ever_for_one_who_began_to_deal_and_does_not_lead() {
    let stage = Stage::new().await;
    let book = Book::open();
    let (_node, _line) = stage.node(1, job(2).cron("0/5 * * * * ?").unwrap(), &book).await;
    let java = stage.java("10.0.0.9@-@4711").await;
    stage.pass_seconds(1).await;
    let owners = stage.owners(2).await;

    // A Java leader whose job is shut down while it deals, in a process that lives on.
    java.ephemeral(&stage.tree.processing(), "").await;
    stage.remove(&stage.tree.shard(0, Part::Owner)).await;
    stage.remove(&stage.tree.shard(1, Part::Owner)).await;
    stage.pass_seconds(5).await;
    assert!(stage.is_there(&stage.tree.processing()).await, "it may still come to an end");
    stage.pass_seconds(6).await;

    assert!(!stage.is_there(&stage.tree.processing()).await);
    assert_eq!(stage.owners(2).await, owners);
    book.clear();
    stage.pass_seconds(5).await;
    assert_eq!(book.what(), [(1, Reason::Due)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_a_disabled_server_does_not_run_once_it_is_enabled() {
    let stage = Stage::new().await;
    let book = Book::open();
    let (_node, _line) = stage.node(1, job(1).cron("0 0 * * * ?").unwrap(), &book).await;
    stage.pass_seconds(1).await;
    let id = stage.children(&stage.tree.instances()).await.remove(0);
    let server = stage.tree.server("10.0.0.1");

    // The leader has nobody to deal to, so that the flag stays.
    stage.write(&server, "DISABLED").await;
    stage.write(&stage.tree.necessary(), "").await;
    stage.write(&stage.tree.trigger(&id), "").await;
    stage.pass_seconds(2).await;
    assert!(!stage.is_there(&stage.tree.trigger(&id)).await, "it was heard");
    stage.write(&server, "ENABLED").await;
    stage.pass_seconds(5).await;

    assert!(book.tries().is_empty(), "{:?}", book.tries());
    stage.write(&stage.tree.trigger(&id), "").await;
    stage.pass_seconds(1).await;
    assert_eq!(book.tries().len(), 1, "and what is asked now does");
}
