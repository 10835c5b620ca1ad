//! Claims and releases as a member writes them, for jobs that exist only as their nodes.

use std::{collections::BTreeSet, iter::successors};

use elasticjob::{
    coordination::tree::{JobTree, ShardNode},
    registry::{
        Create, Error, ExpectedVersion, Limits, Op, Path, Registry, SessionId, Version, ensure_path,
    },
};

use futures_util::future::try_join_all;

use super::SHARDS;
use crate::BoxError;

/// The limits of a batch of the combiner.
pub(super) const BATCH: Limits = Limits { bytes: 128 << 10, operations: 512 };
/// The size of a usual ledger page.
const PAGE: [u8; 160] = [b'x'; 160];
const INSTANCE: &str = "10.0.0.1@-@12345-0123456789abcdef";

/// The tree of a job.
pub(super) fn tree(registry: &dyn Registry, number: usize) -> Result<JobTree, BoxError> {
    Ok(JobTree::new(registry.namespace(), &format!("unit-{number}").parse()?)?)
}

/// Creates the nodes of jobs, in requests as large as ZooKeeper allows.
pub(super) async fn create(registry: &dyn Registry, trees: &[JobTree]) -> Result<(), BoxError> {
    let mut ops = Vec::new();
    for tree in trees {
        // What all jobs share exists before.
        let mut paths = BTreeSet::new();
        for shard in 0..SHARDS {
            for leaf in [tree.config(), tree.shard(shard, ShardNode::Root), tree.ledger_page(shard)]
            {
                // The namespace or its ledger is one name, and so is the job below it.
                paths.extend(successors(Some(leaf), Path::parent).filter(|path| depth(path) > 1));
            }
        }
        ops.extend(paths.iter().map(|path| Op::Create(Create::persistent(path, ""))));
    }
    if let Some(tree) = trees.first() {
        let ledger =
            successors(Some(tree.ledger_page(0)), Path::parent).find(|path| depth(path) == 1);
        for path in [Some(tree.root().clone()).and_then(|root| root.parent()), ledger] {
            ensure_path(registry, &path.ok_or("a job is below its namespace")?).await?;
        }
    }
    for batch in BATCH.batches(&[], &ops) {
        registry.multi(batch.to_vec()).await?;
    }
    Ok(())
}

fn depth(path: &Path) -> usize {
    path.as_str().matches('/').count()
}

/// The claim of all shards of a job whose pages have this version.
pub(super) fn claim(tree: &JobTree, session: SessionId, version: Version) -> Vec<Op> {
    let config = Op::Check { path: tree.config(), expected: ExpectedVersion::Version(Version(0)) };
    let shards = (0..SHARDS).flat_map(|shard| {
        let running = tree.shard(shard, ShardNode::Running);
        [Op::Create(Create::ephemeral(&running, INSTANCE, session)), page(tree, shard, version)]
    });
    [config].into_iter().chain(shards).collect()
}

/// The release of all shards of a job whose pages have this version.
pub(super) fn release(tree: &JobTree, version: Version) -> Vec<Op> {
    let shards = (0..SHARDS).flat_map(|shard| {
        let running = tree.shard(shard, ShardNode::Running);
        let delete = Op::Delete { path: running, expected: ExpectedVersion::Any };
        [delete, page(tree, shard, version)]
    });
    shards.collect()
}

fn page(tree: &JobTree, shard: u32, version: Version) -> Op {
    let expected = ExpectedVersion::Version(version);
    Op::Set { path: tree.ledger_page(shard), data: PAGE.to_vec().into(), expected }
}

/// The versions of the pages of jobs.
pub(super) async fn versions(
    registry: &dyn Registry,
    trees: &[JobTree],
) -> Result<Vec<Version>, Error> {
    let version = async |tree: &JobTree| {
        let stat = registry.exists(&tree.ledger_page(0)).await?;
        Ok(stat.map(|stat| stat.version).unwrap_or_default())
    };
    try_join_all(trees.iter().map(version)).await
}
