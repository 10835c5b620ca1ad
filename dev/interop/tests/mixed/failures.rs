//! Instances that die, freeze or are disconnected while they run shards.
//!
//! Most jobs here run only when triggered, so that nothing but the failover runs afterwards.

use elasticjob::{
    coordination::trigger::TriggerRequest,
    job::{Failover, Job},
};
use futures_util::future::join;

use crate::{
    event_log::Execution,
    scenario::{Scenario, TestRegistry, idle, job, ms},
};

/// Long enough for a kill in the middle of a run, short enough to wait for.
const DURATION_MS: u64 = 4_000;

fn failover_job(shards: u32) -> Job {
    idle("settle", shards).failover(Failover::TakeOver)
}

/// Triggers a run and waits until every shard has started.
async fn trigger_run(scenario: &Scenario, job: &Job) -> Vec<Execution> {
    let before = scenario.events.executions(job.name.as_str()).len();
    scenario.admin().trigger(&job.name, TriggerRequest::default()).await.unwrap();
    let shards = job.shards.get() as usize;
    let find = |executions: &[Execution]| {
        (executions.len() >= before + shards).then(|| executions[before..].to_vec())
    };
    let executions = scenario.events.until("every shard runs", job.name.as_str(), find).await;
    assert_eq!(executions.len(), shards, "{executions:?}");
    executions
}

/// Waits until every shard has succeeded on some instance and the job is quiescent. Returns how often each shard succeeded since `before`.
async fn successes(scenario: &Scenario, job: &Job, before: usize) -> Vec<usize> {
    let counts = |executions: &[Execution]| -> Vec<usize> {
        let since = &executions[before..];
        let count = |item| {
            since
                .iter()
                .filter(|execution| execution.item == item && execution.has_succeeded())
                .count()
        };
        (0..job.shards.get()).map(count).collect()
    };
    let find =
        |executions: &[Execution]| counts(executions).iter().all(|count| *count > 0).then_some(());
    scenario.events.until("every shard succeeds", job.name.as_str(), find).await;
    scenario.wait_until_quiescent(job).await;
    counts(&scenario.events.executions(job.name.as_str()))
}

pub(crate) async fn shards_of_a_killed_jvm_are_completed_once_by_rust(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "killed-jvm").await;
    let settle = failover_job(2);
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let java_id = scenario.join_java_as_leader(&mut java, &settle, ms(DURATION_MS)).await;
    let rust_id = rust.join(&settle, ms(DURATION_MS)).await;
    let executions = trigger_run(&scenario, &settle).await;
    let lost = executions
        .iter()
        .find(|execution| execution.instance == java_id)
        .expect("Java has a shard")
        .item;

    java.kill().await;

    assert_eq!(successes(&scenario, &settle, 0).await, [1, 1]);
    let executions = scenario.events.executions("settle");
    let again = executions
        .iter()
        .find(|execution| execution.item == lost && execution.has_succeeded())
        .unwrap();
    assert_eq!((&again.instance, again.reason.as_deref()), (&rust_id, Some("Failover")));
    scenario.wait_until_assigned(&settle, &[&rust_id]).await;
}

pub(crate) async fn shards_of_a_killed_rust_process_are_completed_once_by_java(
    registry: TestRegistry,
) {
    let scenario = Scenario::new(&registry, "killed-rust").await;
    let settle = failover_job(2);
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let rust_id = rust.join(&settle, ms(DURATION_MS)).await;
    let java_id = java.join(&settle, ms(DURATION_MS)).await;
    scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    let executions = trigger_run(&scenario, &settle).await;
    let lost = executions
        .iter()
        .find(|execution| execution.instance == rust_id)
        .expect("Rust has a shard")
        .item;

    rust.kill().await;

    assert_eq!(successes(&scenario, &settle, 0).await, [1, 1]);
    let executions = scenario.events.executions("settle");
    let again = executions
        .iter()
        .find(|execution| execution.item == lost && execution.has_succeeded())
        .unwrap();
    assert_eq!(again.instance, java_id);
    assert_eq!(scenario.leader(&settle).await.as_ref(), Some(&java_id));
}

