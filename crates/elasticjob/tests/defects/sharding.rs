//! L5, L6, L10, L17, L19: the defects by which Java's sharding waits without limit, or assigns shards to the wrong instances.

use elasticjob::job::ShardSelection;
use std::{collections::BTreeSet, time::Duration};

use elasticjob::{
    coordination::{
        ledger::LedgerState,
        member::{ClaimError, ClaimScope, MemberEvent},
        tree::ShardNode,
    },
    registry::{Create, Kind, Op, Path, Registry, ensure_path},
};

use crate::{
    cluster::{Cluster, Connection, RECHECK_SECONDS, fire, job},
    members::{TestInstance, id, with_failover},
};

#[tokio::test(start_paused = true)]
async fn l05_instance_joining_during_sharding_gets_its_share() {
    let cluster = Cluster::new().await;
    let leader = cluster.join(1, job(3)).await;
    let completes_sharding = |ops: &[Op]| {
        let deletes_processing =
            |op: &Op| matches!(op, Op::Delete { path, .. } if path.name() == "processing");
        ops.iter().any(deletes_processing)
    };
    let mut blocked = leader.connection.block_next(completes_sharding);

    // The leader assigns to two instances; a third one joins before the assignment is written.
    let two = cluster.join_as(id(2), job(3), cluster.connect().await).await.unwrap();
    blocked.reached().await;
    let three = cluster.join_as(id(3), job(3), cluster.connect().await).await.unwrap();
    blocked.unblock();
    cluster.settle().await;
    let owners: BTreeSet<String> = cluster.owners(3).await.into_iter().collect();
    assert_eq!(owners, BTreeSet::from([leader.id(), two.id(), three.id()]));

    // A Java leader that overlooked a Rust instance is reminded: it reassigns when a server node is written, even with unchanged data.
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let _ours = cluster.join(1, job(2)).await;
    cluster.assign_as_java_leader(&[java.id, java.id]).await;
    cluster.advance_seconds(5).await;
    let server = cluster.tree.server("10.0.0.1");
    let before = cluster.stat(&server).await.unwrap().version;
    cluster.advance_seconds(3 * RECHECK_SECONDS).await;
    assert!(cluster.stat(&server).await.unwrap().version > before);
    assert_eq!(cluster.text(&server).await.as_deref(), Some("ENABLED"));
}

#[tokio::test(start_paused = true)]
async fn l06_long_run_blocks_neither_sharding_nor_other_runs() {
    let cluster = Cluster::new().await;
    let busy = cluster.join(1, job(4)).await;
    let long = busy
        .try_claim(
            &fire(1),
            ClaimScope::Triggered(ShardSelection::only([0]).unwrap()),
            Duration::ZERO,
        )
        .await;
    let long = long.unwrap();

    let joined = cluster.join(2, job(4)).await;
    let owners = cluster.owners(4).await;
    assert_eq!(owners[0], busy.id(), "the running shard keeps its owner");
    assert!(owners.contains(&joined.id()), "the others are reassigned meanwhile: {owners:?}");
    let run = [joined.run(&fire(2)).await, busy.run(&fire(2)).await].concat();
    assert_eq!(run.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&1, &2, &3]));
    busy.finish(long).await;
    cluster.settle().await;
    let shares = cluster.owners(4).await.iter().filter(|owner| **owner == joined.id()).count();
    assert_eq!(shares, 2, "the shard moves when its run is over");

    // A Java leader that is busy does not assign shards: a fire waits for it, but not longer than its limit.
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let ours = cluster.join(1, job(1)).await;
    cluster.assign_as_java_leader(&[&ours.id()]).await;
    cluster.write(&cluster.tree.necessary(), "").await;
    cluster.settle().await;
    let due = fire(1);
    let (refused, ()) = tokio::join!(
        ours.try_claim(&due, ClaimScope::Scheduled, Duration::from_secs(5)),
        cluster.advance(Duration::from_millis(5_600))
    );
    assert!(matches!(refused, Err(ClaimError::Resharding)), "{refused:?}");
}

