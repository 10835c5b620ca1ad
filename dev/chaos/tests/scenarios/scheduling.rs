//! No worker fails; fires, shards and owners still have to match.

use std::collections::BTreeSet;

use chaos::{Findings, StepJob, audit};
use elasticjob::runtime::{Clock, SystemClock};
use jiff::Timestamp;

use crate::scenario::{SESSION, Scenario, executions_of_run, ms};

/// Audits all fires between `from` and `to`.
fn audit_events(scenario: &Scenario, from: Timestamp, to: Timestamp) -> Findings {
    audit(&scenario.cluster.config().jobs, &scenario.cluster.events().all(), &[], from, to)
}

/// The time just after the last of these runs was due.
fn after_last(runs: &[Vec<chaos::Execution>]) -> Timestamp {
    let run = runs.last().unwrap()[0].key.run;
    Timestamp::from_millisecond(run + 1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn idle_worker_with_a_short_session_still_has_a_lease_to_start() {
    let settle = StepJob::new("settle", "* * * * * ?", 2, 1, ms(50));
    let scenario = Scenario::new("idle", SESSION, &[settle], 1).await;
    let from = SystemClock.now();

    let runs = scenario.complete_runs("settle", 5).await;

    let findings = audit_events(&scenario, from, after_last(&runs));
    assert_eq!(
        (&findings.violations[..], findings.compensated),
        (&[][..], 0),
        "no fire was compensated later"
    );
    scenario.stop(&[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn always_failing_shard_delays_neither_other_shards_nor_sharding() {
    let failing = StepJob::new("settle", "* * * * * ?", 4, 1, ms(50)).failing(1);
    let mut scenario = Scenario::new("failing", SESSION, &[failing], 1).await;
    let from = SystemClock.now();
    scenario.complete_runs("settle", 2).await;

    scenario.cluster.start().await.unwrap();
    scenario.wait_until_quiescent(2).await;

    let runs = scenario.complete_runs("settle", 3).await;
    for run in &runs {
        let workers: BTreeSet<usize> = run.iter().map(|execution| execution.worker).collect();
        assert_eq!(workers.len(), 2, "both workers have shards");
        for execution in run {
            let expected = if execution.key.item == 1 { "failed" } else { "done" };
            assert_eq!(execution.outcome.as_deref(), Some(expected));
        }
    }
    let findings = audit_events(&scenario, from, after_last(&runs));
    assert_eq!(
        (&findings.violations[..], findings.compensated),
        (&[][..], 0),
        "every fire ran on schedule"
    );
    scenario.stop(&[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn worker_joining_during_a_long_run_gets_shards_in_the_next_run() {
    let jobs = [
        StepJob::new("long", "0/5 * * * * ?", 2, 7, ms(500)),
        StepJob::new("tick", "* * * * * ?", 2, 1, ms(50)),
    ];
    let mut scenario = Scenario::new("joining", SESSION, &jobs, 1).await;
    let from = SystemClock.now();
    let run = scenario.run_in_progress().await;

    scenario.cluster.start().await.unwrap();

    let runs = scenario.complete_runs("long", 1).await;
    assert_eq!(runs[0][0].key.run, run[0].key.run + 5_000, "the next run");
    let workers: BTreeSet<usize> = runs[0].iter().map(|execution| execution.worker).collect();
    assert_eq!(workers.len(), 2);
    let findings = audit_events(&scenario, from, after_last(&runs));
    assert_eq!(
        (&findings.violations[..], findings.compensated),
        (&[][..], 0),
        "every fire ran on schedule"
    );
    scenario.stop(&[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn misfire_is_compensated_right_after_the_run_that_caused_it() {
    let overrun = StepJob::new("settle", "0/3 * * * * ?", 1, 8, ms(500));
    let scenario = Scenario::new("overrun", SESSION, &[overrun], 1).await;

    let (first, second) = scenario
        .until("a run after one that overran", |all| {
            let completed = all.iter().position(|execution| execution.outcome.is_some())?;
            Some((all[completed].clone(), all.get(completed + 1)?.clone()))
        })
        .await;

    assert_eq!(second.reason.name, "Misfire");
    assert_eq!(second.key.run, first.key.run + 3_000);
    let pause = (second.started_at - first.returned_at.unwrap()) / 1_000_000;
    assert!(pause < 500, "right after, not {pause} ms");
    scenario.stop(&[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn rotating_shard_runs_once_per_fire_when_workers_share_an_address() {
    let job = StepJob::new("settle", "* * * * * ?", 1, 1, ms(50))
        .with_strategy("SINGLE_SHARDING_BALANCE");
    let mut scenario = Scenario::empty("wandering", SESSION, &[job], true).await;
    for _ in 0..2 {
        scenario.cluster.start().await.unwrap();
    }
    scenario.wait_until_quiescent(2).await;
    let from = SystemClock.now();

    let runs = scenario.complete_runs("settle", 6).await;

    let to = after_last(&runs);
    let findings = audit_events(&scenario, from, to);
    assert_eq!((&findings.violations[..], findings.compensated), (&[][..], 0));
    let all = scenario.stop(&[0, 1]).await;
    for execution in &all {
        assert_eq!(executions_of_run(&all, "settle", execution.key.run).len(), 1, "{execution:#?}");
    }
}
