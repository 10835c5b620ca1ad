//! Nothing that somebody asked for is lost: it waits until it can run, and whoever takes it over runs the same.

use std::time::Duration;

use elasticjob::{
    coordination::{
        tree::Part,
        trigger::{Ask, Trigger},
    },
    job::{Job, LeaseLoss, Reason, RunId},
    registry::Op,
    runtime::CancelReason,
};

use crate::{
    members::with_failover,
    nodes::Book,
    stage::{Stage, job},
};

/// Runs when somebody asks for it.
fn idle(job: Job) -> Job {
    job.cron("0 0 0 1 1 ? 2099").unwrap()
}

/// Asks the only Rust instance.
async fn ask(stage: &Stage, ask: Ask) {
    let ids = stage.children(&stage.tree.instances()).await;
    let id = ids.iter().find(|id| id.contains("@-@1")).or(ids.first()).unwrap();
    let data = String::from_utf8(Trigger::Run(ask).to_bytes()).unwrap();
    stage.write(&stage.tree.trigger(id), &data).await;
    stage.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_trigger_is_for_all_shards_also_for_those_that_somebody_has_in_hand() {
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.3@-@4711").await;
    java.leads(&stage.tree).await;
    let book = Book::open();
    let (_node, _line) = stage.node(1, idle(job(2)), &book).await;
    let ids = stage.children(&stage.tree.instances()).await;
    let ours = ids.iter().find(|id| *id != java.id).unwrap();
    stage.java_deals(&[ours, ours]).await;
    stage.settle().await;
    java.runs(&stage.tree, 1).await;

    let run = RunId::triggered(7);
    let data = Trigger::Run(Ask { run: Some(run.clone()), ..Ask::default() }).to_bytes();
    stage.write(&stage.tree.trigger(ours), &String::from_utf8(data).unwrap()).await;
    stage.pass_seconds(5).await;
    assert_eq!(book.what(), [(0, Reason::Due)], "the other one is not free");
    stage.remove(&stage.tree.shard(1, Part::Running)).await;
    stage.pass_seconds(5).await;

    assert_eq!(book.what(), [(0, Reason::Due), (1, Reason::Due)]);
    assert!(book.tries().iter().all(|one| one.run == run.to_string()), "{:?}", book.tries());
}

#[tokio::test(start_paused = true)]
async fn a_trigger_whose_taking_away_is_not_answered_runs_once() {
    let stage = Stage::new().await;
    let book = Book::open();
    let (_node, line) = stage.node(1, idle(job(1)), &book).await;
    let takes_trigger = |ops: &[Op]| {
        let mut ops = ops.iter();
        ops.any(|op| matches!(op, Op::Delete { path, .. } if path.as_str().contains("/trigger/")))
    };
    let mut taking = line.hold_up(takes_trigger);

    ask(&stage, Ask::default()).await;
    taking.reached().await;
    line.link.cut_after_next_request();
    taking.let_go();
    stage.settle().await;
    line.link.heal();
    stage.pass_seconds(5).await;

    assert_eq!(book.what(), [(0, Reason::Due)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_while_the_session_ends_runs_in_the_next_one() {
    let stage = Stage::new().await;
    let book = Book::closed();
    let (_node, line) = stage.node(1, idle(job(1)), &book).await;
    ask(&stage, Ask { run: Some(RunId::triggered(1)), ..Ask::default() }).await;
    assert_eq!(book.tries().len(), 1);
    // It waits for the first one.
    let second = RunId::triggered(2);
    ask(&stage, Ask { run: Some(second.clone()), ..Ask::default() }).await;

    line.link.expire();
    stage.pass_seconds(2).await;
    book.let_end();
    stage.pass_seconds(5).await;

    let runs: Vec<String> = book.tries().iter().map(|one| one.run.clone()).collect();
    assert!(runs.contains(&second.to_string()), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_what_was_asked_for_runs_it_as_it_was_asked_for() {
    let stage = Stage::new().await;
    let (dying, heir) = (Book::closed(), Book::open());
    let (dies, line) = stage.node(1, idle(with_failover(1)), &dying).await;
    let at = "2026-01-31T12:00:00Z".parse().unwrap();
    let run = Some(RunId::triggered(7));
    let asked = Ask { run, at: Some(at), parameter: Some("42".into()), ..Ask::default() };
    ask(&stage, asked).await;
    let (_inherits, _line) = stage.node(2, idle(with_failover(1)), &heir).await;

    drop(dies);
    line.die().await;
    stage.pass_seconds(5).await;

    let (lost, again) = (dying.tries(), heir.tries());
    assert_eq!((lost.len(), again.len()), (1, 1));
    assert_eq!((again[0].reason, &again[0].run), (Reason::Failover, &lost[0].run));
    assert_eq!((again[0].due_at.as_str(), &*again[0].parameter), ("2026-01-31T12:00:00Z", "42"));
    assert_eq!(lost[0].parameter, "42");
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_session_began_is_told_to_end_when_the_node_stops() {
    let stage = Stage::new().await;
    let book = Book::closed();
    let job = job(1).cron("5 0 * * * ?").unwrap().if_lease_is_lost(LeaseLoss::Continue);
    let (node, line) = stage.node(1, job, &book).await;
    stage.pass_seconds(6).await;
    assert_eq!(book.tries().len(), 1);
    line.link.expire();
    stage.pass_seconds(5).await;
    assert!(book.tries()[0].cancelled.is_none(), "it may go on");

    assert!(stage.stop(node).await < Duration::from_mins(2));

    let cancelled = book.tries()[0].cancelled;
    assert_eq!(cancelled.map(|(reason, _)| reason), Some(CancelReason::ShuttingDown));
}
