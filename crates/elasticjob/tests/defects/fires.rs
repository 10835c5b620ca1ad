//! No due fire is lost: it runs, is compensated, or is reported as missed.

use std::time::Duration;

use elasticjob::{
    coordination::tree::ShardNode,
    job::{CatchUp, Job, Misfire, RunReason},
};

use crate::{
    cluster::{Cluster, job},
    log::Log,
    members::with_failover,
    nodes::{Attempt, TestHandler},
};

fn due(attempts: &[Attempt]) -> Vec<(u32, String, RunReason)> {
    attempts.iter().map(|attempt| (attempt.item, attempt.due_at.clone(), attempt.reason)).collect()
}

#[tokio::test(start_paused = true)]
async fn fire_due_during_an_outage_runs_when_the_registry_answers() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, job(1).cron("5 0 * * * ?").unwrap(), &handler).await;

    connection.link.cut();
    cluster.advance_seconds(8).await;
    assert!(handler.attempts().is_empty());
    connection.link.heal();
    cluster.advance_seconds(2).await;

    let attempts = handler.attempts();
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    assert_eq!(attempts[0].due_at, "2026-11-15T06:00:05Z");
}

#[tokio::test(start_paused = true)]
async fn fire_of_an_owner_not_yet_known_dead_is_run_by_the_next_owner() {
    let cluster = Cluster::new().await;
    let (survivor, dying) = (TestHandler::immediate(), TestHandler::immediate());
    let hourly = || with_failover(2).cron("5 0 * * * ?").unwrap();
    let (_surviving_node, _connection) = cluster.node(1, hourly(), &survivor).await;
    let (dying_node, connection) = cluster.node(2, hourly(), &dying).await;
    // Each shard runs once first, so that its ledger page names an earlier fire.
    cluster.advance(Duration::from_mins(30)).await;
    assert_eq!((survivor.attempts().len(), dying.attempts().len()), (1, 1));
    survivor.clear();

    // The node dies before the fire, and the registry notices after it.
    drop(dying_node);
    cluster.advance(Duration::from_mins(30) + Duration::from_secs(10)).await;
    assert_eq!(survivor.attempts().len(), 1, "its own shard");
    connection.die().await;
    cluster.advance_seconds(2).await;

    assert!(dying.attempts().len() == 1);
    let attempts = survivor.attempts();
    assert_eq!(
        due(&attempts[1..]),
        [(0, "2026-11-15T07:00:05Z".to_owned(), RunReason::Misfire)],
        "{attempts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn fires_due_without_an_instance_follow_the_catch_up_policy() {
    let every_hour = |policy| -> Job { job(1).cron("0 0 * * * ?").unwrap().catch_up(policy) };
    let window = Duration::from_mins(150);
    for (policy, hours, missed) in [
        (CatchUp::None, vec![], "count=3 first=2026-11-15T08:00:00Z last=2026-11-15T10:00:00Z"),
        (CatchUp::Last, vec![10], "count=2 first=2026-11-15T08:00:00Z last=2026-11-15T09:00:00Z"),
        (
            CatchUp::All { window },
            vec![9, 10],
            "count=1 first=2026-11-15T08:00:00Z last=2026-11-15T08:00:00Z",
        ),
    ] {
        let cluster = Cluster::new().await;
        let (before, after) = (TestHandler::immediate(), TestHandler::immediate());
        let (node, _connection) = cluster.node(1, every_hour(policy), &before).await;
        cluster.advance(Duration::from_mins(61)).await;
        assert_eq!(before.attempts().len(), 1, "the fire of 07:00");
        cluster.stop(node).await;
        cluster.clock.advance(Duration::from_mins(210));
        Log::start_capture();
        let (_node, _connection) = cluster.node(1, every_hour(policy), &after).await;
        cluster.advance_seconds(5).await;

        let caught_up = due(&after.attempts());
        let expected = hours
            .into_iter()
            .map(|hour| (0, format!("2026-11-15T{hour:02}:00:00Z"), RunReason::CatchUp));
        assert_eq!(caught_up, expected.collect::<Vec<_>>(), "{policy:?}");
        let logged = Log::captured();
        let logged =
            logged.lines().find(|line| line.contains("fires missed while no instance was up"));
        assert!(logged.is_some_and(|line| line.contains(missed)), "{policy:?}: {logged:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fires_of_a_frozen_machine_are_reported_as_coalesced() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let every_ten = job(1).cron("0/10 * * * * ?").unwrap();
    let (_node, _connection) = cluster.node(1, every_ten, &handler).await;
    cluster.advance_seconds(11).await;
    assert_eq!(handler.attempts().len(), 1);

    Log::start_capture();
    // One step of the clock: nothing of this process runs meanwhile.
    cluster.clock.advance(Duration::from_secs(100));
    cluster.advance_seconds(2).await;

    let expected = [(0, "2026-11-15T06:01:50Z".to_owned(), RunReason::Schedule)];
    assert_eq!(due(&handler.attempts()[1..]), expected);
    let logged = Log::captured();
    let line = logged.lines().find(|line| line.contains("fires coalesced into one run"));
    let fires = "count=9 first=2026-11-15T06:00:20Z last=2026-11-15T06:01:40Z";
    assert!(line.is_some_and(|line| line.contains(fires)), "{logged}");
}

#[tokio::test(start_paused = true)]
async fn misfire_is_compensated_right_after_the_run_beside_java() {
    let cluster = Cluster::new().await;
    let slow = TestHandler::blocked();
    let every_two = job(2).cron("0/2 * * * * ?").unwrap().misfire(Misfire::RunOnce);
    let (_node, _connection) = cluster.node(1, every_two, &slow).await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    cluster.advance_seconds(1).await;
    assert_eq!(cluster.owners(2).await[0], java.id);

    // The run starts at :02 and ends at :07; :04 and :06 come due meanwhile, and no other instance can have run them.
    cluster.advance_seconds(6).await;
    slow.unblock();
    cluster.settle().await;

    let expected = [
        (1, "2026-11-15T06:00:02Z".to_owned(), RunReason::Schedule),
        (1, "2026-11-15T06:00:06Z".to_owned(), RunReason::Misfire),
    ];
    assert_eq!(due(&slow.attempts()), expected);
}

#[tokio::test(start_paused = true)]
async fn leader_clears_a_stale_processing_node_after_a_timeout() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) =
        cluster.node(1, job(2).cron("0/5 * * * * ?").unwrap(), &handler).await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    cluster.advance_seconds(1).await;
    let owners = cluster.owners(2).await;

    // The job of a Java leader is shut down during sharding, and its process stays alive.
    java.create_ephemeral(&cluster.tree.processing(), "").await;
    cluster.remove(&cluster.tree.shard(0, ShardNode::Owner)).await;
    cluster.remove(&cluster.tree.shard(1, ShardNode::Owner)).await;
    cluster.advance_seconds(5).await;
    assert!(cluster.exists(&cluster.tree.processing()).await, "the sharding may still complete");
    cluster.advance_seconds(6).await;

    assert!(!cluster.exists(&cluster.tree.processing()).await);
    assert_eq!(cluster.owners(2).await, owners);
    handler.clear();
    cluster.advance_seconds(5).await;
    assert_eq!(handler.shards_and_reasons(), [(1, RunReason::Schedule)]);
}

#[tokio::test(start_paused = true)]
async fn trigger_of_a_disabled_server_does_not_run_after_enabling() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, job(1).cron("0 0 * * * ?").unwrap(), &handler).await;
    cluster.advance_seconds(1).await;
    let id = cluster.children(&cluster.tree.instances()).await.remove(0);
    let server = cluster.tree.server("10.0.0.1");

    // The leader has no instance to assign shards to, so the flag stays.
    cluster.write(&server, "DISABLED").await;
    cluster.write(&cluster.tree.necessary(), "").await;
    cluster.write(&cluster.tree.trigger(&id), "").await;
    cluster.advance_seconds(2).await;
    assert!(!cluster.exists(&cluster.tree.trigger(&id)).await, "the trigger was taken");
    cluster.write(&server, "ENABLED").await;
    cluster.advance_seconds(5).await;

    assert!(handler.attempts().is_empty(), "{:?}", handler.attempts());
    cluster.write(&cluster.tree.trigger(&id), "").await;
    cluster.advance_seconds(1).await;
    assert_eq!(handler.attempts().len(), 1, "a later trigger runs");
}
