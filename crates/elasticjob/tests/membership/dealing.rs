//! How shards are dealt, and to whom.

use std::time::Duration;

use elasticjob::{
    coordination::{
        member::{News, Refused},
        tree::Part,
    },
    registry::Expected,
    testing::conformance::Ground,
};

use crate::cluster::{Cluster, claim, finish, items, job, there, try_claim, until};

pub(crate) async fn nine_shards_over_three_instances_are_three_each_and_every_fire_runs_every_shard_once(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "nine-shards-over-three").await;
    let nodes = [
        cluster.join(1, job(9)).await,
        cluster.join(2, job(9)).await,
        cluster.join(3, job(9)).await,
    ];
    cluster.eventually("three each", 9, &[3, 3, 3]).await;

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

pub(crate) async fn more_shards_than_fit_into_one_request_are_dealt(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "more-shards").await;

    let one = cluster.join(1, job(9_000)).await;

    let last = cluster.tree.shard(8_999, Part::Owner);
    there(&cluster, &last, true).await;
    there(&cluster, &cluster.tree.necessary(), false).await;
    let owner = cluster.registry().get(&last).await.unwrap().unwrap();
    assert_eq!(owner.data, one.member.id().to_string());
    let shards = cluster.registry().children(&cluster.tree.sharding()).await.unwrap();
    assert_eq!(shards.unwrap().len(), 9_000);
}

pub(crate) async fn one_that_joins_gets_its_share_and_one_that_leaves_gives_its_share_back(
    ground: &dyn Ground,
) {
    let cluster = Cluster::new(ground, "one-that-joins-gets").await;
    let one = cluster.join(1, job(4)).await;
    cluster.eventually("all", 4, &[4]).await;

    let two = cluster.join(2, job(4)).await;
    cluster.eventually("half each", 4, &[2, 2]).await;
    one.member.leave().await;

    cluster.eventually("all to the one that stays, who leads now", 4, &[4]).await;
    let leader = cluster.registry().get(&cluster.tree.leader()).await.unwrap().unwrap();
    assert_eq!(leader.data, two.member.id().to_string());
}

pub(crate) async fn a_running_shard_keeps_its_owner_and_moves_when_its_run_is_over(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "a-running-shard-keeps").await;
    let one = cluster.join(1, job(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    let fire = cluster.fire();
    let claimed = claim(&one, &fire).await;

    let two = cluster.join(2, job(2)).await;
    let next = cluster.fire();
    let nothing = try_claim(&two, &next, Duration::from_secs(1)).await;
    assert!(matches!(nothing, Err(Refused::Nothing)), "{nothing:?}");
    finish(&one, claimed).await;

    cluster.eventually("one each", 2, &[1, 1]).await;
}

pub(crate) async fn a_disabled_server_leads_nothing_and_owns_nothing(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-disabled-server-leads").await;
    let one = cluster.join(1, job(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    let two = cluster.join(2, job(2)).await;
    cluster.eventually("one each", 2, &[1, 1]).await;

    let server = cluster.tree.server(one.member.id().server());
    cluster.registry().set(&server, "DISABLED".into(), Expected::Any).await.unwrap();

    cluster.eventually("all to the enabled one", 2, &[2]).await;
    assert_eq!(cluster.shares(2).await.keys().collect::<Vec<_>>(), [two.member.id().as_str()]);
    let leader = cluster.registry().get(&cluster.tree.leader()).await.unwrap().unwrap();
    assert_eq!(leader.data, two.member.id().to_string());
}

pub(crate) async fn a_changed_total_is_told_and_dealt(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-changed-total-is").await;
    let mut node = cluster.join(1, job(2)).await;
    cluster.eventually("two", 2, &[2]).await;

    let bigger = job(5).to_yaml();
    cluster.registry().set(&cluster.tree.config(), bigger.into(), Expected::Any).await.unwrap();
    let news = until(&mut node, |news| matches!(news, News::Configured(_))).await;
    assert!(matches!(&news, News::Configured(job) if job.shards.get() == 5), "{news:?}");
    cluster.eventually("five", 5, &[5]).await;
    let smaller = job(1).to_yaml();
    cluster.registry().set(&cluster.tree.config(), smaller.into(), Expected::Any).await.unwrap();

    cluster.eventually("one", 5, &[1]).await;
    let children = cluster.registry().children(&cluster.tree.sharding()).await.unwrap().unwrap();
    assert_eq!(children, ["0"]);
}

pub(crate) async fn a_configuration_nobody_can_read_changes_nothing(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-configuration-nobody-can").await;
    let mut node = cluster.join(1, job(2)).await;

    cluster.registry().set(&cluster.tree.config(), "cron: [".into(), Expected::Any).await.unwrap();
    let news = until(&mut node, |news| matches!(news, News::Unreadable(_))).await;

    assert!(matches!(&news, News::Unreadable(why) if why.contains("settle")), "{news:?}");
    let fire = cluster.fire();
    assert_eq!(claim(&node, &fire).await.shards.len(), 2);
}

pub(crate) async fn what_is_stored_wins_and_the_drift_is_told(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "what-is-stored-wins").await;
    let one = cluster.join(1, job(3)).await;

    let two = cluster.join(2, job(4)).await;

    assert!(one.member.drift().is_empty());
    assert_eq!(two.member.job().shards.get(), 3);
    assert_eq!(two.member.drift().len(), 1);
    assert_eq!(two.member.drift()[0].key, "shardingTotalCount");
}
