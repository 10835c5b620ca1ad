//! L9, L11, L12, L13, L23: the defects by which Java ElasticJob loses state in an outage of the registry, or cannot stop.

use std::time::Duration;

use elasticjob::{
    coordination::{
        ledger::LedgerState,
        member::{ClaimError, ClaimScope, MemberEvent, Release},
        tree::ShardNode,
    },
    job::{Monitor, Outcome, Reconcile},
    registry::{Create, ExpectedVersion, Op, Path, Registry},
    runtime::CancelReason,
};

use crate::{
    cluster::{Cluster, RECHECK_SECONDS, fire, job},
    members::{items, with_failover},
    nodes::TestHandler,
};

#[tokio::test(start_paused = true)]
async fn l09_changes_during_a_lost_connection_are_seen_afterwards() {
    let cluster = Cluster::new().await;
    let victim = cluster.join(1, with_failover(3)).await;
    let mut ours = cluster.join(2, with_failover(3)).await;
    let lost = victim.claim(&fire(1)).await;
    let claimed = ours.claim(&fire(1)).await;
    let overwritten = items(&claimed)[0];

    ours.connection.link.cut();
    cluster.settle().await;
    victim.die().await;
    cluster.write(&cluster.tree.trigger(ours.id()), "").await;
    // Deleted and re-created with the same version and data: only the creation zxid differs.
    let running = cluster.tree.shard(overwritten, ShardNode::Running);
    cluster
        .multi(vec![
            Op::Delete { path: running.clone(), expected: ExpectedVersion::Any },
            Op::Create(Create::persistent(&running, ours.id())),
        ])
        .await;
    ours.connection.link.heal();
    cluster.settle().await;

    ours.wait_for(|news| matches!(news, MemberEvent::Triggered(_))).await;
    assert!(cluster.is_flagged(items(&lost)[0]).await, "the death during the outage is noticed");
    assert!(claimed.shards[0].status.is_lost());
    assert_eq!(claimed.shards[0].status.cancel().reason(), Some(CancelReason::LeaseLost));
}

