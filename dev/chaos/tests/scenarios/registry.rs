//! The registry itself goes, and comes back.

use chaos::Task;
use testbed::ZooKeeper;
use tokio::task::block_in_place;

use crate::scene::{SESSION, Scene, ms};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn after_the_only_server_was_away_for_longer_than_a_session_everybody_works_again() {
    let server = block_in_place(ZooKeeper::start);
    let settle = Task::new("settle", "* * * * * ?", 4, 1, ms(50));
    let mut scene = Scene::on(server.address(), "restarted", SESSION, &[settle], false).await;
    for _ in 0..2 {
        scene.cluster.start().await.unwrap();
    }
    scene.settle(2).await;
    scene.whole_runs("settle", 1).await;

    block_in_place(|| server.stop());
    // As long as it is away nobody may run anything: a lease is not longer than a session.
    tokio::time::sleep(SESSION).await;
    let begun = scene.all().len();
    tokio::time::sleep(SESSION).await;
    assert_eq!(scene.all().len(), begun, "somebody began something without a registry");
    block_in_place(|| server.restart());

    scene.settle(2).await;
    scene.whole_runs("settle", 2).await;
    scene.end(&[0, 1]).await;
}
