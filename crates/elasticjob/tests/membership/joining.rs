//! Joining: what the first instance of a job does in one transaction.

use elasticjob::{
    coordination::tree::{JobTree, ShardNode},
    registry::{Create, Node, Path, Registry, Zxid},
    testing::conformance::TestServer,
};

use crate::cluster::{Cluster, claim, finish, items, job};

async fn node(registry: &dyn Registry, path: &Path) -> Node {
    let node = registry.get(path).await.unwrap();
    node.unwrap_or_else(|| panic!("{path} does not exist"))
}

/// The transactions that wrote these nodes last.
async fn written_by(cluster: &Cluster<'_>, paths: &[Path]) -> Vec<Zxid> {
    let mut all = Vec::new();
    for path in paths {
        all.push(node(cluster.registry(), path).await.stat.changed);
    }
    all.dedup();
    all
}

fn owners(tree: &JobTree, total: u32) -> impl Iterator<Item = Path> {
    (0..total).map(|shard| tree.shard(shard, ShardNode::Owner))
}

pub(crate) async fn new_job_is_stored_joined_led_and_assigned_at_once(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "new-job-is-stored").await;
    // The first job of a namespace finds no ledger there.
    cluster.registry().create(Create::persistent(&ledgers(&cluster), "")).await.unwrap();

    let one = cluster.join(1, job(4)).await;

    let tree = cluster.tree.clone();
    let mut paths = vec![tree.config(), tree.instance(one.member.id()), tree.leader()];
    paths.extend(owners(&tree, 4));
    assert_eq!(written_by(&cluster, &paths).await.len(), 1, "one transaction");
    let claimed = claim(&one, &cluster.fire()).await;
    assert_eq!(items(&claimed), [0, 1, 2, 3]);
    finish(&one, claimed).await;
    let leader = node(cluster.registry(), &tree.leader()).await;
    assert_eq!(leader.data, one.member.id().to_string());
    // Its own assignment is not made again.
    assert_eq!(written_by(&cluster, &paths).await.len(), 1, "one transaction");
}

pub(crate) async fn job_without_instances_is_joined_led_and_assigned_at_once(
    ground: &dyn TestServer,
) {
    let mut cluster = Cluster::new(ground, "job-without-instances").await;
    cluster.join(1, job(4)).await.die().await;

    let two = cluster.join(2, job(4)).await;

    let tree = cluster.tree.clone();
    let mut paths = vec![tree.instance(two.member.id()), tree.leader()];
    paths.extend(owners(&tree, 4));
    assert_eq!(written_by(&cluster, &paths).await.len(), 1, "one transaction");
    let claimed = claim(&two, &cluster.fire()).await;
    assert_eq!(items(&claimed), [0, 1, 2, 3]);
    finish(&two, claimed).await;
}

pub(crate) async fn job_whose_ledger_was_left_behind_is_joined(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "job-whose-ledger").await;
    cluster.registry().create(Create::persistent(&ledgers(&cluster), "")).await.unwrap();
    let ledger = cluster.tree.ledger();
    cluster.registry().create(Create::persistent(ledger, "")).await.unwrap();

    let one = cluster.join(1, job(2)).await;

    let claimed = claim(&one, &cluster.fire()).await;
    assert_eq!(items(&claimed), [0, 1]);
    finish(&one, claimed).await;
}

pub(crate) async fn instances_that_create_a_job_together_all_join_it(ground: &dyn TestServer) {
    let mut cluster = Cluster::new(ground, "instances-that-create").await;
    cluster.registry().create(Create::persistent(&ledgers(&cluster), "")).await.unwrap();

    let nodes: Vec<_> =
        futures_util::future::join_all((1..=4).map(|host| cluster.join(host, job(4)))).await;

    cluster.wait_for_shares("one each", 4, &[1, 1, 1, 1]).await;
    let fire = cluster.fire();
    let mut run = Vec::new();
    for node in &nodes {
        let claimed = claim(node, &fire).await;
        run.extend(items(&claimed));
        finish(node, claimed).await;
    }
    run.sort_unstable();
    assert_eq!(run, [0, 1, 2, 3]);
}

fn ledgers(cluster: &Cluster<'_>) -> Path {
    cluster.tree.ledger().parent().expect("a ledger has a parent")
}
