//! A shard runs once for every fire, and whoever claims it knows whether it still is theirs.

use std::time::Duration;

use elasticjob::{
    coordination::{
        ledger::{Page, State},
        member::{self, Ended, News, Refused, Request, Why},
        tree::Part,
    },
    job::{Fire, Monitor},
    registry::{Create, Expected},
    runtime::{CancelReason, Clock, SystemClock},
    testing::conformance::Ground,
};

use crate::cluster::{
    Cluster, PATIENCE, claim, finish, items, job, request, try_claim, until, with_failover,
};

pub(crate) async fn a_fire_is_not_run_twice_however_often_it_is_claimed(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-fire-is-not").await;
    let node = cluster.join(1, job(2)).await;
    let fire = cluster.fire();

    let claimed = claim(&node, &fire).await;
    let while_running = try_claim(&node, &fire, PATIENCE).await;
    finish(&node, claimed).await;
    let afterwards = try_claim(&node, &fire, PATIENCE).await;

    assert!(matches!(while_running, Err(Refused::Nothing)), "{while_running:?}");
    assert!(matches!(afterwards, Err(Refused::Nothing)), "{afterwards:?}");
}

pub(crate) async fn a_mark_that_a_run_was_missed_runs_nothing_once_the_last_fire_has_run(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "a-mark-that").await;
    let node = cluster.join(1, job(1)).await;
    let (last, next) = (cluster.fire(), cluster.fire());
    let claimed = claim(&node, &last).await;
    let mark = cluster.tree.shard(0, Part::Misfire);
    // Somebody who wanted to run it, too, was refused and did not know why.
    cluster.registry().create(Create::persistent(&mark, "")).await.unwrap();
    finish(&node, claimed).await;
    let late = |fire: &Fire| {
        let since = jiff::Timestamp::MAX;
        Request { why: Why::Late { since }, ..request(fire, PATIENCE) }
    };

    let again = node.member.claims().claim(late(&last)).await;
    let missed = node.member.claims().claim(late(&next)).await.unwrap();

    assert!(matches!(again, Err(Refused::Nothing)), "{again:?}");
    assert_eq!(items(&missed), [0], "a later one that nobody started is made up for");
    finish(&node, missed).await;
    assert_eq!(cluster.registry().get(&mark).await.unwrap(), None);
}

