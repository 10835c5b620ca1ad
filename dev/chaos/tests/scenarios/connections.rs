//! Lines that are cut, and queues that do not move.

use std::time::Duration;

use chaos::Task;
use elasticjob::{
    coordination::tree::{JobTree, Part},
    registry::{Create, Kind, Registry, Zxid, plant},
};
use testbed::Proxy;

use crate::scene::{SESSION, Scene, ms, of_run};

/// Who says that they run the shards of the job, by when their nodes were created.
async fn running(scene: &Scene, shards: u32) -> Vec<Option<(Zxid, Vec<u8>)>> {
    let mut running = Vec::new();
    for shard in 0..shards {
        let path = scene.tree.shard(shard, Part::Running);
        let node = scene.registry.get(&path).await.unwrap();
        running.push(node.map(|node| (node.stat.created, node.data.to_vec())));
    }
    running
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn a_line_cut_for_less_than_the_session_changes_nothing_for_what_runs() {
    let settle = Task::new("settle", "0/8 * * * * ?", 4, 8, ms(500));
    let scene = Scene::new("cut", Duration::from_secs(6), &[settle], 2).await;
    let run = scene.under_way().await;
    let before = running(&scene, 4).await;
    assert!(before.iter().all(Option::is_some));

    scene.cluster.lines(0).iter().for_each(Proxy::cut);
    let cut_at = run[0].writes.len();
    scene
        .until("the worker goes on while it is cut off", |all| {
            let of = of_run(all, "settle", run[0].key.run);
            let mut mine = of.iter().filter(|execution| execution.worker == 0);
            mine.all(|execution| execution.writes.len() > cut_at + 1).then_some(())
        })
        .await;
    scene.cluster.lines(0).iter().for_each(Proxy::heal);

    assert_eq!(running(&scene, 4).await, before, "nobody's claim was touched");
    scene.whole_runs("settle", 1).await;
    let all = scene.end(&[0, 1]).await;
    let of = of_run(&all, "settle", run[0].key.run);
    assert_eq!(of.len(), 4, "no shard runs twice: {of:#?}");
    assert!(of.iter().all(|execution| execution.outcome.as_deref() == Some("done")), "{of:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn lines_that_flap_leave_no_server_disabled_no_place_in_a_queue_and_nothing_running() {
    const FLAPS: u64 = 40;
    let tasks = [
        Task::new("settle", "* * * * * ?", 4, 1, ms(50)),
        Task::new("long", "0/3 * * * * ?", 3, 4, ms(500)),
    ];
    let scene = Scene::new("flapping", SESSION, &tasks, 2).await;

    for flap in 0..FLAPS {
        // Neither in step with each other nor with anything else.
        let lines = scene.cluster.lines((flap % 2) as usize);
        lines.iter().for_each(Proxy::cut);
        tokio::time::sleep(ms(60 + flap * 37 % 200)).await;
        lines.iter().for_each(Proxy::heal);
        tokio::time::sleep(ms(30 + flap * 53 % 150)).await;
    }

    scene.settle(2).await;
    scene.whole_runs("settle", 2).await;
    scene.whole_runs("long", 1).await;
    scene.end(&[0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn somebody_who_stalls_in_the_queue_of_an_election_holds_up_that_election_and_nothing_else() {
    let tasks = [
        Task::new("stuck", "* * * * * ?", 2, 1, ms(50)),
        Task::new("free", "* * * * * ?", 2, 1, ms(50)),
    ];
    let mut scene = Scene::empty("stalled", SESSION, &tasks, false).await;
    let rival = scene.cluster.observer().await.unwrap();
    stall(&*rival, &scene.tree).await;

    let first = scene.cluster.start().await.unwrap();
    let second = scene.cluster.start().await.unwrap();
    scene.whole_runs("free", 3).await;
    let ended = scene.cluster.stop(second).await.unwrap();

    assert!(ended.success(), "whoever waits for an election can stop: {ended}");
    assert!(scene.all().iter().all(|execution| execution.key.job != "stuck"));
    rival.close().await;
    scene.whole_runs("stuck", 2).await;
    scene.end(&[first]).await;
}

/// Is the first in the queue of the election, and does nothing.
async fn stall(rival: &dyn Registry, tree: &JobTree) {
    let latch = tree.election_latch();
    plant(rival, &latch).await.unwrap();
    let place = latch.join("_c_3f2504e0-4f89-41d3-9a0c-0305e82c3301-latch-").unwrap();
    let kind = Kind::EphemeralSequential(rival.session().id());
    rival.create(Create::new(&place, "", kind)).await.unwrap();
}
