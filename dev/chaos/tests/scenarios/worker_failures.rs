//! Workers that die, or seem to be dead.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Duration};

use chaos::{Execution, StepJob};
use elasticjob::{
    job::{Failover, FencingToken, Job, RunReason, Shard},
    node::{Node, RunningNode},
};
use testbed::Proxy;
use tokio::sync::mpsc;

use crate::scenario::{SERVER, SESSION, Scenario, executions_of_run, ms};

/// Runs long enough to be killed in the middle, and leaves time for a takeover before the next fire.
fn settle_job() -> StepJob {
    StepJob::new("settle", "0/6 * * * * ?", 4, 4, ms(400))
}

fn executions_of_worker(executions: &[Execution], worker: usize) -> Vec<Execution> {
    executions.iter().filter(|execution| execution.worker == worker).cloned().collect()
}

/// Waits until another instance has completed the shard of a lost execution. Returns all executions of that shard of that run.
async fn wait_for_takeover(scenario: &Scenario, lost: &Execution) -> Vec<Execution> {
    let expectation = format!("shard {} of run {} is taken over", lost.key.item, lost.key.run);
    scenario
        .until(&expectation, |all| {
            let mut executions = executions_of_run(all, &lost.key.job, lost.key.run);
            executions.retain(|execution| execution.key.item == lost.key.item);
            let is_done =
                executions.last().is_some_and(|last| last.outcome.as_deref() == Some("done"));
            (executions.len() > 1 && is_done).then_some(executions)
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn shards_of_a_killed_worker_are_completed_once_by_another() {
    let mut scenario = Scenario::new("killed", SESSION, &[settle_job()], 2).await;
    let run = scenario.run_in_progress().await;
    let lost = executions_of_worker(&run, 0);
    assert_eq!(lost.len(), 2);

    assert!(scenario.cluster.kill(0).await.unwrap());

    for lost in &lost {
        let executions = wait_for_takeover(&scenario, lost).await;
        assert_eq!(executions.len(), 2, "taken over once: {executions:#?}");
        let successor = &executions[1];
        assert_eq!(
            (successor.worker, successor.reason.name.as_str(), successor.reason.attempt),
            (1, "Failover", 2)
        );
        assert!(successor.key.token > lost.key.token);
    }
    scenario.complete_runs("settle", 1).await;
    let all = scenario.stop(&[1]).await;
    let executions = executions_of_run(&all, "settle", run[0].key.run);
    let done = executions.iter().filter(|execution| execution.outcome.as_deref() == Some("done"));
    assert_eq!(done.count(), 4, "each shard is completed once");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn shards_of_a_worker_frozen_longer_than_its_session_are_fenced() {
    let mut scenario = Scenario::new("frozen", SESSION, &[settle_job()], 2).await;
    let run = scenario.run_in_progress().await;
    let lost = executions_of_worker(&run, 0);
    assert_eq!(lost.len(), 2);

    scenario.cluster.process(0).unwrap().freeze().unwrap();
    for lost in &lost {
        wait_for_takeover(&scenario, lost).await;
    }
    let before =
        executions_of_worker(&executions_of_run(&scenario.all(), "settle", run[0].key.run), 0);
    scenario.cluster.process(0).unwrap().thaw().unwrap();

    let fenced = scenario
        .until("the thawed worker reports its outcomes", |all| {
            let executions =
                executions_of_worker(&executions_of_run(all, "settle", run[0].key.run), 0);
            executions.iter().all(|execution| execution.outcome.is_some()).then_some(executions)
        })
        .await;
    assert_eq!((fenced.len(), before.len()), (2, 2));
    for (fenced, before) in fenced.iter().zip(&before) {
        assert_eq!(fenced.outcome.as_deref(), Some("fenced"));
        // One write may have been in flight.
        assert!(fenced.writes.len() <= before.writes.len() + 1, "it continued: {fenced:#?}");
        assert_eq!(fenced.returned_at, None);
    }
    // The worker joins as a new instance and gets its share of the shards.
    scenario.wait_until_quiescent(2).await;
    let runs = scenario.complete_runs("settle", 1).await;
    let of_worker = executions_of_worker(&runs[0], 0);
    assert_eq!(of_worker.len(), 2);
    assert_ne!(of_worker[0].key.instance, lost[0].key.instance);
    scenario.stop(&[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn unfinished_shards_resume_after_all_workers_are_killed_and_restarted() {
    let mut scenario = Scenario::new("all-killed", SESSION, &[settle_job()], 3).await;
    let run = scenario.run_in_progress().await;

    for worker in 0..3 {
        scenario.cluster.kill(worker).await.unwrap();
    }
    for worker in 0..3 {
        scenario.cluster.restart(worker).unwrap();
    }

    let again = scenario
        .until("every unfinished shard runs again", |all| {
            let executions: Vec<Execution> = run
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
            (executions.len() == run.len()).then_some(executions)
        })
        .await;
    let before: BTreeSet<&str> = run.iter().map(|lost| lost.key.instance.as_str()).collect();
    assert!(again.iter().all(|again| !before.contains(again.key.instance.as_str())));
    scenario.wait_until_quiescent(3).await;
    scenario.complete_runs("settle", 2).await;
    let all = scenario.stop(&[0, 1, 2]).await;
    for lost in &run {
        let executions = executions_of_run(&all, "settle", lost.key.run);
        let of_shard = executions.iter().filter(|execution| execution.key.item == lost.key.item);
        assert!(of_shard.count() <= 2, "at most once more for the death of its instance");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn stopped_worker_finishes_its_shards_and_no_other_runs_them_again() {
    let mut scenario = Scenario::new("stopped", SESSION, &[settle_job()], 2).await;
    let run = scenario.run_in_progress().await;

    let status = scenario.cluster.stop(0).await.unwrap();

    assert!(status.success(), "{status}");
    scenario.complete_runs("settle", 1).await;
    let all = scenario.stop(&[1]).await;
    let executions = executions_of_run(&all, "settle", run[0].key.run);
    assert_eq!(executions.len(), 4, "{executions:#?}");
    assert!(executions.iter().all(|execution| execution.outcome.as_deref() == Some("done")));
    assert!(all.iter().all(|execution| execution.reason.name != "Failover"));
}

/// Two nodes in one process have the same pid, like the processes before and after the restart of a container.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn worker_with_the_same_pid_within_the_session_is_another_instance() {
    let first_proxy = Proxy::start(tokio::task::block_in_place(|| SERVER.address())).await;
    let second_proxy = Proxy::start(SERVER.address()).await;
    let (started, mut starts) = mpsc::unbounded_channel::<Shard>();
    let first = start(&first_proxy, started.clone(), None).await;
    let lost = next_start(&mut starts).await;

    // The first node is gone, but its session is still alive for a while.
    first_proxy.cut();
    drop(first);
    let second = start(&second_proxy, started, Some(lost.token)).await;

    let taken = next_start(&mut starts).await;
    let (old, new) = (&lost.task.instance, &taken.task.instance);
    assert_ne!(old, new);
    let pid = |id: &str| id.split("@-@").nth(1).unwrap().split('-').next().unwrap().to_owned();
    assert_eq!(pid(old.as_str()), pid(new.as_str()));
    assert_eq!((&taken.run, taken.attempt.reason), (&lost.run, RunReason::Failover));
    assert_eq!(taken.attempt.number, NonZeroU32::new(2).unwrap());
    let due = next_start(&mut starts).await;
    assert!(due.due_at > lost.due_at && due.attempt.reason != RunReason::Failover);
    second.stop().await;
}

/// Starts a node. Its shard never returns if `lost` is `None`, which marks the first node.
async fn start(
    proxy: &Proxy,
    started: mpsc::UnboundedSender<Shard>,
    lost: Option<FencingToken>,
) -> RunningNode {
    let job = Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap();
    let url = format!("zookeeper://{}/same-pid?sessionTimeout=2s", proxy.address());
    let started = Arc::new(started);
    let handler = move |shard: Shard| {
        let started = Arc::clone(&started);
        async move {
            let _ = started.send(shard);
            if lost.is_none() {
                std::future::pending::<()>().await;
            }
            Ok::<(), std::io::Error>(())
        }
    };
    let node = Node::join(&url).address([10, 0, 0, 1].into());
    node.job(job.failover(Failover::TakeOver), handler).start().await.unwrap()
}

async fn next_start(starts: &mut mpsc::UnboundedReceiver<Shard>) -> Shard {
    let shard = tokio::time::timeout(Duration::from_secs(30), starts.recv()).await;
    shard.expect("a shard starts in time").unwrap()
}
