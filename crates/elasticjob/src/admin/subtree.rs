//! Reads everything below a node, many requests at a time.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;

use crate::registry::{Error, Node, Path, Registry};

/// Maximum number of concurrent requests: enough to keep the connection busy, few enough not to fill the server's queue.
const MAX_IN_FLIGHT: usize = 256;

/// A node and everything below it, with data; empty if the node does not exist. Nodes created or deleted meanwhile may be included or not.
pub(super) async fn read_subtree(
    registry: &dyn Registry,
    root: &Path,
) -> Result<BTreeMap<Path, Node>, Error> {
    let mut nodes = BTreeMap::new();
    let mut level = vec![root.clone()];
    while !level.is_empty() {
        let mut next = Vec::new();
        for batch in level.chunks(MAX_IN_FLIGHT) {
            let reads = batch.iter().map(|path| read_node(registry, path));
            for (path, found) in batch.iter().zip(try_join_all(reads).await?) {
                let Some((node, children)) = found else { continue };
                nodes.insert(path.clone(), node);
                // A child whose name is not a valid path segment was not written by ElasticJob.
                next.extend(children.iter().filter_map(|child| path.join(child).ok()));
            }
        }
        level = next;
    }
    Ok(nodes)
}

/// Reads a node and the names of its children. Most nodes are leaves, for which the stat saves the second request.
async fn read_node(
    registry: &dyn Registry,
    path: &Path,
) -> Result<Option<(Node, Vec<String>)>, Error> {
    let Some(node) = registry.get(path).await? else { return Ok(None) };
    let children = match node.stat.children {
        0 => Vec::new(),
        _ => registry.children(path).await?.unwrap_or_default(),
    };
    Ok(Some((node, children)))
}
