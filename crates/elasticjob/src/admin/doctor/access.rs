//! Who may do what. A namespace in which some nodes are one user's and some everybody's was written by processes that do not agree: each shuts
//! out the other somewhere, and that is found only when something has to be written.

use std::collections::BTreeMap;

use crate::{
    admin::JobSummary,
    registry::{Error, Registry, zookeeper::ZooKeeper},
};

use super::{Check, Finding};

/// How many of them are named.
const NAMED: usize = 3;

pub(super) async fn look(registry: &ZooKeeper, jobs: &[JobSummary]) -> Result<Vec<Finding>, Error> {
    let namespace = registry.namespace().path();
    let mut paths = vec![namespace.clone()];
    for job in jobs {
        paths.extend(namespace.join(&job.name));
        paths.extend(namespace.join(format!("{}/config", job.name)));
    }
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths {
        let who = match registry.access(&path).await {
            Ok(None) => continue,
            Ok(Some(mut who)) => {
                who.sort_unstable();
                who.join(" ")
            }
            Err(Error::NotAuthorised { .. }) => "somebody else".to_owned(),
            Err(error) => return Err(error),
        };
        groups.entry(who).or_default().push(path.to_string());
    }
    Ok(vec![judge(&groups)])
}

fn judge(groups: &BTreeMap<String, Vec<String>>) -> Finding {
    if let [(who, paths)] = &groups.iter().collect::<Vec<_>>()[..] {
        let says = format!("all of {} nodes are for {who}", paths.len());
        return Finding::fact(Check::Access, None, says);
    }
    let told = groups.iter().map(|(who, paths)| {
        let named = paths.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = if paths.len() > NAMED { ", …" } else { "" };
        format!("{} for {who} ({named}{more})", paths.len())
    });
    Finding::problem(
        Check::Access,
        None,
        format!("nodes do not belong to the same: {}", told.collect::<Vec<_>>().join("; ")),
        "give every process the same user and password, or none, and make the lists alike (zkCli: setAcl -R)",
    )
}
