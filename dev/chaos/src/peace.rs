//! Whether the tree is as it should be when nothing goes wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use elasticjob::{
    coordination::{
        ledger::{Page, State},
        tree::{JobTree, Part},
    },
    registry::{Error, Path, Registry},
};

use crate::task::Task;

/// How long the cluster may take to get there.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(200);

/// Waits until so many instances share every job and nothing is left of those before them; otherwise what is not so.
pub async fn settles(
    registry: &dyn Registry,
    tasks: &[Task],
    instances: usize,
) -> Result<(), Vec<String>> {
    let mut wrong = Vec::new();
    let settling = async {
        loop {
            wrong = look(registry, tasks, instances)
                .await
                .unwrap_or_else(|error| vec![error.to_string()]);
            if wrong.is_empty() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let settled = tokio::time::timeout(PATIENCE, settling).await;
    settled.map_err(|_| wrong)
}

/// What is not as it should be. Between two looks something may run: what does is nobody's fault.
async fn look(
    registry: &dyn Registry,
    tasks: &[Task],
    instances: usize,
) -> Result<Vec<String>, Error> {
    registry.sync().await?;
    let mut wrong = Vec::new();
    for task in tasks {
        let name = task.name.parse().map_err(|_| Error::Closed)?;
        let tree = JobTree::new(registry.namespace(), &name).map_err(|_| Error::Closed)?;
        let mut say = |what: String| wrong.push(format!("{}: {what}", task.name));
        let live: BTreeSet<String> = children(registry, &tree.instances()).await?;
        if live.len() != instances {
            say(format!("{} instances of {instances}", live.len()));
        }
        for server in children(registry, &tree.servers()).await? {
            let status = text(registry, &tree.server(&server)).await?;
            if status.as_deref() != Some("ENABLED") {
                say(format!("{server} is {status:?}"));
            }
        }
        for path in [tree.necessary(), tree.processing()] {
            if registry.exists(&path).await?.is_some() {
                say(format!("{path} is there"));
            }
        }
        let mut left = BTreeMap::new();
        left.insert("to be taken over", tree.failover_items());
        left.insert("in the election", tree.election_latch());
        left.insert("waiting to take over", tree.failover_latch());
        for (what, path) in left {
            let there = children(registry, &path).await?;
            if !there.is_empty() {
                say(format!("{what}: {there:?}"));
            }
        }
        for shard in 0..task.shards {
            let owner = text(registry, &tree.shard(shard, Part::Owner)).await?;
            if instances > 0 && owner.as_ref().is_none_or(|owner| !live.contains(owner)) {
                say(format!("{shard} belongs to {owner:?}"));
            }
            for part in [Part::Running, Part::Failover, Part::Failovering] {
                let holder = text(registry, &tree.shard(shard, part)).await?;
                if holder.as_ref().is_some_and(|holder| !live.contains(holder)) {
                    say(format!("{shard} has {part:?} of {holder:?}"));
                }
            }
            let page = registry.get(&tree.page(shard)).await?;
            let page = page.and_then(|node| Page::read(&node.data).ok()).unwrap_or_default();
            let owner = page.owner.map(|owner| owner.to_string()).unwrap_or_default();
            if page.state == State::Running && !live.contains(&owner) {
                say(format!("{shard} runs on {owner} by the ledger"));
            }
        }
    }
    Ok(wrong)
}

/// The names below a node; none if it is not there.
pub async fn children(registry: &dyn Registry, path: &Path) -> Result<BTreeSet<String>, Error> {
    Ok(registry.children(path).await?.unwrap_or_default().into_iter().collect())
}

/// What a node says, if it is there.
pub async fn text(registry: &dyn Registry, path: &Path) -> Result<Option<String>, Error> {
    let node = registry.get(path).await?;
    Ok(node.map(|node| String::from_utf8_lossy(&node.data).into_owned()))
}
