//! No due fire is lost: it runs, is compensated, or is reported as missed.

use std::time::Duration;

use elasticjob::{
    coordination::tree::ShardNode,
    job::{CatchUp, Job, Misfire, Monitor, RunReason},
};

use crate::{
    cluster::{Cluster, RECHECK_SECONDS, job},
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

/// A job that fires every hour and catches up on six hours.
fn catches_up() -> Job {
    let window = Duration::from_hours(6);
    job(2).cron("0 0 * * * ?").unwrap().catch_up(CatchUp::All { window })
}

#[tokio::test(start_paused = true)]
async fn fires_of_a_disabled_time_are_not_caught_up_after_a_restart() {
    let cluster = Cluster::new().await;
    let (before, after) = (TestHandler::immediate(), TestHandler::immediate());
    let (node, _connection) = cluster.node(1, catches_up(), &before).await;
    cluster.advance(Duration::from_mins(61)).await;
    assert_eq!(before.attempts().len(), 2, "the fire of 07:00");

    // As Java's console does it, from 07:01 to 09:01; shard 1 stays disabled until 10:01.
    let server = cluster.tree.server("10.0.0.1");
    let shard = cluster.tree.shard(1, ShardNode::Disabled);
    cluster.write(&server, "DISABLED").await;
    cluster.write(&shard, "").await;
    cluster.advance(Duration::from_hours(2)).await;
    cluster.write(&server, "ENABLED").await;
    cluster.advance(Duration::from_hours(1)).await;
    cluster.remove(&shard).await;
    cluster.advance(Duration::from_mins(5)).await;
    let while_running = [(0, "2026-11-15T10:00:00Z".to_owned(), RunReason::Schedule)];
    assert_eq!(due(&before.attempts()[2..]), while_running);
    cluster.stop(node).await;
    cluster.clock.advance(Duration::from_hours(1));
    Log::start_capture();
    let (_node, _connection) = cluster.node(1, catches_up(), &after).await;
    cluster.advance_seconds(5).await;

    let at_eleven = |shard| (shard, "2026-11-15T11:00:00Z".to_owned(), RunReason::CatchUp);
    let mut caught_up = due(&after.attempts());
    caught_up.sort_by_key(|(shard, ..)| *shard);
    assert_eq!(caught_up, [at_eleven(0), at_eleven(1)]);
    assert!(!Log::captured().contains("fires missed while no instance was up"));
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

#[tokio::test(start_paused = true)]
async fn misfire_of_an_instance_that_leaves_or_dies_runs_on_its_successor() {
    let hourly = |job: Job| job.cron("0 0 * * * ?").unwrap().misfire(Misfire::RunOnce);
    let misfire = (0, "2026-11-15T08:00:00Z".to_owned(), RunReason::Misfire);
    let failover = (0, "2026-11-15T07:00:00Z".to_owned(), RunReason::Failover);
    for (job, dies, expected) in [
        (hourly(job(1)), false, vec![misfire.clone()]),
        (hourly(job(1)), true, vec![misfire.clone()]),
        (hourly(with_failover(1)), true, vec![failover, misfire]),
    ] {
        let cluster = Cluster::new().await;
        let (old, new) = (TestHandler::blocked(), TestHandler::immediate());
        let (node, connection) = cluster.node(1, job.clone(), &old).await;
        // The run of 07:00 is still going at 08:00; the successor joins ten seconds later.
        cluster.advance(Duration::from_secs(2 * 60 * 60 + 10)).await;
        assert_eq!(old.attempts().len(), 1);
        Log::start_capture();
        let (_successor, _connection) = cluster.node(2, job, &new).await;
        cluster.advance_seconds(10).await;

        if dies {
            drop(node);
            connection.die().await;
        } else {
            node.begin_stop();
            cluster.settle().await;
            old.unblock();
            cluster.stop(node).await;
        }
        cluster.advance_seconds(5).await;

        assert_eq!(due(&new.attempts()), expected, "dies: {dies}");
        assert!(!Log::captured().contains("fires missed while no instance was up"), "dies: {dies}");
    }
}

#[tokio::test(start_paused = true)]
async fn misfire_of_a_shard_that_moves_during_the_run_is_compensated() {
    let cluster = Cluster::new().await;
    let (old, new) = (TestHandler::blocked(), TestHandler::immediate());
    let hourly = || with_failover(2).cron("0 0 * * * ?").unwrap().misfire(Misfire::RunOnce);
    let (node, connection) = cluster.node(1, hourly(), &old).await;
    cluster.advance(Duration::from_mins(61)).await;
    assert_eq!(old.attempts().len(), 2);
    // Shard 0 has ended and is released before shard 1; at 08:00 shard 1 still runs.
    old.unblock_shard(0);
    cluster.advance(Duration::from_secs(59 * 60 + 10)).await;
    assert_eq!(cluster.running(0).await, None);

    let (_successor, _connection) = cluster.node(2, hourly(), &new).await;
    cluster.advance_seconds(10).await;
    let moved = [(0, "2026-11-15T08:00:00Z".to_owned(), RunReason::Misfire)];
    assert_eq!(due(&new.attempts()), moved);
    drop(node);
    connection.die().await;
    cluster.advance_seconds(5).await;

    let lost = [
        (1, "2026-11-15T07:00:00Z".to_owned(), RunReason::Failover),
        (1, "2026-11-15T08:00:00Z".to_owned(), RunReason::Misfire),
    ];
    assert_eq!(due(&new.attempts()[1..]), lost);
}

#[tokio::test(start_paused = true)]
async fn fire_of_an_unmonitored_shard_that_moved_runs_when_its_run_ends() {
    let cluster = Cluster::new().await;
    let (old, new) = (TestHandler::blocked(), TestHandler::immediate());
    let hourly = || {
        let job = job(1).cron("0 0 * * * ?").unwrap();
        job.misfire(Misfire::RunOnce).monitor(Monitor::Nothing)
    };
    let (_node, _connection) = cluster.node(1, hourly(), &old).await;
    cluster.advance(Duration::from_mins(70)).await;
    assert_eq!(old.attempts().len(), 1);
    // Nothing shows that the shard runs, so it moves to the newcomer, which waits for the end of the run.
    let (_successor, _other_connection) = cluster.node(2, hourly(), &new).await;
    cluster.advance(Duration::from_mins(140)).await;
    assert!(new.attempts().is_empty());
    old.unblock();
    cluster.advance_seconds(30).await;

    let postponed = [(0, "2026-11-15T09:00:00Z".to_owned(), RunReason::Schedule)];
    assert_eq!((old.attempts().len(), due(&new.attempts())), (1, postponed.to_vec()));
}

#[tokio::test(start_paused = true)]
async fn fire_that_java_may_have_run_is_not_repeated_when_java_leaves() {
    let cluster = Cluster::new().await;
    let (rust, later) = (TestHandler::immediate(), TestHandler::immediate());
    let hourly = || job(2).cron("0 0 * * * ?").unwrap().misfire(Misfire::RunOnce);
    let (_node, _connection) = cluster.node(1, hourly(), &rust).await;
    cluster.advance_seconds(1).await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    // Java runs its shard at 07:00, which no ledger page shows.
    cluster.advance(Duration::from_mins(61)).await;
    assert_eq!(rust.attempts().len(), 1);
    java.die().await;
    cluster.advance_seconds(RECHECK_SECONDS).await;
    let (_other, _other_connection) = cluster.node(2, hourly(), &later).await;
    cluster.advance_seconds(5).await;

    assert_eq!((rust.attempts().len(), later.attempts().len()), (1, 0));
    cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(rust.attempts().len() + later.attempts().len(), 3, "both shards ran at 08:00");
}
