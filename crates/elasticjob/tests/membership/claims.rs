//! A shard runs once for every fire, and its holder learns when it loses the claim.

use std::time::Duration;

use elasticjob::{
    coordination::{
        ledger::{LedgerPage, LedgerState},
        member::{self, ClaimError, ClaimRequest, ClaimScope, MemberEvent, Release},
        tree::ShardNode,
    },
    job::{Fire, Monitor, Outcome},
    registry::{Create, ExpectedVersion},
    runtime::{CancelReason, Clock, SystemClock},
    testing::conformance::TestServer,
};

use crate::cluster::{
    Cluster, TIMEOUT, claim, finish, items, job, request, try_claim, wait_for_news, with_failover,
};

pub(crate) async fn fire_runs_once_however_often_it_is_claimed(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "fire-runs-once").await;
    let node = cluster.join(1, job(2)).await;
    let fire = cluster.fire();

    let claimed = claim(&node, &fire).await;
    let while_running = try_claim(&node, &fire, TIMEOUT).await;
    finish(&node, claimed).await;
    let afterwards = try_claim(&node, &fire, TIMEOUT).await;

    assert!(matches!(while_running, Err(ClaimError::NothingToRun)), "{while_running:?}");
    assert!(matches!(afterwards, Err(ClaimError::NothingToRun)), "{afterwards:?}");
}

pub(crate) async fn misfire_mark_runs_nothing_once_the_last_fire_has_run(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "misfire-mark-runs").await;
    let node = cluster.join(1, job(1)).await;
    let (last, next) = (cluster.fire(), cluster.fire());
    let claimed = claim(&node, &last).await;
    let mark = cluster.tree.shard(0, ShardNode::Misfire);
    // Another instance that also wanted to run the shard was refused and did not know why.
    cluster.registry().create(Create::persistent(&mark, "")).await.unwrap();
    finish(&node, claimed).await;
    let late = |fire: &Fire| {
        let since = jiff::Timestamp::MAX;
        ClaimRequest { scope: ClaimScope::Misfired { since }, ..request(fire, TIMEOUT) }
    };

    let again = node.member.claims().claim(late(&last)).await;
    let missed = node.member.claims().claim(late(&next)).await.unwrap();

    assert!(matches!(again, Err(ClaimError::NothingToRun)), "{again:?}");
    assert_eq!(items(&missed), [0], "a later fire that did not start is compensated");
    finish(&node, missed).await;
    assert_eq!(cluster.registry().get(&mark).await.unwrap(), None);
}

/// Seeds 16408 (the shard has never run before) and 16440 of the simulation.
pub(crate) async fn fire_missed_between_two_clocks_is_compensated(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "fire-missed-between").await;
    let slow = cluster.join(1, job(2)).await;
    cluster.wait_for_shares("all", 2, &[2]).await;
    // The fire is due now, but not yet by the clock of the owner, so the shards are reassigned before the owner runs them.
    for _ in 0..2 {
        let due_at = next_millisecond().await;
        let fire = Fire::scheduled("settle".parse().unwrap(), due_at);
        next_millisecond().await;
        let mut newcomer = cluster.join(2, job(2)).await;
        cluster.wait_for_shares("one each", 2, &[1, 1]).await;

        let own = claim(&slow, &fire).await;
        wait_for_news(&mut newcomer, |news| *news == MemberEvent::Misfired).await;
        let since = jiff::Timestamp::MAX;
        let late =
            ClaimRequest { scope: ClaimScope::Misfired { since }, ..request(&fire, TIMEOUT) };
        let missed = newcomer.member.claims().claim(late).await.unwrap();

        assert_eq!((own.shards.len(), missed.shards.len()), (1, 1));
        assert_ne!(items(&own), items(&missed));
        finish(&slow, own).await;
        finish(&newcomer, missed).await;
        newcomer.member.leave().await;
        cluster.wait_for_owner(&slow, 2).await;
    }
}

/// Waits until what happens now has another time, in the registry's milliseconds, than what happened before.
async fn next_millisecond() -> jiff::Timestamp {
    let before = SystemClock.now().as_millisecond();
    while SystemClock.now().as_millisecond() <= before {
        tokio::task::yield_now().await;
    }
    SystemClock.now()
}

pub(crate) async fn disabled_shard_is_not_claimed(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "disabled-shard-is").await;
    let node = cluster.join(1, job(2)).await;
    cluster.wait_for_shares("all", 2, &[2]).await;
    let disabled = cluster.tree.shard(1, ShardNode::Disabled);
    cluster.registry().create(Create::persistent(&disabled, "")).await.unwrap();

    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    assert_eq!(items(&claimed), [0]);
}