/// Queues in a latch before all others and never acts.
async fn queue_and_stall(connection: &Connection, latch: &Path) -> Path {
    ensure_path(&*connection.registry, latch).await.unwrap();
    let name = latch.join("_c_00000000-0000-0000-0000-000000000000-latch-").unwrap();
    let kind = Kind::EphemeralSequential(connection.registry.session().id());
    let created =
        connection.registry.create(Create::new(&name, "10.0.0.9@-@9", kind)).await.unwrap();
    created.path().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn l10_stuck_latch_blocks_only_election_and_takeover() {
    let cluster = Cluster::new().await;
    let (mut one, victim) =
        (cluster.join(1, with_failover(2)).await, cluster.join(2, with_failover(2)).await);
    victim.claim(&fire(1)).await;
    let stuck = cluster.connect().await;
    queue_and_stall(&stuck, &cluster.tree.election_latch()).await;
    let in_failover = queue_and_stall(&stuck, &cluster.tree.failover_latch()).await;

    // Neither an election nor a takeover is possible: fires and triggers continue.
    cluster.remove(&cluster.tree.leader()).await;
    victim.die().await;
    one.start_taking_over().await;
    cluster.settle().await;
    cluster.write(&cluster.tree.trigger(one.id()), "").await;
    assert_eq!(one.run(&fire(1)).await.len(), 1, "its own shard");
    one.wait_for(|news| matches!(news, MemberEvent::Triggered(_))).await;
    assert!(one.take_over().await.is_none());

    cluster.remove(&in_failover).await;
    assert_eq!(one.take_over().await.unwrap().fire, fire(1));
    stuck.die().await;
    cluster.advance_seconds(30).await;
    assert_eq!(cluster.text(&cluster.tree.leader()).await, Some(one.id()));
}

#[tokio::test(start_paused = true)]
async fn l17_addresses_with_a_common_prefix_are_distinguished() {
    let cluster = Cluster::new().await;
    let short = cluster.join(1, job(2)).await;
    let long = cluster.join(12, job(2)).await;
    cluster.write(&cluster.tree.server("10.0.0.1"), "DISABLED").await;
    cluster.settle().await;
    assert_eq!(cluster.owners(2).await, vec![long.id(); 2]);

    // The instance node of the shorter address is deleted while the longer address is online: only that instance shuts down.
    cluster.write(&cluster.tree.server("10.0.0.1"), "ENABLED").await;
    cluster.settle().await;
    let TestInstance { mut member, connection: _connection } = short;
    cluster.remove(&cluster.tree.instance(member.id())).await;
    let mut news = None;
    while news != Some(MemberEvent::ShutDown) {
        news = member.next_event().await;
    }
    member.leave().await;
    cluster.settle().await;
    assert_eq!(cluster.owners(2).await, vec![long.id(); 2]);
    assert_eq!(long.run(&fire(1)).await, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn l19_shrinking_lets_running_shards_finish_then_deletes_their_nodes() {
    let cluster = Cluster::new().await;
    let ours = cluster.join(1, job(3)).await;
    let claimed = ours.claim(&fire(1)).await;
    // A leftover node above a gap in the shard numbers.
    cluster.write(&cluster.tree.shard(7, ShardNode::Misfire), "").await;

    cluster.write(&cluster.tree.config(), &job(1).to_yaml()).await;
    cluster.settle().await;
    assert_eq!(
        cluster.children(&cluster.tree.sharding()).await,
        ["0", "1", "2"],
        "running shards stay"
    );
    assert!(claimed.shards.iter().all(|shard| !shard.status.is_lost()));
    ours.finish(claimed).await;
    cluster.settle().await;

    assert_eq!(cluster.children(&cluster.tree.sharding()).await, ["0"]);
    assert_eq!(cluster.page(2).await.state, LedgerState::Done);
    assert_eq!(ours.run(&fire(2)).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn shard_that_exists_again_is_not_removed() {
    let cluster = Cluster::new().await;
    let ours = cluster.join(1, job(3)).await;
    let shard = cluster.tree.shard(2, ShardNode::Root);
    // Not deleted together with the shard, so that the shard is removed alone.
    cluster.write(&shard.join("note").unwrap(), "").await;
    let removes = |ops: &[Op]| {
        let is_shard = |path: &Path| path.as_str().ends_with("/sharding/2");
        ops.iter().any(|op| matches!(op, Op::Delete { path, .. } if is_shard(path)))
    };
    let mut together = ours.connection.block_next(removes);
    cluster.write(&cluster.tree.config(), &job(1).to_yaml()).await;
    together.reached().await;
    let mut alone = ours.connection.block_next(removes);
    together.unblock();
    alone.reached().await;
    let before = cluster.stat(&shard).await.unwrap();

    cluster.write(&cluster.tree.config(), &job(3).to_yaml()).await;
    alone.unblock();
    cluster.advance_seconds(1).await;

    assert_eq!(cluster.stat(&shard).await.unwrap().created, before.created);
    assert_eq!(cluster.owners(3).await, vec![ours.id(); 3]);
}
