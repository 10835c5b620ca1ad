//! L1, L3, L4, L24: recovery of the shards of dead instances.

use std::time::Duration;

use elasticjob::{
    coordination::{
        ledger::LedgerState,
        member::{MemberEvent, Release},
        tree::ShardNode,
    },
    job::{Misfire, RunReason},
};

use crate::{
    cluster::{Cluster, RECHECK_SECONDS, creates_below, fire, job},
    members::{id, items, with_failover},
    nodes::TestHandler,
};

#[tokio::test(start_paused = true)]
async fn l01_dead_cluster_recovers_when_two_instances_join_together() {
    let cluster = Cluster::new().await;
    let dead = [cluster.join(1, with_failover(4)).await, cluster.join(2, with_failover(4)).await];
    for instance in &dead {
        instance.claim(&fire(1)).await;
    }
    for instance in dead {
        instance.die().await;
    }
    assert!(cluster.running(0).await.is_some(), "their running nodes are still there");

    let (three, four) = (cluster.connect().await, cluster.connect().await);
    let (three, four) = tokio::join!(
        cluster.join_as(id(3), with_failover(4), three),
        cluster.join_as(id(4), with_failover(4), four)
    );
    let mut both = [three.unwrap(), four.unwrap()];
    for instance in &both {
        instance.start_taking_over().await;
    }
    cluster.settle().await;
    let mut again = Vec::new();
    for instance in &mut both {
        while let Some(taken) = instance.take_over().await {
            assert_eq!(taken.fire, fire(1));
            again.extend(items(&taken));
            instance.finish(taken).await;
            cluster.settle().await;
        }
    }
    let mut next = [both[0].run(&fire(2)).await, both[1].run(&fire(2)).await].concat();

    again.sort_unstable();
    assert_eq!(again, [0, 1, 2, 3], "each lost shard once");
    next.sort_unstable();
    assert_eq!(next, [0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn l03_shards_of_an_instance_that_dies_disabled_are_taken_over() {
    for is_removed in [false, true] {
        let cluster = Cluster::new().await;
        let victim = cluster.join(1, with_failover(1)).await;
        let lost = victim.claim(&fire(1)).await;
        let mut successor = cluster.join(2, with_failover(1)).await;
        let server = cluster.tree.server("10.0.0.1");
        cluster.write(&server, "DISABLED").await;
        if is_removed {
            cluster.remove(&server).await;
        }
        cluster.settle().await;

        victim.die().await;

        assert_eq!(
            items(&successor.take_over().await.unwrap()),
            items(&lost),
            "removed: {is_removed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn l04_taken_over_and_own_shards_of_a_dead_instance_are_both_found() {
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    let mut successor = cluster.join(1, with_failover(2)).await;
    cluster.settle().await;
    // Left when failover was switched off during a takeover: it names the instance that now dies with a run of its own.
    cluster.write(&cluster.tree.shard(0, ShardNode::Failovering), java.id).await;
    java.mark_running(&cluster.tree, 1).await;

    java.die().await;
    cluster.advance_seconds(2).await;

    assert_eq!(cluster.running(1).await, None, "the running node of the dead instance is deleted");
    assert!(cluster.is_flagged(0).await && cluster.is_flagged(1).await);
    let mut again = Vec::new();
    while let Some(taken) = successor.take_over().await {
        again.extend(items(&taken));
        successor.finish(taken).await;
    }
    assert_eq!(again, [0, 1]);
    successor.member.stop_taking_over().await;
    assert!(!cluster.exists(&cluster.tree.shard(0, ShardNode::Failovering)).await);
    // When failover is switched off, remaining flags are deleted.
    cluster.write(&cluster.tree.failover_item(0), "").await;
    cluster.write(&cluster.tree.config(), &job(2).to_yaml()).await;
    cluster.advance_seconds(RECHECK_SECONDS).await;
    assert!(!cluster.is_flagged(0).await);
}

#[tokio::test(start_paused = true)]
async fn l24_disabled_takes_over_nothing_and_survivor_runs_its_own_shards() {
    let cluster = Cluster::new().await;
    let victim = cluster.join(1, with_failover(12)).await;
    let lost = victim.claim(&fire(1)).await;
    assert_eq!(items(&lost).len(), 12);
    let mut disabled = cluster.join(2, with_failover(12)).await;
    let mut successor = cluster.join(3, with_failover(12)).await;
    cluster.write(&cluster.tree.server("10.0.0.2"), "DISABLED").await;
    cluster.write(&cluster.tree.shard(3, ShardNode::Disabled), "").await;
    cluster.settle().await;

    victim.die().await;
    cluster.settle().await;
    assert!(disabled.take_over().await.is_none());
    let taken = successor.take_over().await.unwrap();
    assert_eq!(items(&taken), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11], "in numeric order, not as text");
    successor.finish(taken).await;

    // At the fire during which it took over, its own shards run as well.
    let cluster = Cluster::new().await;
    let (survivor, dying) = (TestHandler::immediate(), TestHandler::blocked());
    let (_surviving_node, _connection) = cluster.node(1, with_failover(2), &survivor).await;
    let (dying_node, connection) = cluster.node(2, with_failover(2), &dying).await;
    cluster.advance(Duration::from_millis(9_900)).await;
    survivor.clear();
    survivor.block();
    drop(dying_node);
    connection.die().await;
    cluster.settle().await;
    cluster.advance(Duration::from_millis(200)).await;
    survivor.unblock();
    cluster.settle().await;
    let own: Vec<_> =
        survivor.shards_and_reasons().into_iter().filter(|(item, _)| *item == 1).collect();
    assert_eq!(
        survivor.shards_and_reasons()[0],
        (0, RunReason::Failover),
        "{:?}",
        survivor.shards_and_reasons()
    );
    assert_eq!(own.len(), 1, "{:?}", survivor.shards_and_reasons());
}

#[tokio::test(start_paused = true)]
async fn failover_run_starts_while_own_shards_run() {
    let cluster = Cluster::new().await;
    let (survivor, dying) = (TestHandler::blocked(), TestHandler::blocked());
    let (_surviving_node, _connection) = cluster.node(1, with_failover(2), &survivor).await;
    let (dying_node, connection) = cluster.node(2, with_failover(2), &dying).await;
    cluster.advance_seconds(6).await;
    assert_eq!(survivor.shards_and_reasons(), [(1, RunReason::Schedule)], "a long run");

    drop(dying_node);
    connection.die().await;
    cluster.settle().await;

    assert_eq!(survivor.shards_and_reasons(), [(0, RunReason::Failover), (1, RunReason::Schedule)]);
}

#[tokio::test(start_paused = true)]
async fn regular_fire_runs_while_a_failover_run_continues() {
    let cluster = Cluster::new().await;
    let (survivor, dying) = (TestHandler::immediate(), TestHandler::blocked());
    let job = || with_failover(2).misfire(Misfire::Skip);
    let (_surviving_node, _connection) = cluster.node(1, job(), &survivor).await;
    let (dying_node, connection) = cluster.node(2, job(), &dying).await;
    cluster.advance_seconds(6).await;
    survivor.clear();
    survivor.block();
    drop(dying_node);
    connection.die().await;
    cluster.settle().await;
    assert_eq!(
        survivor.shards_and_reasons(),
        [(0, RunReason::Failover)],
        "a long run that has started"
    );

    cluster.advance_seconds(5).await;

    assert_eq!(survivor.shards_and_reasons(), [(0, RunReason::Failover), (1, RunReason::Schedule)]);
}

#[tokio::test(start_paused = true)]
async fn fire_due_during_a_takeover_elsewhere_is_marked_as_misfire() {
    let cluster = Cluster::new().await;
    let mut ours = cluster.join(1, with_failover(1)).await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    java.become_leader(&cluster.tree).await;
    cluster.assign_as_java_leader(&[&ours.id()]).await;
    for part in [ShardNode::Failover, ShardNode::Failovering, ShardNode::Running] {
        cluster.write(&cluster.tree.shard(0, part), java.id).await;
    }
    cluster.settle().await;

    assert_eq!(ours.run(&fire(1)).await, Vec::<u32>::new());
    assert!(cluster.exists(&cluster.tree.shard(0, ShardNode::Misfire)).await);
    for part in [ShardNode::Failover, ShardNode::Failovering, ShardNode::Running] {
        cluster.remove(&cluster.tree.shard(0, part)).await;
    }
    ours.wait_for(|news| *news == MemberEvent::Misfired).await;
}

#[tokio::test(start_paused = true)]
async fn run_ending_during_a_relist_leaves_no_nodes() {
    let cluster = Cluster::new().await;
    let victim = cluster.join(1, with_failover(1)).await;
    victim.claim(&fire(1)).await;
    let mut successor = cluster.join(2, with_failover(1)).await;
    victim.die().await;
    let taken = successor.take_over().await.unwrap();

    successor.connection.link.cut();
    cluster.advance_seconds(1).await;
    successor.connection.delay_listing(true);
    successor.connection.link.heal();
    cluster.settle().await;
    successor.finish(taken).await;
    successor.connection.delay_listing(false);
    cluster.settle().await;

    for part in ShardNode::HOLDERS {
        let path = cluster.tree.shard(0, part);
        assert!(!cluster.exists(&path).await, "{path} would prevent its owner from running it");
    }
    assert_eq!(successor.run(&fire(2)).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn withdrawn_claim_restores_failover_flag_and_misfire_mark() {
    let cluster = Cluster::new().await;
    let victim = cluster.join(1, with_failover(1)).await;
    victim.claim(&fire(1)).await;
    let mut successor = cluster.join(2, with_failover(1)).await;
    victim.die().await;
    cluster.settle().await;
    cluster.write(&cluster.tree.shard(0, ShardNode::Misfire), "").await;
    cluster.settle().await;

    for _ in 0..2 {
        let taken = successor.take_over().await.unwrap();
        assert!(!cluster.is_flagged(0).await);
        let withdrawn = items(&taken).into_iter().map(|item| (item, Release::Withdrawn)).collect();
        successor.member.claims().release(withdrawn).await.unwrap();
        cluster.settle().await;

        assert!(cluster.is_flagged(0).await, "another instance can take it over");
        assert!(cluster.exists(&cluster.tree.shard(0, ShardNode::Misfire)).await);
        assert_eq!(cluster.page(0).await.state, LedgerState::Lost);
        cluster.advance_seconds(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn takeover_whose_turn_panicked_is_tried_again() {
    let cluster = Cluster::new().await;
    let victim = cluster.join(1, with_failover(1)).await;
    let lost = victim.claim(&fire(1)).await;
    let mut successor = cluster.join(2, with_failover(1)).await;
    successor.start_taking_over().await;
    let latch = cluster.tree.failover_latch();
    successor.connection.panic_at_children_of(latch.clone());

    victim.die().await;
    cluster.settle().await;
    assert_eq!(cluster.children(&latch).await, [""; 0], "no entry blocks the queue");
    cluster.advance_seconds(2).await;

    assert_eq!(items(&successor.take_over().await.expect("a second try")), items(&lost));
}

#[tokio::test(start_paused = true)]
async fn takeover_whose_turn_is_refused_is_not_tried_again_at_once() {
    let cluster = Cluster::new().await;
    let victim = cluster.join(1, with_failover(1)).await;
    victim.claim(&fire(1)).await;
    let successor = cluster.join(2, with_failover(1)).await;
    successor.start_taking_over().await;
    let latch = cluster.tree.failover_latch();
    successor.connection.refuse(move |ops| creates_below(ops, &latch));

    victim.die().await;
    cluster.advance_seconds(3).await;

    let refusals = successor.connection.refusals();
    assert!((2..=8).contains(&refusals), "{refusals} refused writes in three seconds");
}
