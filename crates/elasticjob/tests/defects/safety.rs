//! S1 to S15: the defects by which Java ElasticJob runs a shard twice, or two runs of it at the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use elasticjob::{
    coordination::{
        claim::{ClaimCandidate, FailoverFlag, Refusal, ShardLoss, TransactionBuilder},
        latch,
        ledger::{LedgerState, VersionedPage},
        member::{ClaimError, ClaimScope, MemberEvent},
        tree::ShardNode,
        view::{CachedNode, Document, ShardView},
    },
    job::{Failover, InstanceId, Monitor, RunReason, ShardSelection, Strategy},
    registry::{Registry, Version},
    runtime::{CancelReason, Clock},
};

use crate::{
    cluster::{Cluster, Connection, creates, fire, job},
    members::{TestInstance, id, items, with_failover},
    nodes::TestHandler,
};

fn claimant<'a>(
    cluster: &'a Cluster,
    me: &'a InstanceId,
    connection: &Connection,
) -> TransactionBuilder<'a> {
    TransactionBuilder {
        tree: &cluster.tree,
        instance: me,
        session: connection.registry.session().id(),
        config_version: Version(0),
        monitor: Monitor::Executions,
        failover: Failover::TakeOver,
    }
}

async fn seen(cluster: &Cluster, shard: u32) -> VersionedPage {
    let version = cluster.stat(&cluster.tree.ledger_page(shard)).await.unwrap().version;
    VersionedPage { page: cluster.page(shard).await, version: Some(version), written_at: None }
}