pub(crate) async fn overwritten_claim_cancels_its_run(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "overwritten-claim-cancels").await;
    let node = cluster.join(1, job(1)).await;
    let claimed = claim(&node, &cluster.fire()).await;
    let status: &member::ClaimStatus = &claimed.shards[0].status;

    let running = cluster.tree.shard(0, ShardNode::Running);
    cluster.registry().delete(&running, ExpectedVersion::Any).await.unwrap();
    cluster.registry().create(Create::persistent(&running, "10.0.0.9@-@9")).await.unwrap();

    let reason = tokio::time::timeout(TIMEOUT, status.cancel().cancelled()).await.unwrap();
    assert_eq!(reason, CancelReason::LeaseLost);
    assert!(status.is_lost());
    finish(&node, claimed).await;
    let other_claim = cluster.registry().get(&running).await.unwrap().unwrap();
    assert_eq!(other_claim.data, "10.0.0.9@-@9", "the claim of another instance stays");
}

pub(crate) async fn ledger_prevents_concurrent_runs_without_monitoring(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "ledger-prevents-concurrent").await;
    let unmonitored = || job(1).monitor(Monitor::Nothing);
    let one = cluster.join(1, unmonitored()).await;
    cluster.wait_for_shares("all", 1, &[1]).await;
    let claimed = claim(&one, &cluster.fire()).await;
    let server = cluster.tree.server(one.member.id().server());
    let two = cluster.join(2, unmonitored()).await;

    // The shard moves at once, because without monitoring it has no running node.
    cluster.registry().set(&server, "DISABLED".into(), ExpectedVersion::Any).await.unwrap();
    cluster.wait_for_owner(&two, 1).await;
    let next = cluster.fire();
    let early = try_claim(&two, &next, Duration::from_millis(300)).await;
    assert!(matches!(early, Err(ClaimError::HeldElsewhere { .. })), "{early:?}");
    finish(&one, claimed).await;

    assert_eq!(items(&claim(&two, &next).await), [0]);
}

pub(crate) async fn fenced_shard_runs_again_while_its_session_lives(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "fenced-shard-runs").await;
    let node = cluster.join(1, with_failover(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    // The connection was lost for longer than the lease, but not for longer than the session.
    node.member.claims().release(vec![(0, Release::Ended(Outcome::Fenced))]).await.unwrap();

    assert!(claimed.shards.iter().all(|shard| !shard.status.is_lost()));
    drop(claimed);
    let running = cluster.tree.shard(0, ShardNode::Running);
    assert_eq!(cluster.registry().get(&running).await.unwrap(), None);
    let next = cluster.fire();
    assert_eq!(items(&claim(&node, &next).await), [0]);
}

pub(crate) async fn misfire_mark_of_a_started_run_starts_no_second_run(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "misfire-mark-of").await;
    let mut node = cluster.join(1, job(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    let mark = cluster.tree.shard(0, ShardNode::Misfire);
    cluster.registry().create(Create::persistent(&mark, "")).await.unwrap();
    finish(&node, claimed).await;
    wait_for_news(&mut node, |news| *news == MemberEvent::Misfired).await;

    let late = |fire: &Fire| ClaimRequest {
        scope: ClaimScope::Misfired { since: jiff::Timestamp::MAX },
        ..request(fire, TIMEOUT)
    };
    let again = node.member.claims().claim(late(&fire)).await;
    let next = cluster.fire();
    let missed = node.member.claims().claim(late(&next)).await.unwrap();

    assert!(matches!(again, Err(ClaimError::NothingToRun)), "{again:?}");
    assert_eq!((items(&missed), &missed.fire), (vec![0], &next));
}

pub(crate) async fn deleted_claim_ends_as_failed_in_the_ledger(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "deleted-claim-ends").await;
    let node = cluster.join(1, job(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    let running = cluster.tree.shard(0, ShardNode::Running);
    cluster.registry().delete(&running, ExpectedVersion::Any).await.unwrap();
    claimed.shards[0].status.cancel().cancelled().await;

    node.member.claims().release(vec![(0, Release::Ended(Outcome::Fenced))]).await.unwrap();

    let page = cluster.registry().get(&cluster.tree.ledger_page(0)).await.unwrap().unwrap();
    assert_eq!(LedgerPage::read(&page.data).unwrap().state, LedgerState::Failed);
}
