//! Jobs with more shards than fit into one request.

use std::{collections::BTreeSet, sync::Arc};

use elasticjob::{
    coordination::{ledger::LedgerState, tree::ShardNode},
    job::{Job, Misfire, RunReason},
    registry::{Limits, memory::MemoryServer},
};

use crate::{
    cluster::{Cluster, clock, creates, job},
    members::with_failover,
    nodes::TestHandler,
};

/// Every minute, so that one fire is over before the next one.
fn every_minute(job: Job) -> Job {
    job.cron("5 * * * * ?").unwrap()
}

#[tokio::test(start_paused = true)]
async fn instance_runs_more_shards_than_fit_into_one_request() {
    const SHARDS: u32 = 3_000;
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, every_minute(job(SHARDS)), &handler).await;

    cluster.advance_seconds(10).await;
    let ran: BTreeSet<u32> = handler.attempts().iter().map(|attempt| attempt.item).collect();
    assert_eq!((ran.len(), handler.attempts().len()), (SHARDS as usize, SHARDS as usize));
    for shard in [0, SHARDS / 2, SHARDS - 1] {
        assert_eq!(cluster.page(shard).await.state, LedgerState::Done);
        assert_eq!(cluster.running(shard).await, None);
    }

    // Claim and release take two requests each.
    cluster.advance_seconds(50).await;
    handler.clear();
    let before = connection.requests();
    cluster.advance_seconds(10).await;
    assert_eq!(handler.attempts().len(), SHARDS as usize);
    let requests = connection.requests() - before;
    assert!(requests.writes <= 4 && requests.reads <= 4, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn survivor_takes_over_more_shards_than_fit_into_one_request() {
    const SHARDS: u32 = 4_500;
    let cluster = Cluster::new().await;
    let handlers = [TestHandler::immediate(), TestHandler::blocked(), TestHandler::blocked()];
    let hourly = || with_failover(SHARDS).cron("5 0 * * * ?").unwrap();
    let mut nodes = Vec::new();
    for (host, handler) in (1..).zip(&handlers) {
        nodes.push(cluster.node(host, hourly(), handler).await);
    }
    cluster.advance_seconds(10).await;
    // A blocked handler starts only as many shards as may run at once, but all of them are claimed.
    let survivor = &handlers[0];
    let own: BTreeSet<u32> = survivor.attempts().iter().map(|attempt| attempt.item).collect();
    assert_eq!(own.len(), SHARDS as usize / 3);
    survivor.clear();
    let before = nodes[0].1.requests();

    for (_, connection) in &nodes[1..] {
        connection.die().await;
    }
    cluster.advance_seconds(30).await;

    let reasons = survivor.shards_and_reasons();
    assert!(reasons.iter().all(|(_, reason)| *reason == RunReason::Failover), "{reasons:?}");
    let taken: BTreeSet<u32> = reasons.iter().map(|(shard, _)| *shard).collect();
    let expected: BTreeSet<u32> = &(0..SHARDS).collect() - &own;
    assert_eq!(taken.len(), reasons.len(), "each runs once");
    assert_eq!(taken, expected);
    assert_eq!(cluster.children(&cluster.tree.failover_items()).await, Vec::<String>::new());
    let requests = nodes[0].1.requests() - before;
    let shards = expected.len();
    assert!(requests.writes <= 30 && requests.reads <= 6 * shards, "{requests:?}, {shards} shards");
}

#[tokio::test(start_paused = true)]
async fn rest_of_a_partly_claimed_fire_runs_even_if_misfires_are_skipped() {
    const SHARDS: u32 = 8;
    let clock = clock();
    let limits = Limits { operations: 12, ..Limits::ZOOKEEPER };
    let server = MemoryServer::new(Arc::new(clock.clone())).limits(limits);
    let cluster = Cluster::on_server(server, clock, "settle").await;
    let handler = TestHandler::immediate();
    let job = every_minute(job(SHARDS)).misfire(Misfire::Skip);
    let (_node, connection) = cluster.node(1, job, &handler).await;
    let last = cluster.tree.shard(SHARDS - 1, ShardNode::Running);
    let mut second = connection.block_next(move |ops| creates(ops, last.as_str()));

    // The second request of the claim is executed, and its answer is lost.
    cluster.advance_seconds(6).await;
    second.reached().await;
    connection.link.cut_after_next_request();
    second.unblock();
    cluster.advance_seconds(1).await;
    connection.link.heal();
    cluster.advance_seconds(10).await;

    let all: Vec<_> = (0..SHARDS).map(|shard| (shard, RunReason::Schedule)).collect();
    assert_eq!(handler.shards_and_reasons(), all);
    let attempts = handler.attempts();
    assert!(attempts.iter().all(|attempt| attempt.due_at == attempts[0].due_at));
    assert!(attempts[0].token < attempts[SHARDS as usize - 1].token, "a token for each request");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_shards_are_assigned_to_instances_with_long_names() {
    const SHARDS: u32 = 10_000;
    let name = "j".repeat(200);
    let cluster = Cluster::with_job(&name).await;
    let handler = TestHandler::immediate();
    let job = Job::named(&name).unwrap().cron("5 0 * * * ?").unwrap().shards(SHARDS);
    let (_node, connection) = cluster.node(1, job, &handler).await;

    cluster.advance_seconds(1).await;
    assert!(cluster.exists(&cluster.tree.shard(SHARDS - 1, ShardNode::Owner)).await);
    assert!(!cluster.exists(&cluster.tree.necessary()).await);
    assert!(!cluster.exists(&cluster.tree.processing()).await);
    let requests = connection.requests();
    assert!(requests.writes <= 40, "{requests:?}");
}
