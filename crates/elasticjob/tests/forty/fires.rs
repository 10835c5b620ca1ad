//! No due fire vanishes: it runs, is made up for, or is reported.

use std::time::Duration;

use elasticjob::job::{CatchUp, Job, Reason};

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
