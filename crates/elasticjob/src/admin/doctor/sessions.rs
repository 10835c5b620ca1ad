//! Sums the paths of ephemeral nodes by session, Java's sessions too.
//!
//! When a session ends, ZooKeeper writes all its ephemeral paths into one transaction, however many there are, and after a restart it refuses to read
//! a transaction of more than about 2 MB (ZOOKEEPER-4306): the ensemble does not start again. So a session that comes near has to become smaller
//! before it ends.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    coordination::{ephemerals::bytes_of, tree::processes_path},
    job::InstanceId,
    registry::{Error, Event, Path, Registry, SessionId, Stat},
};

use super::{Check, Finding};

/// Above this, a session is reported: half of what ZooKeeper can read again.
const MAX_BYTES: usize = 1_000_000;
/// How long the registry may take for the next part of the listing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The ephemeral nodes of one session.
#[derive(Debug, Default)]
struct OwnedNodes {
    nodes: usize,
    bytes: usize,
    /// An instance of the session, by which an operator finds the process.
    instance: Option<String>,
}

pub(super) async fn check(registry: &dyn Registry) -> Result<Vec<Finding>, Error> {
    let mut sessions = BTreeMap::new();
    add_nodes_below(registry, registry.namespace().path(), &mut sessions).await?;
    if let Ok(processes) = processes_path(registry.namespace()) {
        add_nodes_below(registry, &processes, &mut sessions).await?;
    }
    Ok(evaluate(&sessions))
}

async fn add_nodes_below(
    registry: &dyn Registry,
    root: &Path,
    sessions: &mut BTreeMap<SessionId, OwnedNodes>,
) -> Result<(), Error> {
    let mut listing = registry.watch(root).await?;
    let mut found = BTreeMap::new();
    loop {
        let Ok(event) = tokio::time::timeout(TIMEOUT, listing.next()).await else {
            return Err(Error::Unreachable {
                endpoint: registry.namespace().to_string(),
                source: "its nodes could not be listed in time".into(),
            });
        };
        match event.ok_or(Error::Closed)? {
            // A listing that was interrupted starts over.
            Event::Init => found.clear(),
            Event::InitApply { path, stat, .. } => note(&mut found, &path, &stat),
            Event::InitDone => break,
            Event::Apply { .. } | Event::Delete { .. } => {}
        }
    }
    for (session, more) in found {
        let known: &mut OwnedNodes = sessions.entry(session).or_default();
        known.nodes += more.nodes;
        known.bytes += more.bytes;
        known.instance = known.instance.take().or(more.instance);
    }
    Ok(())
}

fn note(sessions: &mut BTreeMap<SessionId, OwnedNodes>, path: &Path, stat: &Stat) {
    let Some(owner) = stat.owner else { return };
    let known = sessions.entry(owner).or_default();
    known.nodes += 1;
    known.bytes += bytes_of(path);
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    if known.instance.is_none() && name.parse::<InstanceId>().is_ok() {
        known.instance = Some(name.to_owned());
    }
}

fn evaluate(sessions: &BTreeMap<SessionId, OwnedNodes>) -> Vec<Finding> {
    let is_large = |(_, owned): &(&SessionId, &OwnedNodes)| owned.bytes > MAX_BYTES;
    let large = sessions.iter().filter(is_large).map(|(session, owned)| {
        let message = format!(
            "session {session} has {} ephemeral nodes with {} bytes of paths; if it ends with more than about 2 MB, ZooKeeper cannot restart \
             (ZOOKEEPER-4306)",
            owned.nodes, owned.bytes
        );
        let hint = "spread the jobs of this process over several processes and end them one by one; or start every ZooKeeper server with \
                    -Dzookeeper.closeSessionTxn.enabled=false, which is untried here";
        Finding::problem(Check::Session, owned.instance.as_deref(), message, hint)
    });
    let large: Vec<Finding> = large.collect();
    let largest = sessions.values().max_by_key(|owned| owned.bytes);
    match largest {
        Some(largest) if large.is_empty() => {
            let message = format!(
                "{} sessions have ephemeral nodes, the largest {} bytes of paths",
                sessions.len(),
                largest.bytes
            );
            vec![Finding::fact(Check::Session, None, message)]
        }
        _ => large,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_with_more_than_a_megabyte_of_paths_is_a_problem() {
        let owned = |bytes, instance: &str| OwnedNodes {
            nodes: 1,
            bytes,
            instance: Some(instance.to_owned()),
        };
        let within = BTreeMap::from([(SessionId(1), owned(MAX_BYTES, "10.0.0.1@-@1"))]);
        let above = BTreeMap::from([
            (SessionId(1), owned(MAX_BYTES, "10.0.0.1@-@1")),
            (SessionId(2), owned(MAX_BYTES + 1, "10.0.0.2@-@2")),
        ]);

        let ([fact], [problem]) = (&evaluate(&within)[..], &evaluate(&above)[..]) else {
            panic!("one finding each");
        };
        assert_eq!((fact.is_problem, &fact.about), (false, &None));
        assert_eq!(problem.about.as_deref(), Some("10.0.0.2@-@2"));
        assert!(problem.message.contains("session 0x2 has 1 ephemeral nodes with 1000001 bytes"));
    }
}
