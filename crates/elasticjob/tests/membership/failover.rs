//! Recovery of the shards of dead instances.

use std::time::Duration;

use elasticjob::{
    coordination::{
        ledger::{LedgerPage, LedgerState},
        member::{ClaimError, MemberEvent},
        tree::ShardNode,
    },
    registry::{Create, ExpectedVersion, ensure_path},
    runtime::CancelToken,
    testing::conformance::TestServer,
};

use crate::cluster::{
    Cluster, TIMEOUT, claim, finish, items, job, take_over, try_claim, wait_for_news,
    wait_for_node, with_failover,
};

pub(crate) async fn lost_shard_is_taken_over_once_as_the_second_attempt(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "lost-shard-is").await;
    let one = cluster.join(1, with_failover(2)).await;
    let mut two = cluster.join(2, with_failover(2)).await;
    cluster.wait_for_shares("one each", 2, &[1, 1]).await;
    let fire = cluster.fire();
    let lost = claim(&one, &fire).await;

    one.die().await;
    let taken = take_over(&mut two).await;

    assert_eq!(items(&taken), items(&lost));
    assert_eq!((&taken.fire, taken.shards[0].attempt), (&fire, 2));
    assert!(taken.shards[0].token > lost.shards[0].token);
    let shard = items(&taken)[0];
    for part in [ShardNode::Running, ShardNode::Failover, ShardNode::Failovering] {
        let node = cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap();
        assert_eq!(node.unwrap().data, two.member.id().to_string(), "{part:?}");
    }
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(shard)).await.unwrap(), None);
    let own = claim(&two, &fire).await;
    assert_ne!(items(&own), items(&taken), "own shards still run");
    finish(&two, taken).await;
    finish(&two, own).await;
    for part in [ShardNode::Running, ShardNode::Failover, ShardNode::Failovering] {
        assert_eq!(cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap(), None);
    }
    cluster.wait_for_shares("all to the survivor", 2, &[2]).await;
    let again = try_claim(&two, &fire, TIMEOUT).await;
    assert!(matches!(again, Err(ClaimError::NothingToRun)), "{again:?}");
}

pub(crate) async fn next_regular_run_clears_a_pending_failover_flag(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "next-regular-run").await;
    let one = cluster.join(1, with_failover(1)).await;
    cluster.wait_for_shares("all", 1, &[1]).await;
    claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, with_failover(1)).await;

    one.die().await;
    wait_for_node(&cluster, &cluster.tree.failover_item(0), true).await;
    cluster.wait_for_owner(&two, 1).await;
    let next = claim(&two, &cluster.fire()).await;

    assert_eq!(items(&next), [0]);
    let early = tokio::time::timeout(Duration::from_millis(300), take_over(&mut two)).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(0)).await.unwrap(), None);
    finish(&two, next).await;
}

pub(crate) async fn shut_down_instance_that_still_runs_is_not_dead(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "shut-down-instance").await;
    let mut one = cluster.join(1, with_failover(1)).await;
    cluster.wait_for_shares("all", 1, &[1]).await;
    let claimed = claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, with_failover(1)).await;

    let instance = cluster.tree.instance(one.member.id());
    cluster.registry().delete(&instance, ExpectedVersion::Any).await.unwrap();
    wait_for_news(&mut one, |news| *news == MemberEvent::ShutDown).await;
    // The process is still alive: no shard is flagged, and the instance keeps its claim.
    let next = cluster.fire();
    let meanwhile = try_claim(&two, &next, Duration::from_millis(300)).await;
    assert!(
        matches!(meanwhile, Err(ClaimError::NothingToRun | ClaimError::Resharding)),
        "{meanwhile:?}"
    );
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(0)).await.unwrap(), None);
    assert!(!claimed.shards[0].status.is_lost());
    finish(&one, claimed).await;
    one.member.leave().await;

    cluster.wait_for_owner(&two, 1).await;
    let after = claim(&two, &next).await;
    finish(&two, after).await;
    wait_for_news(&mut two, |news| *news == MemberEvent::Ready).await;
}

pub(crate) async fn lost_shard_without_failover_runs_at_its_next_fire(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "lost-shard-without").await;
    let one = cluster.join(1, job(1)).await;
    cluster.wait_for_shares("all", 1, &[1]).await;
    claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, job(1)).await;

    one.die().await;
    cluster.wait_for_owner(&two, 1).await;
    let next = cluster.fire();
    let claimed = claim(&two, &next).await;

    assert_eq!((items(&claimed), &claimed.fire), (vec![0], &next));
    finish(&two, claimed).await;
    wait_for_news(&mut two, |news| *news == MemberEvent::Ready).await;
}

