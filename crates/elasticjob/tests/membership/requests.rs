//! Requests to an instance from outside: trigger, shutdown, cancel.

use std::time::Duration;

use elasticjob::{
    coordination::{
        member::{ClaimError, ClaimRequest, ClaimScope, MemberEvent},
        process,
        tree::ShardNode,
        trigger::{Cancellation, Doorbell},
    },
    job::{InstanceId, ShardSelection},
    registry::{Create, ExpectedVersion, Op},
    runtime::CancelReason,
    testing::conformance::TestServer,
};

use crate::cluster::{
    Cluster, TIMEOUT, claim, finish, items, job, request, try_claim, wait_for_news,
};

pub(crate) async fn doorbell_of_java_is_answered_with_a_stored_trigger(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "doorbell-of-java").await;
    let mut node = cluster.join(1, job(1)).await;
    let (triggers, trigger) = (cluster.tree.triggers(), cluster.tree.trigger(node.member.id()));
    cluster.registry().create(Create::persistent(&triggers, "")).await.unwrap();

    cluster.registry().create(Create::persistent(&trigger, "")).await.unwrap();

    let news = wait_for_news(&mut node, |news| matches!(news, MemberEvent::Triggered(_))).await;
    assert_eq!(cluster.registry().exists(&trigger).await.unwrap(), None);
    let MemberEvent::Triggered(triggered) = news else { panic!("{news:?}") };
    let stored = cluster.tree.accepted_trigger(&triggered.run);
    assert!(cluster.registry().exists(&stored).await.unwrap().is_some());
}

pub(crate) async fn removed_instance_starts_nothing_but_releases_its_shards(
    ground: &dyn TestServer,
) {
    let mut cluster = Cluster::new(ground, "removed-instance-starts").await;
    let mut node = cluster.join(1, job(1)).await;

    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    cluster
        .registry()
        .delete(&cluster.tree.instance(node.member.id()), ExpectedVersion::Any)
        .await
        .unwrap();

    wait_for_news(&mut node, |news| *news == MemberEvent::ShutDown).await;
    let refused = try_claim(&node, &cluster.fire(), TIMEOUT).await;
    assert!(matches!(refused, Err(ClaimError::Left)), "{refused:?}");
    finish(&node, claimed).await;
    let running = cluster.tree.shard(0, ShardNode::Running);
    assert_eq!(cluster.registry().exists(&running).await.unwrap(), None);
    node.member.leave().await;
}

pub(crate) async fn ending_session_is_not_mistaken_for_a_shutdown(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "ending-session-is").await;
    let mut node = cluster.join(1, job(1)).await;
    cluster.wait_for_shares("all", 1, &[1]).await;
    let id = node.member.id().clone();
    let delete = |path| Op::Delete { path, expected: ExpectedVersion::Any };

    // A server that ends a session deletes its nodes at once, and may report their deletion before the end of the session.
    let nodes = vec![delete(cluster.tree.instance(&id)), delete(cluster.tree.process(&id))];
    cluster.registry().multi(nodes).await.unwrap();
    let refused = try_claim(&node, &cluster.fire(), Duration::from_millis(100)).await;
    assert!(refused.is_err());
    node.connection.registry.close().await;

    let is_end =
        |news: &MemberEvent| matches!(news, MemberEvent::ShutDown | MemberEvent::SessionLost);
    assert_eq!(wait_for_news(&mut node, is_end).await, MemberEvent::SessionLost);
}

pub(crate) async fn trigger_waits_for_a_busy_shard_and_leaves_no_misfire_mark(
    ground: &dyn TestServer,
) {
    let mut cluster = Cluster::new(ground, "trigger-waits-for").await;
    let node = cluster.join(1, job(1)).await;
    cluster.wait_for_shares("all", 1, &[1]).await;
    let running = cluster.tree.shard(0, ShardNode::Running);
    cluster.registry().create(Create::persistent(&running, "10.0.0.9@-@9-live")).await.unwrap();
    let live: InstanceId = "10.0.0.9@-@9-live".parse().unwrap();
    let session = cluster.registry().session().id();
    process::register(cluster.registry(), &live, session).await.unwrap();
    let triggered = ClaimRequest {
        scope: ClaimScope::Triggered(ShardSelection::All),
        ..request(&cluster.fire(), TIMEOUT)
    };

    let claims = node.member.claims().clone();
    let mut waiting = std::pin::pin!(claims.claim(triggered));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "{early:?}");
    cluster.registry().delete(&running, ExpectedVersion::Any).await.unwrap();

    assert_eq!(items(&waiting.await.unwrap()), [0]);
    let mark = cluster.tree.shard(0, ShardNode::Misfire);
    assert_eq!(cluster.registry().exists(&mark).await.unwrap(), None);
}

pub(crate) async fn cancellation_cancels_only_the_named_shard_and_run(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "cancellation-cancels").await;
    let node = cluster.join(1, job(2)).await;
    let (earlier, fire) = (cluster.fire(), cluster.fire());
    let claimed = claim(&node, &fire).await;
    let triggers = cluster.tree.triggers();
    cluster.registry().create(Create::persistent(&triggers, "")).await.unwrap();
    for (number, run, shard) in [(1, earlier.run, 0), (2, fire.run, 1)] {
        let cancellation = Cancellation::new(run, [shard].into_iter().collect(), fire.due_at);
        let path = cluster.tree.accepted_trigger(Cancellation::name(number));
        let stored = Create::persistent(&path, cancellation.to_bytes());
        cluster.registry().create(stored).await.unwrap();
    }

    let trigger = cluster.tree.trigger(node.member.id());
    let doorbell = Doorbell::note("a cancellation");
    cluster.registry().create(Create::persistent(&trigger, doorbell)).await.unwrap();

    let cancelled = claimed.shards[1].status.cancel().cancelled();
    assert_eq!(tokio::time::timeout(TIMEOUT, cancelled).await.unwrap(), CancelReason::Requested);
    assert!(!claimed.shards[0].status.cancel().is_cancelled(), "it is of another run");
    finish(&node, claimed).await;
}
