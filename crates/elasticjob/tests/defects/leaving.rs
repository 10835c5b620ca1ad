//! A job is left while the process and its session live on: nothing of it may stay behind but what still runs.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use elasticjob::{
    coordination::tree::ShardNode,
    execution::{Execution, Failure, Listener, ShardResult},
    job::{Job, RunReason, Shard},
    node::{NodeError, NodeJob, RunningNode},
};

use crate::{
    cluster::{Cluster, Connection, creates_below, job},
    members::id,
    nodes::TestHandler,
};

/// Never returns after a run.
struct StuckListener;

#[async_trait]
impl Listener for StuckListener {
    async fn after(&self, _: &Execution, _: &[ShardResult]) -> Result<(), Failure> {
        std::future::pending().await
    }
}

/// A job of four shards on two nodes. The first node owns shards `idle` and `stuck`: `idle` does not run, and `stuck` has a run that never ends.
struct StuckRun {
    cluster: Cluster,
    node: RunningNode,
    _connection: Connection,
    _other: (RunningNode, Connection),
    staying: TestHandler,
    idle: u32,
    stuck: u32,
}

impl StuckRun {
    async fn new() -> Self {
        let cluster = Cluster::new().await;
        let (leaving, staying) = (TestHandler::immediate(), TestHandler::immediate());
        let with = |job: NodeJob| job.listener(Arc::new(StuckListener));
        let (node, connection) = cluster.node_with(1, job(4), &leaving, with).await;
        let other = cluster.node(2, job(4), &staying).await;
        let owners = cluster.owners(4).await;
        let own = (0..4).filter(|shard| owners[*shard as usize].starts_with("10.0.0.1@"));
        let own: Vec<u32> = own.collect();
        cluster.write(&cluster.tree.shard(own[0], ShardNode::Disabled), "").await;
        cluster.advance_seconds(5).await;
        assert_eq!(leaving.attempts().len(), 1);
        Self {
            cluster,
            node,
            _connection: connection,
            _other: other,
            staying,
            idle: own[0],
            stuck: own[1],
        }
    }
}

#[tokio::test(start_paused = true)]
async fn job_left_while_cut_off_is_free_once_the_registry_answers() {
    let cluster = Cluster::new().await;
    let (leaving, staying) = (TestHandler::immediate(), TestHandler::immediate());
    let (node, connection) = cluster.node(1, job(2), &leaving).await;
    let (_other, _connection) = cluster.node(2, job(2), &staying).await;

    connection.link.cut();
    cluster.settle().await;
    let name = job(2).name;
    let (is_removed, ()) = tokio::join!(node.remove(&name), async {
        cluster.advance_seconds(2).await;
        connection.link.heal();
        cluster.advance_seconds(4).await;
    });
    assert!(is_removed);
    staying.clear();
    cluster.advance_seconds(5).await;

    assert_eq!(cluster.children(&cluster.tree.instances()).await.len(), 1);
    let all = [(0, RunReason::Schedule), (1, RunReason::Schedule)];
    assert_eq!(staying.shards_and_reasons(), all);
}

#[tokio::test(start_paused = true)]
async fn left_job_with_a_stuck_run_frees_everything_but_that_shard() {
    let StuckRun { cluster, node, staying, idle, stuck, .. } = &StuckRun::new().await;
    let name = job(4).name;
    let removal = node.remove(&name);
    tokio::pin!(removal);
    tokio::select! {
        biased;
        () = cluster.advance_seconds(3) => {}
        _ = &mut removal => panic!("the listener never returns"),
    }

    let instances = cluster.children(&cluster.tree.instances()).await;
    assert!(matches!(&instances[..], [id] if id.starts_with("10.0.0.2@")), "{instances:?}");
    assert_eq!(cluster.text(&cluster.tree.leader()).await.as_ref(), instances.first());
    assert_eq!(cluster.owners(4).await[*idle as usize], instances[0], "the idle shard has moved");
    assert!(removal.await, "leaving ends, although a run does not");
    staying.clear();
    cluster.remove(&cluster.tree.shard(*idle, ShardNode::Disabled)).await;
    cluster.advance_seconds(5).await;

    assert!(cluster.running(*stuck).await.is_some_and(|id| id.starts_with("10.0.0.1@")));
    let ran: Vec<u32> = staying.shards_and_reasons().into_iter().map(|(shard, _)| shard).collect();
    let others: Vec<u32> = (0..4).filter(|shard| shard != stuck).collect();
    assert_eq!(ran, others, "the stuck shard may still run");
}

