//! Everything below a node, many requests at a time.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;

use crate::registry::{Error, Node, Path, Registry};

/// How many requests are on the way at once: enough to fill the pipe, few enough not to fill the server's.
pub(super) const IN_FLIGHT: usize = 256;

/// A node and everything below it, with data; nothing if there is none. What appears or goes meanwhile may be in it or not.
pub(super) async fn walk(
    registry: &dyn Registry,
    root: &Path,
) -> Result<BTreeMap<Path, Node>, Error> {
    let mut nodes = BTreeMap::new();
    let mut level = vec![root.clone()];
    while !level.is_empty() {
        let mut next = Vec::new();
        for batch in level.chunks(IN_FLIGHT) {
            let looks = batch.iter().map(|path| look(registry, path));
            for (path, found) in batch.iter().zip(try_join_all(looks).await?) {
                let Some((node, children)) = found else { continue };
                nodes.insert(path.clone(), node);
                // A child whose name is no path is nobody's we know.
                next.extend(children.iter().filter_map(|child| path.join(child).ok()));
            }
        }
        level = next;
    }
    Ok(nodes)
}

/// Most nodes are leaves, and say so.
async fn look(registry: &dyn Registry, path: &Path) -> Result<Option<(Node, Vec<String>)>, Error> {
    let Some(node) = registry.get(path).await? else { return Ok(None) };
    let children = match node.stat.children {
        0 => Vec::new(),
        _ => registry.children(path).await?.unwrap_or_default(),
    };
    Ok(Some((node, children)))
}
