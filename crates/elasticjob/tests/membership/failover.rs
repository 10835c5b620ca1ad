//! What becomes of the shards of the dead.

use std::time::Duration;

use elasticjob::{
    coordination::{
        ledger::{Page, State},
        member::{News, Refused},
        tree::Part,
    },
    registry::{Create, Expected, plant},
    runtime::Cancel,
    testing::conformance::Ground,
};

use crate::cluster::{
    Cluster, PATIENCE, claim, finish, items, job, take, there, try_claim, until, with_failover,
};

pub(crate) async fn what_a_dead_instance_ran_is_taken_over_once_and_its_own_try_is_counted(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "what-a-dead-instance").await;
    let one = cluster.join(1, with_failover(2)).await;
    let mut two = cluster.join(2, with_failover(2)).await;
    cluster.eventually("one each", 2, &[1, 1]).await;
    let fire = cluster.fire();
    let lost = claim(&one, &fire).await;

    one.die().await;
    let taken = take(&mut two).await;

    assert_eq!(items(&taken), items(&lost));
    assert_eq!((&taken.fire, taken.shards[0].attempt), (&fire, 2));
    assert!(taken.token > lost.token);
    let shard = items(&taken)[0];
    for part in [Part::Running, Part::Failover, Part::Failovering] {
        let node = cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap();
        assert_eq!(node.unwrap().data, two.member.id().to_string(), "{part:?}");
    }
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(shard)).await.unwrap(), None);
    let own = claim(&two, &fire).await;
    assert_ne!(items(&own), items(&taken), "own shards still run");
    finish(&two, taken).await;
    finish(&two, own).await;
    for part in [Part::Running, Part::Failover, Part::Failovering] {
        assert_eq!(cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap(), None);
    }
    cluster.eventually("all to the survivor", 2, &[2]).await;
    let again = try_claim(&two, &fire, PATIENCE).await;
    assert!(matches!(again, Err(Refused::Nothing)), "{again:?}");
}

pub(crate) async fn the_next_regular_run_makes_up_for_what_nobody_took_over(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "the-next-regular-run").await;
    let one = cluster.join(1, with_failover(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, with_failover(1)).await;

    one.die().await;
    there(&cluster, &cluster.tree.failover_item(0), true).await;
    cluster.all_to(&two, 1).await;
    let next = claim(&two, &cluster.fire()).await;

    assert_eq!(items(&next), [0]);
    let early = tokio::time::timeout(Duration::from_millis(300), take(&mut two)).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(0)).await.unwrap(), None);
    finish(&two, next).await;
}

pub(crate) async fn an_instance_that_was_shut_down_and_still_runs_is_not_dead(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "an-instance-that-was").await;
    let mut one = cluster.join(1, with_failover(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    let claimed = claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, with_failover(1)).await;

    let instance = cluster.tree.instance(one.member.id());
    cluster.registry().delete(&instance, Expected::Any).await.unwrap();
    until(&mut one, |news| *news == News::ShutDown).await;
    // Whoever looks now finds the process alive: nothing is flagged, and its claim is still its own.
    let next = cluster.fire();
    let meanwhile = try_claim(&two, &next, Duration::from_millis(300)).await;
    assert!(matches!(meanwhile, Err(Refused::Nothing | Refused::Resharding)), "{meanwhile:?}");
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(0)).await.unwrap(), None);
    assert!(!claimed.shards[0].hold.is_lost());
    finish(&one, claimed).await;
    one.member.leave().await;

    cluster.all_to(&two, 1).await;
    let after = claim(&two, &next).await;
    finish(&two, after).await;
    until(&mut two, |news| *news == News::Ready).await;
}

pub(crate) async fn what_is_not_given_back_by_a_dead_one_without_failover_runs_at_its_next_fire(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "what-is-not-given").await;
    let one = cluster.join(1, job(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, job(1)).await;

    one.die().await;
    cluster.all_to(&two, 1).await;
    let next = cluster.fire();
    let claimed = claim(&two, &next).await;

    assert_eq!((items(&claimed), &claimed.fire), (vec![0], &next));
    finish(&two, claimed).await;
    until(&mut two, |news| *news == News::Ready).await;
}