#[tokio::test(start_paused = true)]
async fn job_with_a_stuck_run_is_not_joined_again_before_that_ends() {
    let StuckRun { cluster, node, .. } = &StuckRun::new().await;
    let name = job(4).name;
    tokio::join!(node.remove(&name), cluster.advance_seconds(1));

    let again = NodeJob::code(job(4), |_: Shard| async { Ok::<(), Failure>(()) });
    let refused = node.add(again).await;

    assert!(matches!(refused, Err(NodeError::StillLeaving { .. })), "{refused:?}");
    assert!(!node.remove(&name).await);
    assert!(node.jobs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn left_job_is_joined_again() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (node, _connection) = cluster.node(1, job(1), &handler).await;
    let name = job(1).name;
    tokio::join!(node.remove(&name), cluster.advance_seconds(1));
    assert!(cluster.children(&cluster.tree.instances()).await.is_empty());

    let again = NodeJob::code(job(1), |_: Shard| async { Ok::<(), Failure>(()) });
    node.add(again).await.unwrap();

    assert_eq!(cluster.children(&cluster.tree.instances()).await.len(), 1);
    assert_eq!(node.jobs(), [name]);
}

#[tokio::test(start_paused = true)]
async fn beside_java_the_instance_stays_until_its_runs_have_ended() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (node, _connection) = cluster.node(1, job(1), &handler).await;
    cluster.advance_seconds(5).await;
    assert_eq!(handler.attempts().len(), 1);
    let _java = cluster.java("10.0.0.9@-@4711").await;
    cluster.settle().await;

    let name = job(1).name;
    let removal = node.remove(&name);
    tokio::pin!(removal);
    tokio::select! {
        biased;
        () = cluster.advance_seconds(3) => {}
        _ = &mut removal => panic!("a shard still runs"),
    }
    let instances = cluster.children(&cluster.tree.instances()).await;
    assert_eq!(instances.len(), 2, "Java would take its shard over: {instances:?}");
    let leader = cluster.text(&cluster.tree.leader()).await;
    assert!(leader.is_none_or(|id| !id.starts_with("10.0.0.1@")), "leadership is given up");
    handler.unblock();
    tokio::join!(removal, cluster.advance_seconds(1));

    assert_eq!(cluster.children(&cluster.tree.instances()).await, ["10.0.0.9@-@4711"]);
}

#[tokio::test(start_paused = true)]
async fn instance_that_leaves_while_it_queues_for_an_election_keeps_no_place() {
    let cluster = Cluster::new().await;
    let (leaving, staying) = (TestHandler::immediate(), TestHandler::immediate());
    // Another program is first in the queue, so that no instance is elected.
    let foreign = cluster.tree.election_latch().join("_c_1-latch-0000000000").unwrap();
    cluster.write(&foreign, "").await;
    // An instance that finds an assignment to be made does not lead at once: it stands for election.
    cluster.write(&cluster.tree.necessary(), "").await;
    let (node, _connection) = cluster.node(1, job(1), &leaving).await;
    let latch = cluster.tree.election_latch();
    assert_eq!(cluster.children(&latch).await.len(), 2);

    let name = job(1).name;
    tokio::join!(node.remove(&name), cluster.advance_seconds(1));
    cluster.remove(&foreign).await;
    let (_other, _connection) = cluster.node(2, job(1), &staying).await;
    cluster.advance_seconds(5).await;

    assert_eq!(cluster.children(&latch).await.len(), 0);
    assert_eq!(staying.attempts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn job_whose_join_is_not_answered_is_not_joined() {
    let cluster = Cluster::new().await;
    let (failing, staying) = (TestHandler::immediate(), TestHandler::immediate());
    let (_other, _connection) = cluster.node(2, job(2), &staying).await;
    let another = Job::named("another").unwrap();
    let (node, connection) = cluster.node(1, another, &failing).await;
    let added = || NodeJob::code(job(2), |_: Shard| async { Ok::<(), Failure>(()) });

    let instances = cluster.tree.instances();
    let mut entry = connection.block_next(move |ops| creates_below(ops, &instances));
    let (joined, ()) = tokio::join!(node.add(added()), async {
        entry.reached().await;
        connection.link.cut_after_next_request();
        entry.unblock();
    });
    assert!(joined.is_err());
    assert_eq!(cluster.children(&cluster.tree.instances()).await.len(), 2, "it was carried out");
    assert!(matches!(node.add(added()).await, Err(NodeError::StillLeaving { .. })));
    connection.link.heal();
    cluster.advance_seconds(2).await;
    staying.clear();
    cluster.advance_seconds(5).await;

    assert_eq!(cluster.children(&cluster.tree.instances()).await.len(), 1);
    assert_eq!(staying.attempts().len(), 2, "it runs all shards");
    node.add(added()).await.unwrap();
    assert_eq!(cluster.children(&cluster.tree.instances()).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn election_that_panicked_keeps_no_place_in_the_queue() {
    let cluster = Cluster::new().await;
    let connection = cluster.connect().await;
    let leader = cluster.tree.leader();
    connection.panic_on_next(move |ops| ops.iter().any(|op| *op.path() == leader));
    // An instance that finds an assignment to be made does not lead at once: it stands for election.
    cluster.write(&cluster.tree.necessary(), "").await;
    let first = cluster.join_as(id(1), job(1), connection).await.unwrap();
    cluster.settle().await;
    let second = cluster.join(2, job(1)).await;
    cluster.advance_seconds(5).await;

    assert!(cluster.children(&cluster.tree.election_latch()).await.is_empty());
    let leader = cluster.text(&cluster.tree.leader()).await;
    assert!(leader == Some(first.id()) || leader == Some(second.id()), "{leader:?}");
}

#[tokio::test(start_paused = true)]
async fn leader_that_is_not_an_instance_is_deposed() {
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.9@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let ours = cluster.join(1, job(1)).await;
    // As Java does when it reconnects.
    java.delete_instance_node(&cluster.tree).await;
    cluster.advance_seconds(2).await;
    java.recreate_instance_node(&cluster.tree).await;
    cluster.advance_seconds(30).await;
    assert_eq!(cluster.text(&cluster.tree.leader()).await.as_deref(), Some(java.id));

    // Its process lives on and keeps the node of the leader.
    java.delete_instance_node(&cluster.tree).await;
    cluster.advance(Duration::from_secs(10)).await;

    assert_eq!(cluster.text(&cluster.tree.leader()).await, Some(ours.id()));
    assert_eq!(cluster.owners(1).await, [ours.id()]);
}
