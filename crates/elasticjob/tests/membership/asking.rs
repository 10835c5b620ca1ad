//! What is asked of instances from outside.

use std::{collections::BTreeSet, time::Duration};

use elasticjob::{
    coordination::{
        member::{News, Refused, Request, Why},
        process,
        tree::Part,
        trigger::Trigger,
    },
    job::InstanceId,
    registry::{Create, Expected, Op},
    runtime::CancelReason,
    testing::conformance::Ground,
};

use crate::cluster::{Cluster, PATIENCE, claim, finish, items, job, request, try_claim, until};

pub(crate) async fn a_trigger_is_taken_and_told(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-trigger-is-taken").await;
    let mut node = cluster.join(1, job(1)).await;
    let (triggers, mine) = (cluster.tree.triggers(), cluster.tree.trigger(node.member.id()));
    cluster.registry().create(Create::persistent(&triggers, "")).await.unwrap();

    cluster.registry().create(Create::persistent(&mine, "")).await.unwrap();

    until(&mut node, |news| *news == News::Triggered(Box::default())).await;
    assert_eq!(cluster.registry().exists(&mine).await.unwrap(), None);
}

pub(crate) async fn an_instance_that_is_taken_out_is_told_and_starts_nothing_more_but_still_releases(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "an-instance-that-is").await;
    let mut node = cluster.join(1, job(1)).await;

    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    cluster
        .registry()
        .delete(&cluster.tree.instance(node.member.id()), Expected::Any)
        .await
        .unwrap();

    until(&mut node, |news| *news == News::ShutDown).await;
    let more = try_claim(&node, &cluster.fire(), PATIENCE).await;
    assert!(matches!(more, Err(Refused::Left)), "{more:?}");
    finish(&node, claimed).await;
    let running = cluster.tree.shard(0, Part::Running);
    assert_eq!(cluster.registry().exists(&running).await.unwrap(), None);
    node.member.leave().await;
}

pub(crate) async fn an_instance_whose_session_is_ending_does_not_take_it_for_a_shutdown(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "an-instance-whose").await;
    let mut node = cluster.join(1, job(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    let id = node.member.id().clone();
    let gone = |path| Op::Delete { path, expected: Expected::Any };

    // A server that ends a session takes its nodes away at once, and may tell of them before it says why.
    let nodes = vec![gone(cluster.tree.instance(&id)), gone(cluster.tree.process(&id))];
    cluster.registry().multi(nodes).await.unwrap();
    let refused = try_claim(&node, &cluster.fire(), Duration::from_millis(100)).await;
    assert!(refused.is_err());
    node.line.registry.close().await;

    let is_end = |news: &News| matches!(news, News::ShutDown | News::SessionLost);
    assert_eq!(until(&mut node, is_end).await, News::SessionLost);
}

pub(crate) async fn a_trigger_waits_until_the_shard_is_free_and_leaves_no_mark(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "a-trigger-waits-until").await;
    let node = cluster.join(1, job(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    let running = cluster.tree.shard(0, Part::Running);
    cluster.registry().create(Create::persistent(&running, "10.0.0.9@-@9-live")).await.unwrap();
    let live: InstanceId = "10.0.0.9@-@9-live".parse().unwrap();
    let session = cluster.registry().session().id();
    process::announce(cluster.registry(), &live, session).await.unwrap();
    let asked = Request { why: Why::Asked(BTreeSet::new()), ..request(&cluster.fire(), PATIENCE) };

    let claims = node.member.claims().clone();
    let mut waiting = std::pin::pin!(claims.claim(asked));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "{early:?}");
    cluster.registry().delete(&running, Expected::Any).await.unwrap();

    assert_eq!(items(&waiting.await.unwrap()), [0]);
    let mark = cluster.tree.shard(0, Part::Misfire);
    assert_eq!(cluster.registry().exists(&mark).await.unwrap(), None);
}

pub(crate) async fn a_running_shard_can_be_cancelled_from_outside(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-running-shard-can").await;
    let node = cluster.join(1, job(2)).await;
    let claimed = claim(&node, &cluster.fire()).await;
    let cancel = Trigger::Cancel(BTreeSet::from([1])).to_bytes();
    let triggers = cluster.tree.triggers();
    cluster.registry().create(Create::persistent(&triggers, "")).await.unwrap();

    let mine = cluster.tree.trigger(node.member.id());
    cluster.registry().create(Create::persistent(&mine, cancel)).await.unwrap();

    let told = claimed.shards[1].hold.cancel().cancelled();
    assert_eq!(tokio::time::timeout(PATIENCE, told).await.unwrap(), CancelReason::Requested);
    assert!(!claimed.shards[0].hold.cancel().is_cancelled(), "only the one that was meant");
    finish(&node, claimed).await;
}