#[tokio::test(start_paused = true)]
async fn l11_unanswered_request_is_neither_absent_nor_forgotten() {
    let cluster = Cluster::new().await;
    let ours = cluster.join(1, with_failover(1)).await;
    for (nth, is_carried_out) in [(1, true), (2, false)] {
        let claimed = ours.claim(&fire(nth)).await;
        let link = &ours.connection.link;
        if is_carried_out {
            link.cut_after_next_request();
        } else {
            link.cut();
        }
        tokio::join!(ours.finish(claimed), async {
            cluster.advance_seconds(1).await;
            let unknown = ours.connection.registry.get(&cluster.tree.config()).await;
            assert!(
                unknown.is_err_and(|error| error.is_outage()),
                "an outage does not mean absent"
            );
            link.heal();
            cluster.advance_seconds(2).await;
        });

        assert_eq!(cluster.running(0).await, None, "carried out: {is_carried_out}");
        assert_eq!(cluster.page(0).await.state, LedgerState::Done);
    }
    // A claim whose answer is lost is withdrawn, and the fire is claimed again.
    ours.connection.link.cut_after_next_request();
    let due = fire(3);
    let lost = ours.try_claim(&due, ClaimScope::Scheduled, Duration::ZERO).await;
    assert!(matches!(&lost, Err(ClaimError::Registry(error)) if error.is_outage()), "{lost:?}");
    ours.connection.link.heal();
    cluster.advance_seconds(2).await;
    assert_eq!(ours.run(&due).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn job_removed_by_java_during_a_run_leaves_no_running_page() {
    let cluster = Cluster::new().await;
    let ours = cluster.join(1, job(1)).await;
    let claimed = ours.claim(&fire(1)).await;

    // Java's console removes the tree and does not know the ledger; our process lives on.
    cluster.remove(cluster.tree.root()).await;
    cluster.settle().await;
    ours.finish(claimed).await;
    let (member, _connection) = (ours.member, ours.connection);
    member.leave().await;
    let other = cluster.join(2, job(1)).await;

    assert_eq!(cluster.page(0).await.state, LedgerState::Done);
    assert_eq!(other.run(&fire(2)).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn unanswered_end_of_monitoring_leaves_no_running_page() {
    let cluster = Cluster::new().await;
    let ours = cluster.join(1, job(1)).await;
    let claimed = ours.claim(&fire(1)).await;
    let mut blocked = ours.connection.block_next(|ops| {
        let is_running = |path: &Path| path.as_str().ends_with("/running");
        ops.iter().any(|op| matches!(op, Op::Delete { path, .. } if is_running(path)))
    });

    cluster.write(&cluster.tree.config(), &job(1).monitor(Monitor::Nothing).to_yaml()).await;
    blocked.reached().await;
    ours.connection.link.cut_after_next_request();
    blocked.unblock();
    cluster.settle().await;
    ours.connection.link.heal();
    cluster.advance_seconds(2).await;
    assert_eq!(cluster.running(0).await, None, "the request was carried out");
    ours.finish(claimed).await;

    assert_eq!(cluster.page(0).await.state, LedgerState::Done);
}

#[tokio::test(start_paused = true)]
async fn l12_recheck_needs_no_reconciliation_and_survives_an_error() {
    let cluster = Cluster::new().await;
    let mut ours = cluster.join(1, with_failover(2).reconcile(Reconcile::OFF)).await;
    let dead = "10.0.0.9@-@4711";
    // No instance node is deleted, so only the recheck finds it.
    cluster.write(&cluster.tree.shard(0, ShardNode::Running), dead).await;
    cluster.advance_seconds(RECHECK_SECONDS).await;
    assert_eq!(cluster.running(0).await, None);
    assert_eq!(items(&ours.take_over().await.unwrap()), [0]);
    ours.member.stop_taking_over().await;

    ours.connection.link.cut();
    cluster.advance_seconds(2 * RECHECK_SECONDS).await;
    ours.connection.link.heal();
    cluster.settle().await;
    cluster.write(&cluster.tree.shard(1, ShardNode::Running), dead).await;
    cluster.advance_seconds(RECHECK_SECONDS).await;
    assert_eq!(cluster.running(1).await, None, "the recheck continues after the outage");
}

#[tokio::test(start_paused = true)]
async fn l13_reconnect_keeps_the_status_of_the_server() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, job(1), &handler).await;
    let server = cluster.tree.server("10.0.0.1");
    for status in ["ENABLED", "DISABLED"] {
        cluster.write(&server, status).await;
        let before = cluster.stat(&server).await.unwrap();
        connection.link.cut();
        cluster.advance_seconds(2).await;
        connection.link.heal();
        cluster.advance_seconds(2).await;
        connection.link.expire();
        cluster.advance_seconds(3).await;
        assert_eq!(cluster.children(&cluster.tree.instances()).await.len(), 1, "the node is back");
        assert_eq!(cluster.stat(&server).await.unwrap().changed, before.changed, "{status}");
    }
    // A missing server node is written again, as the configuration says.
    cluster.remove(&server).await;
    connection.link.expire();
    cluster.advance_seconds(3).await;
    assert_eq!(cluster.text(&server).await.as_deref(), Some("ENABLED"));
}

#[tokio::test(start_paused = true)]
async fn l23_node_stops_whatever_it_waits_for() {
    // A Java leader that never assigns shards.
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    java.become_leader(&cluster.tree).await;
    cluster.write(&cluster.tree.config(), &job(1).to_yaml()).await;
    cluster.write(&cluster.tree.necessary(), "").await;
    let handler = TestHandler::immediate();
    let (node, _connection) = cluster.node(1, job(1), &handler).await;
    cluster.advance_seconds(7).await;
    let took = cluster.stop(node).await;
    assert!(took < Duration::from_secs(10), "{took:?}");

    // An unreachable registry.
    let cluster = Cluster::new().await;
    let (node, connection) = cluster.node(1, job(1), &handler).await;
    cluster.advance_seconds(3).await;
    connection.link.cut();
    cluster.advance_seconds(3).await;
    let took = cluster.stop(node).await;
    assert!(took < Duration::from_secs(10), "{took:?}");

    // A run that ends only when it is cancelled.
    let cluster = Cluster::new().await;
    let endless = TestHandler::blocked();
    let (node, _connection) = cluster.node(1, job(1), &endless).await;
    cluster.advance_seconds(5).await;
    let took = cluster.stop(node).await;
    assert!(took < Duration::from_secs(40), "{took:?}");
    assert_eq!(
        endless.attempts()[0].cancelled.map(|(reason, _)| reason),
        Some(CancelReason::ShuttingDown)
    );
}

#[tokio::test(start_paused = true)]
async fn foreign_node_below_running_keeps_only_its_own_shard_held() {
    let cluster = Cluster::new().await;
    let ours = cluster.join(1, with_failover(2)).await;
    let claimed = ours.claim(&fire(1)).await;
    let foreign = cluster.tree.shard(0, ShardNode::Running).join("note").unwrap();
    cluster.write(&foreign, "").await;

    let ended = [0, 1].map(|item| (item, Release::Ended(Outcome::Succeeded)));
    let answer = ours.member.claims().release(ended.to_vec()).await;
    drop(claimed);

    assert!(answer.is_err(), "the run does not wait for a shard that cannot be released");
    assert_eq!(cluster.page(0).await.state, LedgerState::Running);
    assert_eq!(cluster.page(1).await.state, LedgerState::Done);
    assert_eq!(ours.run(&fire(2)).await, [1]);
    cluster.remove(&foreign).await;
    cluster.advance_seconds(2).await;
    assert_eq!(cluster.page(0).await.state, LedgerState::Done);
}

#[tokio::test(start_paused = true)]
async fn foreign_node_below_running_of_a_dead_instance_is_no_endless_loop() {
    for java in [false, true] {
        let cluster = Cluster::new().await;
        let ours = cluster.join(1, with_failover(1)).await;
        let foreign = cluster.tree.shard(0, ShardNode::Running).join("note").unwrap();
        if java {
            let dead = cluster.java("10.0.0.9@-@4711").await;
            dead.mark_running(&cluster.tree, 0).await;
            cluster.write(&foreign, "").await;
            dead.die().await;
        } else {
            let dead = cluster.join(2, with_failover(1)).await;
            cluster.write(&cluster.tree.shard(0, ShardNode::Running), &dead.id()).await;
            cluster.write(&foreign, "").await;
            dead.die().await;
        }
        cluster.advance_seconds(30).await;
        assert!(ours.connection.refusals() < 20, "{} refusals", ours.connection.refusals());

        // As soon as an operator has removed the node, the shard is free.
        cluster.remove(&foreign).await;
        cluster.advance_seconds(12).await;
        assert_eq!(cluster.running(0).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_fire_runs_when_the_registry_allows_it() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, job(1), &handler).await;
    connection.throttle(3);

    // Due at 06:00:05; the next one at 06:00:10.
    cluster.advance_seconds(9).await;

    let due: Vec<String> = handler.attempts().into_iter().map(|attempt| attempt.due_at).collect();
    assert_eq!(due, ["2026-11-15T06:00:05Z"]);
}

#[tokio::test(start_paused = true)]
async fn unanswered_claim_of_a_vanished_shard_blocks_no_other_claim() {
    let cluster = Cluster::new().await;
    let unmonitored = |shards| job(shards).monitor(Monitor::Nothing);
    let ours = cluster.join(1, unmonitored(2)).await;
    assert_eq!(ours.run(&fire(1)).await, [0, 1]);
    cluster.write(&cluster.tree.shard(1, ShardNode::Misfire), "").await;
    cluster.settle().await;
    ours.connection.link.cut_after_next_request();
    let lost = ours.try_claim(&fire(2), ClaimScope::Scheduled, Duration::ZERO).await;
    assert!(matches!(&lost, Err(ClaimError::Registry(error)) if error.is_outage()), "{lost:?}");

    // Meanwhile another leader removes the shard.
    cluster.remove(&cluster.tree.shard(1, ShardNode::Root)).await;
    cluster.write(&cluster.tree.config(), &unmonitored(1).to_yaml()).await;
    ours.connection.link.heal();
    cluster.advance_seconds(2).await;

    assert_eq!(ours.run(&fire(3)).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn foreign_node_below_a_misfire_mark_stops_only_its_shard() {
    let cluster = Cluster::new().await;
    let ours = cluster.join(1, job(2)).await;
    assert_eq!(ours.run(&fire(1)).await, [0, 1]);
    // A claim deletes the mark, which the registry refuses while it has a child.
    let mark = cluster.tree.shard(0, ShardNode::Misfire);
    cluster.write(&mark, "").await;
    cluster.write(&mark.join("note").unwrap(), "").await;
    cluster.settle().await;

    assert_eq!(ours.run(&fire(2)).await, [1]);
    assert!(ours.connection.refusals() < 20, "{} refusals", ours.connection.refusals());
}
