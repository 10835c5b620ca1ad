//! Checks that the registry tree holds no leftovers once no more faults are injected.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use elasticjob::{
    coordination::{
        ledger::{LedgerPage, LedgerState},
        tree::{JobTree, ShardNode},
    },
    registry::{Error, Path, Registry},
};

use crate::step_job::StepJob;

/// How long the cluster may take to become quiescent.
const TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Waits until `instances` instances share every job and no node of an earlier instance is left. Returns the remaining problems on timeout.
pub async fn wait_until_quiescent(
    registry: &dyn Registry,
    jobs: &[StepJob],
    instances: usize,
) -> Result<(), Vec<String>> {
    let mut problems = Vec::new();
    let polling = async {
        loop {
            problems = find_problems(registry, jobs, instances)
                .await
                .unwrap_or_else(|error| vec![error.to_string()]);
            if problems.is_empty() {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let quiescent = tokio::time::timeout(TIMEOUT, polling).await;
    quiescent.map_err(|_| problems)
}

/// Lists the differences from a quiescent tree. Claims of live instances are not reported: a run may be in progress.
async fn find_problems(
    registry: &dyn Registry,
    jobs: &[StepJob],
    instances: usize,
) -> Result<Vec<String>, Error> {
    registry.sync().await?;
    let mut problems = Vec::new();
    for job in jobs {
        let name = job.name.parse().map_err(|_| Error::Closed)?;
        let tree = JobTree::new(registry.namespace(), &name).map_err(|_| Error::Closed)?;
        let mut report = |problem: String| problems.push(format!("{}: {problem}", job.name));
        let live: BTreeSet<String> = children(registry, &tree.instances()).await?;
        if live.len() != instances {
            report(format!("{} instances instead of {instances}", live.len()));
        }
        for server in children(registry, &tree.servers()).await? {
            let status = text(registry, &tree.server(&server)).await?;
            if status.as_deref() != Some("ENABLED") {
                report(format!("{server} is {status:?}"));
            }
        }
        for path in [tree.necessary(), tree.processing()] {
            if registry.exists(&path).await?.is_some() {
                report(format!("{path} exists"));
            }
        }
        let mut leftovers = BTreeMap::new();
        leftovers.insert("flagged for failover", tree.failover_items());
        leftovers.insert("in the election queue", tree.election_latch());
        leftovers.insert("in the failover queue", tree.failover_latch());
        for (place, path) in leftovers {
            let names = children(registry, &path).await?;
            if !names.is_empty() {
                report(format!("{place}: {names:?}"));
            }
        }
        for shard in 0..job.shards {
            let owner = text(registry, &tree.shard(shard, ShardNode::Owner)).await?;
            if instances > 0 && owner.as_ref().is_none_or(|owner| !live.contains(owner)) {
                report(format!("shard {shard} is assigned to {owner:?}"));
            }
            for part in [ShardNode::Running, ShardNode::Failover, ShardNode::Failovering] {
                let holder = text(registry, &tree.shard(shard, part)).await?;
                if holder.as_ref().is_some_and(|holder| !live.contains(holder)) {
                    report(format!("shard {shard} has {part:?} of {holder:?}"));
                }
            }
            let page = registry.get(&tree.ledger_page(shard)).await?;
            let page = page.and_then(|node| LedgerPage::read(&node.data).ok()).unwrap_or_default();
            let holder = page.holder.map(|holder| holder.to_string()).unwrap_or_default();
            if page.state == LedgerState::Running && !live.contains(&holder) {
                report(format!("shard {shard} runs on {holder} according to the ledger"));
            }
        }
    }
    Ok(problems)
}

/// The names of the children of a node; empty if the node does not exist.
pub async fn children(registry: &dyn Registry, path: &Path) -> Result<BTreeSet<String>, Error> {
    Ok(registry.children(path).await?.unwrap_or_default().into_iter().collect())
}

/// The data of a node as text, if the node exists.
pub async fn text(registry: &dyn Registry, path: &Path) -> Result<Option<String>, Error> {
    let node = registry.get(path).await?;
    Ok(node.map(|node| String::from_utf8_lossy(&node.data).into_owned()))
}
