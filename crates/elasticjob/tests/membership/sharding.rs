//! Assignment of shards to instances, and changes of the configuration.

use std::time::Duration;

use elasticjob::{
    coordination::{
        member::{ClaimError, MemberEvent},
        tree::ShardNode,
    },
    registry::ExpectedVersion,
    testing::conformance::TestServer,
};

use crate::cluster::{Cluster, claim, finish, items, job, try_claim, wait_for_news, wait_for_node};

pub(crate) async fn nine_shards_over_three_instances_run_once_per_fire(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "nine-shards-over").await;
    let nodes = [
        cluster.join(1, job(9)).await,
        cluster.join(2, job(9)).await,
        cluster.join(3, job(9)).await,
    ];
    cluster.wait_for_shares("three each", 9, &[3, 3, 3]).await;

    for _ in 0..5 {
        let fire = cluster.fire();
        let mut run = Vec::new();
        for node in &nodes {
            let claimed = claim(node, &fire).await;
            run.extend(items(&claimed));
            finish(node, claimed).await;
        }
        run.sort_unstable();
        assert_eq!(run, (0..9).collect::<Vec<_>>());
    }
}

pub(crate) async fn more_shards_than_fit_into_one_request_are_assigned(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "more-shards-than").await;

    let one = cluster.join(1, job(9_000)).await;

    let last = cluster.tree.shard(8_999, ShardNode::Owner);
    wait_for_node(&cluster, &last, true).await;
    wait_for_node(&cluster, &cluster.tree.necessary(), false).await;
    let owner = cluster.registry().get(&last).await.unwrap().unwrap();
    assert_eq!(owner.data, one.member.id().to_string());
    let shards = cluster.registry().children(&cluster.tree.sharding()).await.unwrap();
    assert_eq!(shards.unwrap().len(), 9_000);
}

pub(crate) async fn shards_are_reassigned_when_an_instance_joins_or_leaves(
    ground: &dyn TestServer,
) {
    let cluster = Cluster::new(ground, "shards-are-reassigned").await;
    let one = cluster.join(1, job(4)).await;
    cluster.wait_for_shares("all", 4, &[4]).await;

    let two = cluster.join(2, job(4)).await;
    cluster.wait_for_shares("half each", 4, &[2, 2]).await;
    one.member.leave().await;

    cluster.wait_for_shares("all to the one that stays", 4, &[4]).await;
    let leader = cluster.registry().get(&cluster.tree.leader()).await.unwrap().unwrap();
    assert_eq!(leader.data, two.member.id().to_string());
}

pub(crate) async fn running_shard_moves_only_after_its_run_is_over(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "running-shard-moves").await;
    let one = cluster.join(1, job(2)).await;
    cluster.wait_for_shares("all", 2, &[2]).await;
    let fire = cluster.fire();
    let claimed = claim(&one, &fire).await;

    let two = cluster.join(2, job(2)).await;
    let next = cluster.fire();
    let nothing = try_claim(&two, &next, Duration::from_secs(1)).await;
    assert!(matches!(nothing, Err(ClaimError::NothingToRun)), "{nothing:?}");
    finish(&one, claimed).await;

    cluster.wait_for_shares("one each", 2, &[1, 1]).await;
}

pub(crate) async fn disabled_server_neither_leads_nor_owns_shards(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "disabled-server-neither").await;
    let one = cluster.join(1, job(2)).await;
    cluster.wait_for_shares("all", 2, &[2]).await;
    let two = cluster.join(2, job(2)).await;
    cluster.wait_for_shares("one each", 2, &[1, 1]).await;

    let server = cluster.tree.server(one.member.id().server());
    cluster.registry().set(&server, "DISABLED".into(), ExpectedVersion::Any).await.unwrap();

    cluster.wait_for_shares("all to the enabled one", 2, &[2]).await;
    assert_eq!(cluster.shares(2).await.keys().collect::<Vec<_>>(), [two.member.id().as_str()]);
    let leader = cluster.registry().get(&cluster.tree.leader()).await.unwrap().unwrap();
    assert_eq!(leader.data, two.member.id().to_string());
}

pub(crate) async fn changed_shard_count_is_reported_and_assigned(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "changed-shard-count").await;
    let mut node = cluster.join(1, job(2)).await;
    cluster.wait_for_shares("two", 2, &[2]).await;

    let bigger = job(5).to_yaml();
    cluster
        .registry()
        .set(&cluster.tree.config(), bigger.into(), ExpectedVersion::Any)
        .await
        .unwrap();
    let news = wait_for_news(&mut node, |news| matches!(news, MemberEvent::Configured(_))).await;
    assert!(matches!(&news, MemberEvent::Configured(job) if job.shards.get() == 5), "{news:?}");
    cluster.wait_for_shares("five", 5, &[5]).await;
    let smaller = job(1).to_yaml();
    cluster
        .registry()
        .set(&cluster.tree.config(), smaller.into(), ExpectedVersion::Any)
        .await
        .unwrap();

    cluster.wait_for_shares("one", 5, &[1]).await;
    let children = cluster.registry().children(&cluster.tree.sharding()).await.unwrap().unwrap();
    assert_eq!(children, ["0"]);
}

pub(crate) async fn unreadable_configuration_changes_nothing(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "unreadable-configuration-changes").await;
    let mut node = cluster.join(1, job(2)).await;

    cluster
        .registry()
        .set(&cluster.tree.config(), "cron: [".into(), ExpectedVersion::Any)
        .await
        .unwrap();
    let news = wait_for_news(&mut node, |news| matches!(news, MemberEvent::Unreadable(_))).await;

    assert!(
        matches!(&news, MemberEvent::Unreadable(error) if error.contains("settle")),
        "{news:?}"
    );
    let fire = cluster.fire();
    assert_eq!(claim(&node, &fire).await.shards.len(), 2);
}

pub(crate) async fn stored_configuration_wins_and_drift_is_reported(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "stored-configuration-wins").await;
    let one = cluster.join(1, job(3)).await;

    let two = cluster.join(2, job(4)).await;

    assert!(one.member.drift().is_empty());
    assert_eq!(two.member.job().shards.get(), 3);
    assert_eq!(two.member.drift().len(), 1);
    assert_eq!(two.member.drift()[0].key, "shardingTotalCount");
}
