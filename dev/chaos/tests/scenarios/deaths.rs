//! Workers that die, or seem to.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Duration};

use chaos::{Execution, Task};
use elasticjob::{
    job::{Failover, FencingToken, Job, Reason, Shard},
    node::{Node, Running},
};
use testbed::Proxy;
use tokio::sync::mpsc;

use crate::scene::{SERVER, SESSION, Scene, ms, of_run};

/// Long enough to be killed in the middle of it, with time to take over before the next.
fn settle() -> Task {
    Task::new("settle", "0/6 * * * * ?", 4, 4, ms(400))
}

fn of_worker(of: &[Execution], worker: usize) -> Vec<Execution> {
    of.iter().filter(|execution| execution.worker == worker).cloned().collect()
}

/// Waits until somebody else has finished what this execution began; the executions of that shard of that run.
async fn taken_over(scene: &Scene, lost: &Execution) -> Vec<Execution> {
    let what = format!("shard {} of {} is taken over", lost.key.item, lost.key.run);
    scene
        .until(&what, |all| {
            let mut of = of_run(all, &lost.key.job, lost.key.run);
            of.retain(|execution| execution.key.item == lost.key.item);
            let is_done = of.last().is_some_and(|last| last.outcome.as_deref() == Some("done"));
            (of.len() > 1 && is_done).then_some(of)
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn what_a_killed_worker_ran_is_completed_once_by_another() {
    let mut scene = Scene::new("killed", SESSION, &[settle()], 2).await;
    let run = scene.under_way().await;
    let lost = of_worker(&run, 0);
    assert_eq!(lost.len(), 2);

    assert!(scene.cluster.kill(0).await.unwrap());

    for lost in &lost {
        let of = taken_over(&scene, lost).await;
        assert_eq!(of.len(), 2, "once: {of:#?}");
        let heir = &of[1];
        assert_eq!(
            (heir.worker, heir.reason.word.as_str(), heir.reason.attempt),
            (1, "Failover", 2)
        );
        assert!(heir.key.token > lost.key.token);
    }
    scene.whole_runs("settle", 1).await;
    let all = scene.end(&[1]).await;
    let of = of_run(&all, "settle", run[0].key.run);
    let done = of.iter().filter(|execution| execution.outcome.as_deref() == Some("done"));
    assert_eq!(done.count(), 4, "each shard is completed once");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn what_a_worker_ran_that_froze_for_longer_than_its_session_is_fenced() {
    let mut scene = Scene::new("frozen", SESSION, &[settle()], 2).await;
    let run = scene.under_way().await;
    let lost = of_worker(&run, 0);
    assert_eq!(lost.len(), 2);

    scene.cluster.process(0).unwrap().freeze().unwrap();
    for lost in &lost {
        taken_over(&scene, lost).await;
    }
    let before = of_worker(&of_run(&scene.all(), "settle", run[0].key.run), 0);
    scene.cluster.process(0).unwrap().thaw().unwrap();

    let fenced = scene
        .until("the thawed worker says how it ended", |all| {
            let of = of_worker(&of_run(all, "settle", run[0].key.run), 0);
            of.iter().all(|execution| execution.outcome.is_some()).then_some(of)
        })
        .await;
    assert_eq!((fenced.len(), before.len()), (2, 2));
    for (fenced, before) in fenced.iter().zip(&before) {
        assert_eq!(fenced.outcome.as_deref(), Some("fenced"));
        // One write may have been on its way.
        assert!(fenced.writes.len() <= before.writes.len() + 1, "it went on: {fenced:#?}");
        assert_eq!(fenced.returned_at, None);
    }
    // It is somebody new, and has its share.
    scene.settle(2).await;
    let runs = scene.whole_runs("settle", 1).await;
    let mine = of_worker(&runs[0], 0);
    assert_eq!(mine.len(), 2);
    assert_ne!(mine[0].key.instance, lost[0].key.instance);
    scene.end(&[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn when_all_are_killed_and_started_at_once_what_was_unfinished_resumes_and_the_job_goes_on() {
    let mut scene = Scene::new("all-killed", SESSION, &[settle()], 3).await;
    let run = scene.under_way().await;

    for worker in 0..3 {
        scene.cluster.kill(worker).await.unwrap();
    }
    for worker in 0..3 {
        scene.cluster.restart(worker).unwrap();
    }

    let again = scene
        .until("every unfinished shard runs again", |all| {
            let of: Vec<Execution> = run
                .iter()
                .filter_map(|lost| {
                    all.iter().find(|execution| {
                        execution.key.item == lost.key.item
                            && execution.key.token > lost.key.token
                            && execution.outcome.as_deref() == Some("done")
                    })
                })
                .cloned()
                .collect();
            (of.len() == run.len()).then_some(of)
        })
        .await;
    let before: BTreeSet<&str> = run.iter().map(|lost| lost.key.instance.as_str()).collect();
    assert!(again.iter().all(|again| !before.contains(again.key.instance.as_str())));
    scene.settle(3).await;
    scene.whole_runs("settle", 2).await;
    let all = scene.end(&[0, 1, 2]).await;
    for lost in &run {
        let of = of_run(&all, "settle", lost.key.run);
        let of_shard = of.iter().filter(|execution| execution.key.item == lost.key.item);
        assert!(of_shard.count() <= 2, "once for its death");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn a_worker_that_is_asked_to_stop_finishes_what_it_runs_and_nobody_runs_it_again() {
    let mut scene = Scene::new("stopped", SESSION, &[settle()], 2).await;
    let run = scene.under_way().await;

    let ended = scene.cluster.stop(0).await.unwrap();

    assert!(ended.success(), "{ended}");
    scene.whole_runs("settle", 1).await;
    let all = scene.end(&[1]).await;
    let of = of_run(&all, "settle", run[0].key.run);
    assert_eq!(of.len(), 4, "{of:#?}");
    assert!(of.iter().all(|execution| execution.outcome.as_deref() == Some("done")));
    assert!(all.iter().all(|execution| execution.reason.word != "Failover"));
}

/// Two nodes in one process have one pid, as a container that is started again has.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn a_worker_with_the_same_pid_within_the_session_is_somebody_else() {
    let line = Proxy::start(tokio::task::block_in_place(|| SERVER.address())).await;
    let direct = Proxy::start(SERVER.address()).await;
    let (tell, mut told) = mpsc::unbounded_channel::<Shard>();
    let first = start(&line, tell.clone(), None).await;
    let lost = next(&mut told).await;

    // Its session lives on for a while; it does not.
    line.cut();
    drop(first);
    let second = start(&direct, tell, Some(lost.token)).await;

    let taken = next(&mut told).await;
    let (old, new) = (&lost.task.instance, &taken.task.instance);
    assert_ne!(old, new);
    let pid = |id: &str| id.split("@-@").nth(1).unwrap().split('-').next().unwrap().to_owned();
    assert_eq!(pid(old.as_str()), pid(new.as_str()));
    assert_eq!((&taken.run, taken.attempt.reason), (&lost.run, Reason::Failover));
    assert_eq!(taken.attempt.number, NonZeroU32::new(2).unwrap());
    let due = next(&mut told).await;
    assert!(due.due_at > lost.due_at && due.attempt.reason != Reason::Failover);
    second.stop().await;
}

/// A node whose shard never ends if it is the first of all.
async fn start(
    line: &Proxy,
    tell: mpsc::UnboundedSender<Shard>,
    lost: Option<FencingToken>,
) -> Running {
    let job = Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap();
    let url = format!("zookeeper://{}/same-pid?sessionTimeout=2s", line.address());
    let tell = Arc::new(tell);
    let handler = move |shard: Shard| {
        let tell = Arc::clone(&tell);
        async move {
            let _ = tell.send(shard);
            if lost.is_none() {
                std::future::pending::<()>().await;
            }
            Ok::<(), std::io::Error>(())
        }
    };
    let node = Node::join(&url).address([10, 0, 0, 1].into());
    node.job(job.if_node_dies(Failover::TakeOver), handler).start().await.unwrap()
}

async fn next(told: &mut mpsc::UnboundedReceiver<Shard>) -> Shard {
    let shard = tokio::time::timeout(Duration::from_secs(30), told.recv()).await;
    shard.expect("a shard starts in time").unwrap()
}
