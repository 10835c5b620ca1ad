//! Nodes whose access list is another user's: what depends on them does not run, and everything else goes on.

use std::collections::BTreeSet;

use elasticjob::{
    coordination::tree::ShardNode,
    registry::{Create, Digest, ExpectedVersion, Path, Registry, memory::MemoryRegistry},
};

use crate::{
    cluster::{Cluster, Connection, RECHECK_SECONDS, job},
    members::with_failover,
    nodes::TestHandler,
};

impl Cluster {
    /// Replaces a node by one that only another user may read or change. `connection` misses that and takes a new snapshot.
    async fn replace_as_stranger(
        &self,
        connection: &Connection,
        path: &Path,
        data: &'static str,
    ) -> MemoryRegistry {
        let stranger = Digest { user: "stranger".to_owned(), password: "secret".to_owned() };
        let stranger = self.server.join_as("shop".parse().unwrap(), Some(stranger)).await.unwrap();
        connection.link.cut();
        self.settle().await;
        self.remove(path).await;
        stranger.create(Create::persistent(path, data)).await.unwrap();
        connection.link.heal();
        self.settle().await;
        stranger
    }
}

fn ran(handler: &TestHandler) -> BTreeSet<u32> {
    handler.attempts().iter().map(|attempt| attempt.item).collect()
}

/// A node that runs three shards, and one path of the first of them replaced.
async fn shards_that_run_beside(path: impl Fn(&Cluster) -> Path) -> (BTreeSet<u32>, usize) {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, job(3), &handler).await;
    cluster.advance_seconds(6).await;
    assert_eq!(ran(&handler), BTreeSet::from([0, 1, 2]));
    let _stranger =
        cluster.replace_as_stranger(&connection, &path(&cluster), "10.0.0.9@-@4711").await;
    handler.clear();
    let before = connection.requests();

    cluster.advance_seconds(20).await;
    (ran(&handler), (connection.requests() - before).writes)
}

#[tokio::test(start_paused = true)]
async fn ledger_page_of_another_user_stops_only_its_shard() {
    let (ran, _) = shards_that_run_beside(|cluster| cluster.tree.ledger_page(0)).await;
    assert_eq!(ran, BTreeSet::from([1, 2]));
}

#[tokio::test(start_paused = true)]
async fn owner_node_of_another_user_stops_only_its_shard() {
    let owner = |cluster: &Cluster| cluster.tree.shard(0, ShardNode::Owner);
    let (ran, writes) = shards_that_run_beside(owner).await;
    assert_eq!(ran, BTreeSet::from([1, 2]));
    assert!(writes < 20, "{writes} writes: it is not assigned again and again");
}

#[tokio::test(start_paused = true)]
async fn node_that_its_user_gives_back_is_noticed() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, job(2), &handler).await;
    let owner = cluster.tree.shard(0, ShardNode::Owner);
    let stranger = cluster.replace_as_stranger(&connection, &owner, "").await;
    cluster.advance_seconds(6).await;
    assert_eq!(ran(&handler), BTreeSet::from([1]));

    // No change of it is reported to others.
    stranger.delete(&owner, ExpectedVersion::Any).await.unwrap();
    cluster.advance_seconds(RECHECK_SECONDS).await;

    assert_eq!(ran(&handler), BTreeSet::from([0, 1]));
}

#[tokio::test(start_paused = true)]
async fn running_node_of_another_user_stops_only_its_shard() {
    let running = |cluster: &Cluster| cluster.tree.shard(0, ShardNode::Running);
    let (ran, writes) = shards_that_run_beside(running).await;
    assert_eq!(ran, BTreeSet::from([1, 2]));
    assert!(writes < 40, "{writes} writes: it is not claimed again and again");
}

#[tokio::test(start_paused = true)]
async fn trigger_of_another_user_stops_nothing() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, job(1), &handler).await;
    let (_other_node, _connection) = cluster.node(2, job(1), &handler).await;
    let instance = cluster.children(&cluster.tree.instances()).await.remove(0);
    let trigger = cluster.tree.trigger(&instance);
    cluster.write(&trigger.parent().unwrap(), "").await;

    let _stranger = cluster.replace_as_stranger(&connection, &trigger, "").await;
    cluster.write(&cluster.tree.necessary(), "").await;
    cluster.advance_seconds(6).await;

    assert_eq!(ran(&handler), BTreeSet::from([0]));
    assert!(!cluster.exists(&cluster.tree.necessary()).await, "the leader goes on");
}

#[tokio::test(start_paused = true)]
async fn lost_shard_whose_holder_may_not_be_read_keeps_no_other_from_recovery() {
    let cluster = Cluster::new().await;
    let ours = cluster.join(1, with_failover(2)).await;
    let dead = "10.0.0.9@-@4711";
    let running = |shard| cluster.tree.shard(shard, ShardNode::Running);
    let _stranger = cluster.replace_as_stranger(&ours.connection, &running(0), dead).await;
    cluster.write(&running(1), dead).await;

    cluster.advance_seconds(RECHECK_SECONDS).await;

    assert!(!cluster.exists(&running(1)).await, "it is marked as lost");
    assert!(cluster.exists(&running(0)).await, "it cannot be read");
}