#[tokio::test(start_paused = true)]
async fn s01_run_is_cancelled_before_its_session_can_end() {
    let cluster = Cluster::new().await;
    let (cut_off, successor) = (TestHandler::blocked(), TestHandler::immediate());
    let hourly = || with_failover(2).cron("5 0 * * * ?").unwrap();
    let (_successor_node, _connection) = cluster.node(1, hourly(), &successor).await;
    let (_node, connection) = cluster.node(2, hourly(), &cut_off).await;
    cluster.advance_seconds(5).await;
    let lost = cut_off.attempts()[0].clone();
    successor.clear();
    successor.block();

    // The registry keeps the session for at most ten more seconds.
    connection.link.cut();
    cluster.advance_seconds(10).await;
    let ended_at = cluster.clock.now();
    assert!(successor.attempts().is_empty(), "no takeover while the session may be alive");
    connection.link.expire();
    cluster.settle().await;
    let (cancelled, again) = (cut_off.attempts()[0].cancelled, successor.attempts());
    let claim_zxid = cluster.claim_zxid(lost.item).await;
    connection.link.heal();
    cluster.advance_seconds(2).await;

    let (reason, cancelled_at) = cancelled.expect("the run is cancelled");
    assert_eq!(reason, CancelReason::LeaseLost);
    assert!(cancelled_at < ended_at, "before the registry can have ended the session");
    assert_eq!((again.len(), again[0].item, again[0].reason), (1, lost.item, RunReason::Failover));
    assert!(again[0].token > lost.token);
    assert_eq!(
        cluster.claim_zxid(lost.item).await,
        claim_zxid,
        "the reconnected node does not touch it"
    );
    assert!(cluster.running(lost.item).await.is_some_and(|id| id.starts_with("10.0.0.1@-@")));
    successor.unblock();
    cluster.settle().await;
    assert_eq!(cluster.page(lost.item).await.state, LedgerState::Done);
    assert_eq!((cut_off.attempts().len(), successor.attempts().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn s02_reconnect_in_the_same_session_triggers_no_failover() {
    let cluster = Cluster::new().await;
    let observer = cluster.join(1, with_failover(3)).await;
    let ours = cluster.join(2, with_failover(3)).await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    cluster.settle().await;
    let claimed = ours.claim(&fire(1)).await;
    let of_java = cluster.owners(3).await.iter().position(|owner| owner == java.id).unwrap();
    java.mark_running(&cluster.tree, of_java as u32).await;
    let entered = cluster.stat(&cluster.tree.instance(ours.member.id())).await.unwrap().created;

    ours.connection.link.cut();
    cluster.advance_seconds(2).await;
    ours.connection.link.heal();
    java.delete_instance_node(&cluster.tree).await;
    cluster.advance(Duration::from_millis(400)).await;
    java.recreate_instance_node(&cluster.tree).await;
    cluster.advance_seconds(5).await;

    assert_eq!(cluster.stat(&cluster.tree.instance(ours.id())).await.unwrap().created, entered);
    assert!(!claimed.shards[0].status.is_lost());
    assert_eq!(cluster.children(&cluster.tree.failover_items()).await, Vec::<String>::new());
    assert_eq!(cluster.running(of_java as u32).await.as_deref(), Some(java.id));
    drop(observer);
}

#[tokio::test(start_paused = true)]
async fn s02_shard_flagged_by_java_is_not_taken_over_while_its_holder_lives() {
    let cluster = Cluster::new().await;
    let mut ours = cluster.join(1, with_failover(2)).await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    cluster.settle().await;
    let of_java = cluster.owners(2).await.iter().position(|owner| owner == java.id).unwrap() as u32;
    let (running, flag) =
        (cluster.tree.shard(of_java, ShardNode::Running), cluster.tree.failover_item(of_java));
    // A Java instance reconnects and a Java peer sees it: the instance node is deleted and re-created, the peer flags the shard, and the
    // `running` node of the run that continues is deleted.
    java.mark_running(&cluster.tree, of_java).await;
    java.delete_instance_node(&cluster.tree).await;
    cluster.write(&flag, "").await;
    java.recreate_instance_node(&cluster.tree).await;
    cluster.remove(&running).await;
    cluster.settle().await;

    assert!(ours.take_over().await.is_none());
    assert!(cluster.stat(&flag).await.is_none(), "no other instance takes it over either");
    // The same, but the instance does not come back.
    java.mark_running(&cluster.tree, of_java).await;
    java.delete_instance_node(&cluster.tree).await;
    cluster.write(&flag, "").await;
    cluster.remove(&running).await;
    cluster.settle().await;
    assert!(ours.take_over().await.is_none(), "it may come back");
    cluster.advance_seconds(1).await;
    let taken = ours.take_over().await.unwrap();
    assert_eq!(taken.shards.iter().map(|shard| shard.item).collect::<Vec<_>>(), [of_java]);
}

#[tokio::test(start_paused = true)]
async fn s03_reconnect_deletes_no_running_node() {
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let mut ours = cluster.join(1, with_failover(2)).await;
    cluster.assign_as_java_leader(&[&ours.id(), &ours.id()]).await;
    cluster.settle().await;
    let claimed = ours
        .try_claim(
            &fire(1),
            ClaimScope::Triggered(ShardSelection::only([0]).unwrap()),
            Duration::ZERO,
        )
        .await
        .unwrap();
    // Java has taken over the other shard.
    java.mark_running(&cluster.tree, 1).await;
    let before = [cluster.claim_zxid(0).await, cluster.claim_zxid(1).await];

    ours.connection.link.cut();
    cluster.advance_seconds(2).await;
    ours.connection.link.heal();
    cluster.advance_seconds(2).await;
    assert!(!claimed.shards[0].status.is_lost());
    assert_eq!([cluster.claim_zxid(0).await, cluster.claim_zxid(1).await], before);
    // The same in a new session: the Java instance keeps its node.
    ours.connection.link.expire();
    ours.wait_for(|news| *news == MemberEvent::SessionLost).await;
    cluster.advance_seconds(2).await;

    assert_eq!(cluster.claim_zxid(1).await, before[1]);
    assert_eq!(cluster.running(1).await.as_deref(), Some(java.id));
}

#[tokio::test(start_paused = true)]
async fn s04_claim_is_one_atomic_create_and_the_loser_marks_a_misfire() {
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let ours = cluster.join(1, job(2)).await;
    cluster.assign_as_java_leader(&[&ours.id(), &ours.id()]).await;
    cluster.settle().await;

    // Our member saw that shard 1 does not run, and its claim is on its way: only now Java starts.
    let mut blocked = ours.connection.block_next(|ops| creates(ops, "/running"));
    let due = fire(1);
    let (claimed, ()) = tokio::join!(ours.claim(&due), async {
        blocked.reached().await;
        java.mark_running(&cluster.tree, 1).await;
        blocked.unblock();
    });

    assert_eq!(items(&claimed), [0]);
    assert_eq!(cluster.running(1).await.as_deref(), Some(java.id));
    assert!(cluster.exists(&cluster.tree.shard(1, ShardNode::Misfire)).await);
    assert!(!cluster.exists(&cluster.tree.shard(0, ShardNode::Misfire)).await);
    // A claim that Java overwrites nevertheless is noticed.
    cluster.remove(&cluster.tree.shard(0, ShardNode::Running)).await;
    java.mark_running(&cluster.tree, 0).await;
    cluster.settle().await;
    assert!(claimed.shards[0].status.is_lost());
    assert_eq!(claimed.shards[0].status.cancel().reason(), Some(CancelReason::LeaseLost));
}

#[tokio::test(start_paused = true)]
async fn s05_moved_shard_has_one_run_at_a_time_without_monitoring() {
    let cluster = Cluster::new().await;
    let blind = || job(1).monitor(Monitor::Nothing);
    let before = cluster.join(1, blind()).await;
    let claimed = before.claim(&fire(1)).await;
    let after = cluster.join(2, blind()).await;
    cluster.write(&cluster.tree.server("10.0.0.1"), "DISABLED").await;
    cluster.settle().await;
    assert_eq!(cluster.owners(1).await, [after.id()], "without a running node the shard moves");

    let early = after.try_claim(&fire(2), ClaimScope::Scheduled, Duration::ZERO).await;
    assert!(
        matches!(&early, Err(ClaimError::HeldElsewhere { shard: 0, holder }) if *holder == id(1)),
        "{early:?}"
    );
    before.finish(claimed).await;
    cluster.settle().await;

    assert_eq!(after.run(&fire(2)).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn s06_late_claim_of_moved_shards_is_withdrawn() {
    let cluster = Cluster::new().await;
    let leader = cluster.join(1, job(3)).await;
    let late = cluster.join(2, job(3)).await;
    let due = fire(1);

    let mut blocked = late.connection.block_next(|ops| creates(ops, "/running"));
    let (claimed, joined) = tokio::join!(late.claim(&due), async {
        blocked.reached().await;
        let joined = cluster.join(3, job(3)).await;
        blocked.unblock();
        joined
    });
    let late_shards = items(&claimed);
    late.finish(claimed).await;
    let mut run = [late_shards, joined.run(&due).await, leader.run(&due).await];

    let owners = cluster.owners(3).await;
    let of = |instance: &TestInstance| {
        let owned = (0..).zip(&owners).filter(|(_, owner)| **owner == instance.id());
        owned.map(|(shard, _)| shard).collect::<Vec<u32>>()
    };
    assert_eq!(run, [of(&late), of(&joined), of(&leader)], "each runs the shards it owns by now");
    run.sort();
    assert_eq!(run.concat(), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn s07_slow_survivor_neither_flags_again_nor_ends_the_new_run() {
    let cluster = Cluster::new().await;
    let mut successor = cluster.join(2, with_failover(1)).await;
    let slow = cluster.connect().await;
    let dead = cluster.connect().await;
    let (dead_id, slow_id) = (id(7), id(8));
    let dead_claimant = claimant(&cluster, &dead_id, &dead);
    let stakes = [ClaimCandidate::new(0, VersionedPage::default())];
    dead.registry.multi(dead_claimant.claim(&fire(1), &stakes).ops()).await.unwrap();
    // The slow survivor reads who died and what it ran, and stalls before it writes.
    let running =
        dead.registry.get(&cluster.tree.shard(0, ShardNode::Running)).await.unwrap().unwrap();
    let document = Document {
        data: running.data,
        version: running.stat.version,
        created: running.stat.created,
        written_at_ms: 0,
    };
    let view =
        ShardView { running: Some(CachedNode::Read(Box::new(document))), ..ShardView::default() };
    let before = seen(&cluster, 0).await;
    let lost = before.page.after_loss(&dead_id);
    let flag = FailoverFlag::Create;
    let change = ShardLoss { shard: 0, before: &before, after: &lost, view: &view, flag };
    let too_late = claimant(&cluster, &slow_id, &slow).mark_lost(&dead_id, [change]);

    // The other survivor marks the shard as lost and takes it over.
    dead.die().await;
    cluster.remove(&cluster.tree.process(&dead_id)).await;
    cluster.advance_seconds(80).await;
    let taken = successor.take_over().await.unwrap();
    let claim_zxid = cluster.claim_zxid(0).await;
    let refused = slow.registry.multi(too_late.ops()).await.unwrap_err();

    assert_eq!(items(&taken), [0]);
    assert_eq!(too_late.refusal(&refused), Some(Refusal::Page(0)));
    assert!(!cluster.is_flagged(0).await, "there is no second takeover");
    assert_eq!(cluster.claim_zxid(0).await, claim_zxid);
    assert!(!taken.shards[0].status.is_lost());
}

#[tokio::test(start_paused = true)]
async fn s08_running_shards_of_a_stopping_node_are_not_taken_over() {
    let cluster = Cluster::new().await;
    let (leaving, staying) = (TestHandler::blocked(), TestHandler::immediate());
    let (_staying_node, _connection) = cluster.node(1, with_failover(2), &staying).await;
    let (leaving_node, _connection) = cluster.node(2, with_failover(2), &leaving).await;
    cluster.advance_seconds(5).await;
    let shard = leaving.attempts()[0].item;

    let (took, ()) = tokio::join!(cluster.stop(leaving_node), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(cluster.children(&cluster.tree.instances()).await.len(), 1);
        assert!(cluster.running(shard).await.is_some());
        assert!(!cluster.is_flagged(shard).await);
        leaving.unblock();
    });
    cluster.settle().await;

    assert!(took < Duration::from_secs(30), "the run ended without being cancelled: {took:?}");
    assert_eq!(leaving.attempts().len(), 1);
    assert_eq!(leaving.attempts()[0].cancelled, None);
    assert_eq!(cluster.children(&cluster.tree.instances()).await.len(), 1);
    assert!(staying.attempts().iter().all(|attempt| attempt.reason != RunReason::Failover));
}

#[tokio::test(start_paused = true)]
async fn s09_lost_shard_that_ran_at_its_next_fire_is_not_taken_over() {
    let cluster = Cluster::new().await;
    let dead = cluster.join(1, with_failover(1)).await;
    dead.claim(&fire(1)).await;
    let mut successor = cluster.join(2, with_failover(1)).await;
    dead.die().await;
    cluster.settle().await;
    assert!(cluster.is_flagged(0).await);

    // The next fire comes before a takeover.
    assert_eq!(successor.run(&fire(2)).await, [0]);
    assert!(!cluster.is_flagged(0).await);
    assert!(successor.take_over().await.is_none());
    successor.member.stop_taking_over().await;

    // Java runs the shard and leaves the flag: our member saw that the shard ran.
    let java = cluster.java("10.0.0.3@-@4711").await;
    cluster.settle().await;
    cluster.write(&cluster.tree.failover_item(0), "").await;
    cluster.settle().await;
    java.mark_running(&cluster.tree, 0).await;
    cluster.settle().await;
    cluster.remove(&cluster.tree.shard(0, ShardNode::Running)).await;
    cluster.settle().await;
    assert!(successor.take_over().await.is_none());
    assert!(!cluster.is_flagged(0).await);
}

#[tokio::test(start_paused = true)]
async fn s10_single_sharding_balance_runs_once_with_instances_on_one_host() {
    let cluster = Cluster::new().await;
    let balanced = || job(1).strategy(&Strategy::SingleShardingBalance);
    let mut instances = Vec::new();
    for process in [11, 12, 13] {
        let id = InstanceId::new([10, 0, 0, 1].into(), process, 7);
        instances.push(cluster.join_as(id, balanced(), cluster.connect().await).await.unwrap());
    }
    instances.push(cluster.join(2, balanced()).await);

    for nth in 1..6 {
        let due = fire(nth);
        let mut runs = Vec::new();
        for instance in &instances {
            // All at once: no instance releases before every instance has tried.
            if let Ok(claimed) =
                instance.try_claim(&due, ClaimScope::Scheduled, Duration::ZERO).await
            {
                runs.push((instance, claimed));
            }
        }
        assert_eq!(runs.len(), 1, "fire {nth}");
        for (instance, claimed) in runs {
            instance.finish(claimed).await;
        }
        cluster.settle().await;
    }

    cluster.remove(&cluster.tree.next_instance_ip()).await;
    cluster.write(&cluster.tree.next_instance_ip(), "10.0.0.1").await;
    cluster.settle().await;
    let mut ran = Vec::new();
    for instance in &instances {
        if !instance.run(&fire(6)).await.is_empty() {
            ran.push(instance.id());
        }
    }
    assert_eq!(ran, [instances[0].id()], "the smallest id on the host that has the turn");
}

#[tokio::test(start_paused = true)]
async fn s11_action_fails_after_losing_its_place_in_the_latch() {
    let cluster = Cluster::new().await;
    let _other = cluster.join(1, with_failover(1)).await;
    cluster.write(&cluster.tree.failover_item(0), "").await;
    let connection = cluster.connect().await;
    let me = id(9);
    let stakes = [ClaimCandidate {
        awaits_failover: true,
        ..ClaimCandidate::new(0, VersionedPage::default())
    }];
    let queue = cluster.tree.failover_latch();
    let turn =
        |ticket| latch::acquire(&*connection.registry, &queue, ticket, Duration::from_secs(1));

    let late = turn(1).await.unwrap().expect("the queue is empty");
    cluster.remove(&late.node).await;
    let steps = claimant(&cluster, &me, &connection).take_over(&late, &fire(1), &stakes);
    let refused = connection.registry.multi(steps.ops()).await.unwrap_err();
    assert_eq!(steps.refusal(&refused), Some(Refusal::Precondition));
    // The same when the session that queued is over.
    let of_old_session = turn(2).await.unwrap().unwrap();
    connection.link.expire();
    let steps = claimant(&cluster, &me, &connection).take_over(&of_old_session, &fire(1), &stakes);
    let refused = connection.registry.multi(steps.ops()).await.unwrap_err();

    assert_eq!(steps.refusal(&refused), Some(Refusal::Precondition));
    assert!(cluster.is_flagged(0).await);
    assert_eq!(cluster.running(0).await, None);
    assert!(!cluster.exists(&cluster.tree.ledger_page(0)).await);
}

#[tokio::test(start_paused = true)]
async fn s12_leader_elected_meanwhile_is_not_replaced() {
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    cluster.settle().await;
    let connection = cluster.connect().await;
    let mut blocked = connection.block_next(|ops| creates(ops, "/leader/election/instance"));

    // Our member has its turn in the latch, saw no leader, and its election is on its way.
    let ours = cluster.join_as(id(1), job(2), connection).await.unwrap();
    blocked.reached().await;
    java.become_leader(&cluster.tree).await;
    let elected = cluster.stat(&cluster.tree.leader()).await.unwrap().created;
    blocked.unblock();
    cluster.advance_seconds(2).await;

    assert_eq!(cluster.text(&cluster.tree.leader()).await.as_deref(), Some(java.id));
    assert_eq!(cluster.stat(&cluster.tree.leader()).await.unwrap().created, elected);
    drop(ours);
}

#[tokio::test(start_paused = true)]
async fn s13_every_session_has_its_own_id_and_inherits_nothing() {
    let cluster = Cluster::new().await;
    let (one, two) = (TestHandler::immediate(), TestHandler::immediate());
    // The same address and the same process id, as with two containers whose process id is 1.
    let (_first, connection) = cluster.node(1, with_failover(2), &one).await;
    let (_second, _connection) = cluster.node(1, with_failover(2), &two).await;
    let before = cluster.children(&cluster.tree.instances()).await;
    assert_eq!(before.len(), 2);

    connection.link.expire();
    cluster.advance_seconds(3).await;

    let after = cluster.children(&cluster.tree.instances()).await;
    assert_eq!(after.len(), 2);
    let renamed: Vec<_> = after.iter().filter(|id| !before.contains(id)).collect();
    assert_eq!(renamed.len(), 1, "{before:?} became {after:?}");

    // Nodes left by an earlier process with the same address and process id belong to a dead instance.
    let cluster = Cluster::new().await;
    let mut ours = cluster.join(1, with_failover(1)).await;
    let earlier_id = "10.0.0.1@-@101";
    assert!(ours.id().starts_with(earlier_id));
    cluster.write(&cluster.tree.shard(0, ShardNode::Running), earlier_id).await;
    cluster.write(&cluster.tree.trigger(earlier_id), "").await;
    cluster.advance_seconds(80).await;
    assert_eq!(cluster.running(0).await, None);
    assert!(!cluster.exists(&cluster.tree.trigger(earlier_id)).await);
    assert_eq!(items(&ours.take_over().await.unwrap()), [0]);
}

#[tokio::test(start_paused = true)]
async fn s14_takeover_runs_exactly_the_lost_shards() {
    let cluster = Cluster::new().await;
    let (survivor, victim) = (TestHandler::immediate(), TestHandler::blocked());
    let (_surviving_node, _connection) = cluster.node(1, with_failover(6), &survivor).await;
    let (dying_node, connection) = cluster.node(2, with_failover(6), &victim).await;
    cluster.advance_seconds(5).await;
    assert_eq!((survivor.attempts().len(), victim.attempts().len()), (3, 3));
    let own: BTreeSet<u32> = survivor.attempts().iter().map(|attempt| attempt.item).collect();
    survivor.clear();

    drop(dying_node);
    connection.die().await;
    // Until just before the next fire.
    cluster.advance(Duration::from_millis(4_900)).await;

    let mut taken: BTreeMap<u32, Vec<RunReason>> = BTreeMap::new();
    for (item, reason) in survivor.shards_and_reasons() {
        taken.entry(item).or_default().push(reason);
    }
    let lost = (0..6).filter(|shard| !own.contains(shard));
    assert_eq!(taken, lost.map(|shard| (shard, vec![RunReason::Failover])).collect());
}

#[tokio::test(start_paused = true)]
async fn s15_shard_moving_between_two_clocks_runs_once_per_fire() {
    let cluster = Cluster::new().await;
    let early = cluster.join(1, job(4)).await;
    let late = cluster.join(2, job(4)).await;
    let due = fire(1);
    let by_early = early.run(&due).await;
    assert_eq!(by_early.len(), 2);

    // After the first clock has fired and before the second one does, all shards move to the instance with the later clock.
    cluster.write(&cluster.tree.server("10.0.0.1"), "DISABLED").await;
    cluster.settle().await;
    assert_eq!(cluster.owners(4).await, vec![late.id(); 4]);
    let by_late = late.run(&due).await;
    let mut all = [by_early, by_late].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3], "each shard once");

    // Moved back after the fire: it does not run again.
    cluster.write(&cluster.tree.server("10.0.0.1"), "ENABLED").await;
    cluster.settle().await;
    assert_eq!(early.run(&due).await, Vec::<u32>::new());
    assert_eq!(early.run(&fire(2)).await.len(), 2);
}