pub(crate) async fn shards_of_a_frozen_jvm_are_taken_over_and_it_rejoins(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "frozen-jvm").await;
    let settle = failover_job(2);
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let java_id = scenario.join_java_as_leader(&mut java, &settle, ms(DURATION_MS)).await;
    let rust_id = rust.join(&settle, ms(DURATION_MS)).await;
    let executions = trigger_run(&scenario, &settle).await;
    let lost = executions
        .iter()
        .find(|execution| execution.instance == java_id)
        .expect("Java has a shard")
        .item;

    java.freeze();
    let on_rust = |execution: &Execution| {
        execution.item == lost && execution.instance == rust_id && execution.has_succeeded()
    };
    let find = |executions: &[Execution]| executions.iter().any(on_rust).then_some(());
    scenario.events.until("Rust has taken over", "settle", find).await;
    java.thaw();

    // What Java does with its own shard is not tested; the shard that Rust took over ran once.
    let is_back =
        async || scenario.children(&scenario.tree(&settle).instances()).await.contains(&java_id);
    scenario.until("Java is back", is_back).await;
    scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    scenario.wait_until_quiescent(&settle).await;
    let on_rust = scenario.events.executions("settle").into_iter().filter(on_rust);
    assert_eq!(on_rust.count(), 1);
}

pub(crate) async fn frozen_rust_process_does_not_finish_shards_that_java_took_over(
    registry: TestRegistry,
) {
    let scenario = Scenario::new(&registry, "frozen-rust").await;
    let settle = failover_job(2);
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let rust_id = rust.join(&settle, ms(DURATION_MS)).await;
    let java_id = java.join(&settle, ms(DURATION_MS)).await;
    scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    let executions = trigger_run(&scenario, &settle).await;
    let lost = executions
        .iter()
        .find(|execution| execution.instance == rust_id)
        .expect("Rust has a shard")
        .item;

    rust.freeze();
    let on_java = |execution: &Execution| {
        execution.item == lost && execution.instance == java_id && execution.has_succeeded()
    };
    let find = |executions: &[Execution]| executions.iter().any(on_java).then_some(());
    scenario.events.until("Java has taken over", "settle", find).await;
    rust.thaw();

    let find = |executions: &[Execution]| {
        executions
            .iter()
            .find(|execution| execution.instance == rust_id && execution.has_ended())
            .cloned()
    };
    let stopped = scenario
        .events
        .until("the execution of the frozen process has ended", "settle", find)
        .await;
    assert_eq!(stopped.end.map(|(event, _)| event).as_deref(), Some("interrupted"));
    assert_eq!(successes(&scenario, &settle, 0).await, [1, 1]);
    scenario
        .until("Rust is back under another id", async || {
            let ids = scenario.children(&scenario.tree(&settle).instances()).await;
            ids.iter().any(|id| id.starts_with("10.0.0.1@-@") && *id != rust_id)
        })
        .await;
}

pub(crate) async fn job_continues_after_its_whole_cluster_was_killed_once_rust_joins(
    registry: TestRegistry,
) {
    let scenario = Scenario::new(&registry, "whole-cluster").await;
    let settle = job("settle", "0/5 * * * * ?", 2).failover(Failover::TakeOver);
    let (mut one, mut two) = join(scenario.java("java-1"), scenario.java("java-2")).await;
    scenario.join_in_turn(&settle, [&mut one, &mut two], ms(3_000)).await;
    let find = |executions: &[Execution]| {
        let open: Vec<&Execution> =
            executions.iter().filter(|execution| !execution.has_ended()).collect();
        (open.len() == 2).then_some(())
    };
    scenario.events.until("both shards run", "settle", find).await;
    join(one.kill(), two.kill()).await;

    // Two Java instances that come back at once see each other, and wait forever for the dead ones.
    let (mut one, mut two) = join(scenario.java("java-3"), scenario.java("java-4")).await;
    let (first, second) = join(one.join(&settle, ms(100)), two.join(&settle, ms(100))).await;
    let mut rust = scenario.rust(1).await;
    let before = scenario.events.executions("settle").len();
    let rust_id = rust.join(&settle, ms(100)).await;

    let find = |executions: &[Execution]| {
        let has_run = |item| {
            executions[before..]
                .iter()
                .any(|execution| execution.item == item && execution.has_succeeded())
        };
        (0..2).all(has_run).then_some(())
    };
    scenario.events.until("every shard runs again", "settle", find).await;
    // A Java instance leads, and it may have assigned the shards by a list of instances without the last one.
    let owners = scenario.wait_until_assigned_by_java(&settle, &[&first, &second, &rust_id]).await;
    scenario.wait_until_owners_run(&settle, &owners).await;
    scenario.wait_until_quiescent(&settle).await;
}

