//! The registry stops and comes back.

use chaos::StepJob;
use testbed::ZooKeeper;
use tokio::task::block_in_place;

use crate::scenario::{SESSION, Scenario, ms};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn workers_resume_after_the_registry_was_down_longer_than_a_session() {
    let server = block_in_place(ZooKeeper::start);
    let settle = StepJob::new("settle", "* * * * * ?", 4, 1, ms(50));
    let mut scenario = Scenario::on(server.address(), "restarted", SESSION, &[settle], false).await;
    for _ in 0..2 {
        scenario.cluster.start().await.unwrap();
    }
    scenario.wait_until_quiescent(2).await;
    scenario.complete_runs("settle", 1).await;

    block_in_place(|| server.stop());
    // Without the registry no shard may start: a lease is not longer than a session.
    tokio::time::sleep(SESSION).await;
    let started = scenario.all().len();
    tokio::time::sleep(SESSION).await;
    assert_eq!(scenario.all().len(), started, "a shard started without a registry");
    block_in_place(|| server.restart());

    scenario.wait_until_quiescent(2).await;
    scenario.complete_runs("settle", 2).await;
    scenario.stop(&[0, 1]).await;
}
