//! Nothing dies, and yet.

use std::collections::BTreeSet;

use chaos::{Findings, Task, audit};
use elasticjob::runtime::{Clock, SystemClock};
use jiff::Timestamp;

use crate::scene::{SESSION, Scene, ms, of_run};

/// What was due since `from` and has had the time to end.
fn audited(scene: &Scene, from: Timestamp, to: Timestamp) -> Findings {
    audit(&scene.cluster.plan().tasks, &scene.cluster.heard().all(), &[], from, to)
}

/// The last fire of a job that is whole.
fn last(runs: &[Vec<chaos::Execution>]) -> Timestamp {
    let run = runs.last().unwrap()[0].key.run;
    Timestamp::from_millisecond(run + 1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn whoever_was_idle_has_a_lease_that_is_long_enough_to_start_even_if_sessions_are_short() {
    let settle = Task::new("settle", "* * * * * ?", 2, 1, ms(50));
    let scene = Scene::new("idle", SESSION, &[settle], 1).await;
    let from = SystemClock.now();

    let runs = scene.whole_runs("settle", 5).await;

    let findings = audited(&scene, from, last(&runs));
    assert_eq!((&findings.wrong[..], findings.made_up), (&[][..], 0), "nothing was put off");
    scene.end(&[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn a_shard_that_always_fails_holds_up_neither_the_others_nor_the_dealing() {
    let failing = Task::new("settle", "* * * * * ?", 4, 1, ms(50)).failing(1);
    let mut scene = Scene::new("failing", SESSION, &[failing], 1).await;
    let from = SystemClock.now();
    scene.whole_runs("settle", 2).await;

    scene.cluster.start().await.unwrap();
    scene.settle(2).await;

    let runs = scene.whole_runs("settle", 3).await;
    for run in &runs {
        let workers: BTreeSet<usize> = run.iter().map(|execution| execution.worker).collect();
        assert_eq!(workers.len(), 2, "both have a share");
        for execution in run {
            let expected = if execution.key.item == 1 { "failed" } else { "done" };
            assert_eq!(execution.outcome.as_deref(), Some(expected));
        }
    }
    let findings = audited(&scene, from, last(&runs));
    assert_eq!((&findings.wrong[..], findings.made_up), (&[][..], 0), "all kept their schedule");
    scene.end(&[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn whoever_joins_during_a_long_run_has_a_share_in_the_next_and_nobody_else_waits() {
    let tasks = [
        Task::new("long", "0/5 * * * * ?", 2, 7, ms(500)),
        Task::new("tick", "* * * * * ?", 2, 1, ms(50)),
    ];
    let mut scene = Scene::new("joining", SESSION, &tasks, 1).await;
    let from = SystemClock.now();
    let run = scene.under_way().await;

    scene.cluster.start().await.unwrap();

    let runs = scene.whole_runs("long", 1).await;
    assert_eq!(runs[0][0].key.run, run[0].key.run + 5_000, "the following one");
    let workers: BTreeSet<usize> = runs[0].iter().map(|execution| execution.worker).collect();
    assert_eq!(workers.len(), 2);
    let findings = audited(&scene, from, last(&runs));
    assert_eq!((&findings.wrong[..], findings.made_up), (&[][..], 0), "all kept their schedule");
    scene.end(&[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn what_was_due_during_a_run_is_made_up_for_right_after_it() {
    let overrun = Task::new("settle", "0/3 * * * * ?", 1, 8, ms(500));
    let scene = Scene::new("overrun", SESSION, &[overrun], 1).await;

    let (first, second) = scene
        .until("a run after one that took too long", |all| {
            let whole = all.iter().position(|execution| execution.outcome.is_some())?;
            Some((all[whole].clone(), all.get(whole + 1)?.clone()))
        })
        .await;

    assert_eq!(second.reason.word, "Misfire");
    assert_eq!(second.key.run, first.key.run + 3_000);
    let pause = (second.started_at - first.returned_at.unwrap()) / 1_000_000;
    assert!(pause < 500, "right after, not {pause} ms");
    scene.end(&[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn a_wandering_shard_runs_once_each_time_though_two_workers_have_one_address() {
    let task = Task::new("settle", "* * * * * ?", 1, 1, ms(50)).dealt_by("SINGLE_SHARDING_BALANCE");
    let mut scene = Scene::empty("wandering", SESSION, &[task], true).await;
    for _ in 0..2 {
        scene.cluster.start().await.unwrap();
    }
    scene.settle(2).await;
    let from = SystemClock.now();

    let runs = scene.whole_runs("settle", 6).await;

    let to = last(&runs);
    let findings = audited(&scene, from, to);
    assert_eq!((&findings.wrong[..], findings.made_up), (&[][..], 0));
    let all = scene.end(&[0, 1]).await;
    for execution in &all {
        assert_eq!(of_run(&all, "settle", execution.key.run).len(), 1, "{execution:#?}");
    }
}
