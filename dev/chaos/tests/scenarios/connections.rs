//! Connections that are cut, and an election queue that does not move.

use std::time::Duration;

use chaos::StepJob;
use elasticjob::{
    coordination::tree::{JobTree, ShardNode},
    registry::{Create, Kind, Registry, Zxid, ensure_path},
};
use testbed::Proxy;

use crate::scenario::{SESSION, Scenario, executions_of_run, ms};

/// The `running` node of each shard: when it was created, and its data.
async fn running(scenario: &Scenario, shards: u32) -> Vec<Option<(Zxid, Vec<u8>)>> {
    let mut running = Vec::new();
    for shard in 0..shards {
        let path = scenario.tree.shard(shard, ShardNode::Running);
        let node = scenario.registry.get(&path).await.unwrap();
        running.push(node.map(|node| (node.stat.created, node.data.to_vec())));
    }
    running
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn disconnect_shorter_than_the_session_leaves_running_shards_alone() {
    let settle = StepJob::new("settle", "0/8 * * * * ?", 4, 8, ms(500));
    let scenario = Scenario::new("cut", Duration::from_secs(6), &[settle], 2).await;
    let run = scenario.run_in_progress().await;
    let before = running(&scenario, 4).await;
    assert!(before.iter().all(Option::is_some));

    scenario.cluster.proxies(0).iter().for_each(Proxy::cut);
    let writes_before = run[0].writes.len();
    scenario
        .until("the worker continues while disconnected", |all| {
            let executions = executions_of_run(all, "settle", run[0].key.run);
            let mut of_worker = executions.iter().filter(|execution| execution.worker == 0);
            of_worker.all(|execution| execution.writes.len() > writes_before + 1).then_some(())
        })
        .await;
    scenario.cluster.proxies(0).iter().for_each(Proxy::heal);

    assert_eq!(running(&scenario, 4).await, before, "no claim was touched");
    scenario.complete_runs("settle", 1).await;
    let all = scenario.stop(&[0, 1]).await;
    let executions = executions_of_run(&all, "settle", run[0].key.run);
    assert_eq!(executions.len(), 4, "no shard runs twice: {executions:#?}");
    assert!(
        executions.iter().all(|execution| execution.outcome.as_deref() == Some("done")),
        "{executions:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn flapping_connections_leave_no_disabled_server_queue_entry_or_claim() {
    const FLAPS: u64 = 40;
    let jobs = [
        StepJob::new("settle", "* * * * * ?", 4, 1, ms(50)),
        StepJob::new("long", "0/3 * * * * ?", 3, 4, ms(500)),
    ];
    let scenario = Scenario::new("flapping", SESSION, &jobs, 2).await;

    for flap in 0..FLAPS {
        // Periods that are in step neither with each other nor with the jobs.
        let proxies = scenario.cluster.proxies((flap % 2) as usize);
        proxies.iter().for_each(Proxy::cut);
        tokio::time::sleep(ms(60 + flap * 37 % 200)).await;
        proxies.iter().for_each(Proxy::heal);
        tokio::time::sleep(ms(30 + flap * 53 % 150)).await;
    }

    scenario.wait_until_quiescent(2).await;
    scenario.complete_runs("settle", 2).await;
    scenario.complete_runs("long", 1).await;
    scenario.stop(&[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn stalled_election_candidate_delays_only_its_own_election() {
    let jobs = [
        StepJob::new("stuck", "* * * * * ?", 2, 1, ms(50)),
        StepJob::new("free", "* * * * * ?", 2, 1, ms(50)),
    ];
    let mut scenario = Scenario::empty("stalled", SESSION, &jobs, false).await;
    let rival = scenario.cluster.observer().await.unwrap();
    enter_election(&*rival, &scenario.tree).await;

    let first = scenario.cluster.start().await.unwrap();
    let second = scenario.cluster.start().await.unwrap();
    scenario.complete_runs("free", 3).await;
    let status = scenario.cluster.stop(second).await.unwrap();

    assert!(status.success(), "a worker that waits for an election can stop: {status}");
    assert!(scenario.all().iter().all(|execution| execution.key.job != "stuck"));
    rival.close().await;
    scenario.complete_runs("stuck", 2).await;
    scenario.stop(&[first]).await;
}

/// Enters the election queue first and never acts.
async fn enter_election(rival: &dyn Registry, tree: &JobTree) {
    let latch = tree.election_latch();
    ensure_path(rival, &latch).await.unwrap();
    let candidate = latch.join("_c_3f2504e0-4f89-41d3-9a0c-0305e82c3301-latch-").unwrap();
    let kind = Kind::EphemeralSequential(rival.session().id());
    rival.create(Create::new(&candidate, "", kind)).await.unwrap();
    // With an instance of its own, so that no worker is the first: that one needs no election.
    ensure_path(rival, &tree.instances()).await.unwrap();
    let instance = Create::ephemeral(&tree.instance("10.0.0.9@-@9"), "", rival.session().id());
    rival.create(instance).await.unwrap();
}