/// Seeds 16408 (it never ran before) and 16440 of the simulation.
pub(crate) async fn a_fire_that_falls_between_two_clocks_is_made_up_for(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-fire-that-falls").await;
    let slow = cluster.join(1, job(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    // Due now; by the clock of the one who has the shards it is not yet, and so they are dealt anew before it runs them.
    for _ in 0..2 {
        let fire = Fire::scheduled("settle".parse().unwrap(), SystemClock.now());
        let mut newcomer = cluster.join(2, job(2)).await;
        cluster.eventually("one each", 2, &[1, 1]).await;

        let own = claim(&slow, &fire).await;
        until(&mut newcomer, |news| *news == News::Missed).await;
        let since = jiff::Timestamp::MAX;
        let late = Request { why: Why::Late { since }, ..request(&fire, PATIENCE) };
        let missed = newcomer.member.claims().claim(late).await.unwrap();

        assert_eq!((own.shards.len(), missed.shards.len()), (1, 1));
        assert_ne!(items(&own), items(&missed));
        finish(&slow, own).await;
        finish(&newcomer, missed).await;
        newcomer.member.leave().await;
        cluster.all_to(&slow, 2).await;
    }
}

pub(crate) async fn a_disabled_item_is_not_claimed(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-disabled-item-is").await;
    let node = cluster.join(1, job(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    let disabled = cluster.tree.shard(1, Part::Disabled);
    cluster.registry().create(Create::persistent(&disabled, "")).await.unwrap();

    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    assert_eq!(items(&claimed), [0]);
}

pub(crate) async fn a_claim_that_is_taken_away_is_told_to_whoever_runs_it(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-claim-that-is").await;
    let node = cluster.join(1, job(1)).await;
    let claimed = claim(&node, &cluster.fire()).await;
    let hold: &member::Hold = &claimed.shards[0].hold;

    let running = cluster.tree.shard(0, Part::Running);
    cluster.registry().delete(&running, Expected::Any).await.unwrap();
    cluster.registry().create(Create::persistent(&running, "10.0.0.9@-@9")).await.unwrap();

    let told = tokio::time::timeout(PATIENCE, hold.cancel().cancelled()).await.unwrap();
    assert_eq!(told, CancelReason::LeaseLost);
    assert!(hold.is_lost());
    finish(&node, claimed).await;
    let theirs = cluster.registry().get(&running).await.unwrap().unwrap();
    assert_eq!(theirs.data, "10.0.0.9@-@9", "it is not ours to take away");
}

pub(crate) async fn without_monitoring_the_ledger_keeps_two_from_running_one_shard(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "without-monitoring-the").await;
    let blind = || job(1).monitor(Monitor::Nothing);
    let one = cluster.join(1, blind()).await;
    cluster.eventually("all", 1, &[1]).await;
    let claimed = claim(&one, &cluster.fire()).await;
    let server = cluster.tree.server(one.member.id().server());
    let two = cluster.join(2, blind()).await;

    // The shard moves at once, because nothing shows that it runs.
    cluster.registry().set(&server, "DISABLED".into(), Expected::Any).await.unwrap();
    cluster.all_to(&two, 1).await;
    let next = cluster.fire();
    let early = try_claim(&two, &next, Duration::from_millis(300)).await;
    assert!(matches!(early, Err(Refused::Resharding)), "{early:?}");
    finish(&one, claimed).await;

    assert_eq!(items(&claim(&two, &next).await), [0]);
}

pub(crate) async fn what_ended_fenced_while_its_session_lives_can_run_again(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "what-ended-fenced").await;
    let node = cluster.join(1, with_failover(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    // It was cut off for longer than its lease, and not for longer than its session.
    node.member.claims().release(vec![(0, Ended::Fenced)]).await.unwrap();

    assert!(claimed.shards.iter().all(|shard| !shard.hold.is_lost()));
    drop(claimed);
    let running = cluster.tree.shard(0, Part::Running);
    assert_eq!(cluster.registry().get(&running).await.unwrap(), None);
    let next = cluster.fire();
    assert_eq!(items(&claim(&node, &next).await), [0]);
}

pub(crate) async fn a_mark_for_a_run_that_has_begun_is_no_second_run(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-mark-for-a-run").await;
    let mut node = cluster.join(1, job(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    let mark = cluster.tree.shard(0, Part::Misfire);
    cluster.registry().create(Create::persistent(&mark, "")).await.unwrap();
    finish(&node, claimed).await;
    until(&mut node, |news| *news == News::Missed).await;

    let late = |fire: &Fire| Request {
        why: Why::Late { since: jiff::Timestamp::MAX },
        ..request(fire, PATIENCE)
    };
    let again = node.member.claims().claim(late(&fire)).await;
    let next = cluster.fire();
    let missed = node.member.claims().claim(late(&next)).await.unwrap();

    assert!(matches!(again, Err(Refused::Nothing)), "{again:?}");
    assert_eq!((items(&missed), &missed.fire), (vec![0], &next));
}

pub(crate) async fn a_claim_that_was_taken_away_does_not_stay_in_the_ledger(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-claim-that-was-taken").await;
    let node = cluster.join(1, job(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    let running = cluster.tree.shard(0, Part::Running);
    cluster.registry().delete(&running, Expected::Any).await.unwrap();
    claimed.shards[0].hold.cancel().cancelled().await;

    node.member.claims().release(vec![(0, Ended::Fenced)]).await.unwrap();

    let page = cluster.registry().get(&cluster.tree.page(0)).await.unwrap().unwrap();
    assert_eq!(Page::read(&page.data).unwrap().state, State::Failed);
}