pub(crate) async fn what_java_left_behind_is_cleared_after_a_moment(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "what-java-left-behind").await;
    let mut node = cluster.join(1, with_failover(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    let java = cluster.tree.instance("10.0.0.8@-@4711");
    let doc = "jobInstanceId: 10.0.0.8@-@4711\nserverIp: 10.0.0.8\n";
    let registry = cluster.ground.join(cluster.namespace, None).await;
    let session = registry.registry.session().id();
    registry.registry.create(Create::ephemeral(&java, doc, session)).await.unwrap();
    let running = cluster.tree.shard(1, Part::Running);
    cluster.registry().create(Create::persistent(&running, "10.0.0.8@-@4711")).await.unwrap();

    registry.registry.close().await;
    let taken = take(&mut node).await;

    assert_eq!(items(&taken), [1]);
    assert!(!taken.fire.run.is_scheduled(), "what Java ran is not known");
    let page = cluster.registry().get(&cluster.tree.page(1)).await.unwrap().unwrap();
    assert_eq!(Page::read(&page.data).unwrap().state, State::Running);
    finish(&node, taken).await;
}

pub(crate) async fn a_takeover_that_ends_after_a_gap_leaves_nothing_behind(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-takeover-that-ends").await;
    let one = cluster.join(1, with_failover(2)).await;
    let mut two = cluster.join(2, with_failover(2)).await;
    cluster.eventually("one each", 2, &[1, 1]).await;
    let fire = cluster.fire();
    let lost = claim(&one, &fire).await;
    one.die().await;
    let taken = take(&mut two).await;

    two.line.line.cut().await;
    until(&mut two, |news| *news == News::OutOfReach).await;
    two.line.line.heal().await;
    finish(&two, taken).await;

    let shard = items(&lost)[0];
    for part in [Part::Running, Part::Failover, Part::Failovering] {
        let left = cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap();
        assert_eq!(left, None, "{part:?}");
    }
}

pub(crate) async fn what_java_flagged_is_no_second_try_of_what_has_ended(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "what-java-flagged").await;
    let mut node = cluster.join(1, with_failover(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    finish(&node, claimed).await;

    let flag = cluster.tree.failover_item(0);
    plant(cluster.registry(), &cluster.tree.failover_items()).await.unwrap();
    cluster.registry().create(Create::persistent(&flag, "")).await.unwrap();
    let taken = take(&mut node).await;

    assert!(!taken.fire.run.is_scheduled(), "{:?}", taken.fire);
    assert_eq!(taken.shards[0].attempt, 1);
}

pub(crate) async fn what_was_lost_while_it_was_disabled_is_taken_over_when_it_is_enabled(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "lost-while-disabled").await;
    let one = cluster.join(1, with_failover(1)).await;
    cluster.all_to(&one, 1).await;
    let fire = cluster.fire();
    claim(&one, &fire).await;
    let mut two = cluster.join(2, with_failover(1)).await;
    let disabled = cluster.tree.shard(0, Part::Disabled);
    cluster.registry().create(Create::persistent(&disabled, "")).await.unwrap();

    one.die().await;
    let flag = cluster.tree.failover_item(0);
    there(&cluster, &flag, true).await;
    cluster.registry().delete(&disabled, Expected::Any).await.unwrap();
    let taken = take(&mut two).await;

    assert_eq!((&taken.fire, taken.shards[0].attempt), (&fire, 2));
}

pub(crate) async fn a_flagged_shard_that_somebody_has_in_hand_is_settled_unless_they_die_with_it(
    ground: &dyn Ground,
) {
    let cluster = Cluster::new(ground, "a-flagged-shard").await;
    // A Java instance runs it, and has left the flag of an earlier loss where it is.
    let java = cluster.ground.join(cluster.namespace, None).await;
    let id = "10.0.0.8@-@4711";
    let instance = cluster.tree.instance(id);
    let (running, flag) = (cluster.tree.shard(0, Part::Running), cluster.tree.failover_item(0));
    for folder in [instance.parent(), running.parent(), flag.parent()] {
        plant(cluster.registry(), &folder.unwrap()).await.unwrap();
    }
    let session = java.registry.session().id();
    java.registry.create(Create::ephemeral(&instance, "", session)).await.unwrap();
    for (path, data) in [(&running, id), (&flag, "")] {
        cluster.registry().create(Create::persistent(path, data)).await.unwrap();
    }
    let mut node = cluster.join(1, with_failover(1)).await;

    node.member.claims().take_over(Cancel::new()).await;
    cluster.registry().delete(&running, Expected::Any).await.unwrap();

    there(&cluster, &flag, false).await;
    assert_eq!(cluster.registry().exists(&running).await.unwrap(), None);
    node.member.stop_taking_over().await;
    // And once more; this time it dies.
    cluster.registry().create(Create::persistent(&flag, "")).await.unwrap();
    cluster.registry().create(Create::persistent(&running, id)).await.unwrap();
    java.registry.close().await;
    assert_eq!(items(&take(&mut node).await), [0]);
}