pub(crate) async fn shard_of_a_dead_java_instance_is_taken_over(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "shard-of-a").await;
    let mut node = cluster.join(1, with_failover(2)).await;
    cluster.wait_for_shares("all", 2, &[2]).await;
    let java = cluster.tree.instance("10.0.0.8@-@4711");
    let doc = "jobInstanceId: 10.0.0.8@-@4711\nserverIp: 10.0.0.8\n";
    let registry = cluster.ground.join(cluster.namespace, None).await;
    let session = registry.registry.session().id();
    registry.registry.create(Create::ephemeral(&java, doc, session)).await.unwrap();
    let running = cluster.tree.shard(1, ShardNode::Running);
    cluster.registry().create(Create::persistent(&running, "10.0.0.8@-@4711")).await.unwrap();

    registry.registry.close().await;
    let taken = take_over(&mut node).await;

    assert_eq!(items(&taken), [1]);
    assert!(!taken.fire.run.is_scheduled(), "the fire that Java ran is unknown");
    let page = cluster.registry().get(&cluster.tree.ledger_page(1)).await.unwrap().unwrap();
    assert_eq!(LedgerPage::read(&page.data).unwrap().state, LedgerState::Running);
    finish(&node, taken).await;
}

pub(crate) async fn takeover_ending_after_an_outage_leaves_no_nodes(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "takeover-ending-after").await;
    let one = cluster.join(1, with_failover(2)).await;
    let mut two = cluster.join(2, with_failover(2)).await;
    cluster.wait_for_shares("one each", 2, &[1, 1]).await;
    let fire = cluster.fire();
    let lost = claim(&one, &fire).await;
    one.die().await;
    let taken = take_over(&mut two).await;

    two.connection.link.cut().await;
    wait_for_news(&mut two, |news| *news == MemberEvent::Disconnected).await;
    two.connection.link.heal().await;
    finish(&two, taken).await;

    let shard = items(&lost)[0];
    for part in [ShardNode::Running, ShardNode::Failover, ShardNode::Failovering] {
        let left = cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap();
        assert_eq!(left, None, "{part:?}");
    }
}

pub(crate) async fn java_failover_flag_after_a_finished_run_starts_a_new_run(
    ground: &dyn TestServer,
) {
    let mut cluster = Cluster::new(ground, "java-failover-flag").await;
    let mut node = cluster.join(1, with_failover(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    finish(&node, claimed).await;

    let flag = cluster.tree.failover_item(0);
    ensure_path(cluster.registry(), &cluster.tree.failover_items()).await.unwrap();
    cluster.registry().create(Create::persistent(&flag, "")).await.unwrap();
    let taken = take_over(&mut node).await;

    assert!(!taken.fire.run.is_scheduled(), "{:?}", taken.fire);
    assert_eq!(taken.shards[0].attempt, 1);
}

pub(crate) async fn shard_lost_while_disabled_is_taken_over_once_enabled(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "shard-lost-while").await;
    let one = cluster.join(1, with_failover(1)).await;
    cluster.wait_for_owner(&one, 1).await;
    let fire = cluster.fire();
    claim(&one, &fire).await;
    let mut two = cluster.join(2, with_failover(1)).await;
    let disabled = cluster.tree.shard(0, ShardNode::Disabled);
    cluster.registry().create(Create::persistent(&disabled, "")).await.unwrap();

    one.die().await;
    let flag = cluster.tree.failover_item(0);
    wait_for_node(&cluster, &flag, true).await;
    cluster.registry().delete(&disabled, ExpectedVersion::Any).await.unwrap();
    let taken = take_over(&mut two).await;

    assert_eq!((&taken.fire, taken.shards[0].attempt), (&fire, 2));
}

pub(crate) async fn failover_flag_is_settled_by_a_holder_that_stays_alive(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "failover-flag-is").await;
    // A Java instance runs the shard, and has left the failover flag of an earlier loss.
    let java = cluster.ground.join(cluster.namespace, None).await;
    let id = "10.0.0.8@-@4711";
    let instance = cluster.tree.instance(id);
    let (running, flag) =
        (cluster.tree.shard(0, ShardNode::Running), cluster.tree.failover_item(0));
    for folder in [instance.parent(), running.parent(), flag.parent()] {
        ensure_path(cluster.registry(), &folder.unwrap()).await.unwrap();
    }
    let session = java.registry.session().id();
    java.registry.create(Create::ephemeral(&instance, "", session)).await.unwrap();
    for (path, data) in [(&running, id), (&flag, "")] {
        cluster.registry().create(Create::persistent(path, data)).await.unwrap();
    }
    let mut node = cluster.join(1, with_failover(1)).await;

    node.member.claims().take_over(CancelToken::new()).await;
    cluster.registry().delete(&running, ExpectedVersion::Any).await.unwrap();

    wait_for_node(&cluster, &flag, false).await;
    assert_eq!(cluster.registry().exists(&running).await.unwrap(), None);
    node.member.stop_taking_over().await;
    // Once more; this time the Java instance dies.
    cluster.registry().create(Create::persistent(&flag, "")).await.unwrap();
    cluster.registry().create(Create::persistent(&running, id)).await.unwrap();
    java.registry.close().await;
    assert_eq!(items(&take_over(&mut node).await), [0]);
}
