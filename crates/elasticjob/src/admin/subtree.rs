//! Reads what is below a node, many requests at a time.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::error::AdminError;
use crate::registry::{Error, Node, Path, Registry};

/// Maximum number of concurrent requests: enough to keep the connection busy, few enough not to fill the server's queue.
const MAX_IN_FLIGHT: usize = 256;

/// Limit of the data in a subtree. Every writer to the registry chooses how much that is, and a console that reads it serves other jobs, too. A job with
/// the most shards has about half of it.
const MAX_BYTES: usize = 64 << 20;

/// A node and those below it that `is_read` admits; empty if the node does not exist. Nodes created or deleted meanwhile may be included or not. Refused
/// if they have very much data, unless that is left out.
pub(super) async fn read_subtree(
    registry: &dyn Registry,
    root: &Path,
    with_data: bool,
    is_read: impl Fn(&Path) -> bool,
) -> Result<BTreeMap<Path, Node>, AdminError> {
    let (mut nodes, mut bytes) = (BTreeMap::new(), 0);
    let mut level = vec![root.clone()];
    while !level.is_empty() {
        let mut next = Vec::new();
        for batch in level.chunks(MAX_IN_FLIGHT) {
            let reads = batch.iter().map(|path| read_node(registry, path));
            for (path, found) in batch.iter().zip(try_join_all(reads).await?) {
                let Some((mut node, children)) = found else { continue };
                if !with_data {
                    node.data = Bytes::new();
                }
                bytes += node.data.len();
                nodes.insert(path.clone(), node);
                // A child whose name is not a valid path segment was not written by ElasticJob.
                let children = children.iter().filter_map(|child| path.join(child).ok());
                next.extend(children.filter(&is_read));
            }
            if bytes > MAX_BYTES {
                return Err(AdminError::refused(
                    format!("{root} has more than {} MiB of data", MAX_BYTES >> 20),
                    "an ElasticJob stores far less: remove what does not belong to the job, or the job",
                ));
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
