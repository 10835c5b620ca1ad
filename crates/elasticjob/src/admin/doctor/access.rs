//! Checks that all nodes have the same access list. A namespace in which some nodes belong to one user and others to everyone was written by processes
//! with different credentials: each locks the other out of some nodes, which shows only when it has to write them.

use std::collections::BTreeMap;

use crate::{
    admin::JobSummary,
    registry::{Error, Registry, zookeeper::ZooKeeper},
};

use super::{Check, Finding};

/// Maximum number of paths named for each access list.
const MAX_NAMED: usize = 3;

pub(super) async fn check(
    registry: &ZooKeeper,
    jobs: &[JobSummary],
) -> Result<Vec<Finding>, Error> {
    let namespace = registry.namespace().path();
    let mut paths = vec![namespace.clone()];
    for job in jobs {
        paths.extend(namespace.join(&job.name));
        paths.extend(namespace.join(format!("{}/config", job.name)));
    }
    // Paths by access list.
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths {
        let principals = match registry.access(&path).await {
            Ok(None) => continue,
            Ok(Some(mut principals)) => {
                principals.sort_unstable();
                principals.join(" ")
            }
            Err(Error::NotAuthorised { .. }) => "another user".to_owned(),
            Err(error) => return Err(error),
        };
        groups.entry(principals).or_default().push(path.to_string());
    }
    Ok(vec![evaluate(&groups)])
}

fn evaluate(groups: &BTreeMap<String, Vec<String>>) -> Finding {
    if let [(principals, paths)] = &groups.iter().collect::<Vec<_>>()[..] {
        let message = format!("all {} nodes are for {principals}", paths.len());
        return Finding::fact(Check::Access, None, message);
    }
    let descriptions = groups.iter().map(|(principals, paths)| {
        let named = paths.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = if paths.len() > MAX_NAMED { ", …" } else { "" };
        format!("{} for {principals} ({named}{more})", paths.len())
    });
    Finding::problem(
        Check::Access,
        None,
        format!(
            "nodes have different access lists: {}",
            descriptions.collect::<Vec<_>>().join("; ")
        ),
        "give every process the same user and password, or none, and make the access lists equal (zkCli: setAcl -R)",
    )
}