pub(crate) async fn disconnect_shorter_than_the_session_does_not_affect_rust(
    registry: TestRegistry,
) {
    let scenario = Scenario::new(&registry, "cut-rust").await.session(ms(10_000));
    let settle = failover_job(2);
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let rust_id = rust.join(&settle, ms(DURATION_MS)).await;
    let java_id = java.join(&settle, ms(DURATION_MS)).await;
    scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    trigger_run(&scenario, &settle).await;

    let connections = rust.proxy.connections();
    rust.proxy.cut();
    tokio::time::sleep(ms(1_500)).await;
    rust.proxy.heal();
    scenario.until("Rust is connected", async || rust.proxy.connections() > connections).await;

    assert_eq!(successes(&scenario, &settle, 0).await, [1, 1]);
    assert_eq!(scenario.events.executions("settle").len(), 2, "no shard was taken over");
    assert_eq!(scenario.leader(&settle).await.as_ref(), Some(&rust_id), "the session is alive");
}

pub(crate) async fn rust_does_not_take_a_java_reconnect_for_a_death(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "cut-java").await.session(ms(10_000));
    let settle = failover_job(2);
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let rust_id = rust.join(&settle, ms(DURATION_MS)).await;
    let java_id = java.join(&settle, ms(DURATION_MS)).await;
    scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    trigger_run(&scenario, &settle).await;
    let instance = scenario.tree(&settle).instance(&java_id);
    let created = scenario.registry.exists(&instance).await.unwrap().unwrap().created;

    java.proxy.cut();
    tokio::time::sleep(ms(1_500)).await;
    java.proxy.heal();
    scenario
        .until("Java has created its node again", async || {
            let stat = scenario.registry.exists(&instance).await.unwrap();
            stat.is_some_and(|stat| stat.created != created)
        })
        .await;

    assert_eq!(successes(&scenario, &settle, 0).await, [1, 1]);
    assert_eq!(scenario.events.executions("settle").len(), 2, "no shard was taken over");
}

/// Java takes the reconnect of another Java instance for its death, and flags its running shard for failover. Rust is idle and could take it over.
pub(crate) async fn shard_that_java_wrongly_takes_for_lost_does_not_run_twice(
    registry: TestRegistry,
) {
    let scenario = Scenario::new(&registry, "cut-among-java").await.session(ms(10_000));
    let settle = failover_job(3);
    let (mut cut, mut peer) = join(scenario.java("java-cut"), scenario.java("java-peer")).await;
    let mut rust = scenario.rust(1).await;
    let rust_id = rust.join(&settle, ms(500)).await;
    let cut_id = cut.join(&settle, ms(DURATION_MS)).await;
    let peer_id = peer.join(&settle, ms(DURATION_MS)).await;
    scenario.wait_until_assigned(&settle, &[&cut_id, &peer_id, &rust_id]).await;
    trigger_run(&scenario, &settle).await;
    let instance = scenario.tree(&settle).instance(&cut_id);
    let created = scenario.registry.exists(&instance).await.unwrap().unwrap().created;

    cut.proxy.cut();
    tokio::time::sleep(ms(800)).await;
    cut.proxy.heal();
    scenario
        .until("Java has created its node again", async || {
            let stat = scenario.registry.exists(&instance).await.unwrap();
            stat.is_some_and(|stat| stat.created != created)
        })
        .await;

    assert_eq!(successes(&scenario, &settle, 0).await, [1, 1, 1]);
    assert_eq!(scenario.events.executions("settle").len(), 3, "no shard ran twice");
    let stat = scenario.registry.exists(&instance).await.unwrap();
    assert!(stat.is_some(), "its instance node was not deleted");
}
