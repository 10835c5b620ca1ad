//! Removes a job completely.
//!
//! One transaction deletes its tree and its ledger pages, so that no client ever sees half a job. If another client creates a job of the same name at
//! the same time, either the creation comes first, the transaction is refused, and removal reads again; or it comes after, and the new job stays.
//! A tree that is too large for one transaction is deleted in several: the first deletes the configuration, without which no Rust instance writes, and
//! each of the others checks that there is still none.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    error::AdminError,
    handle::Admin,
    snapshot::{Contents, JobSnapshot},
    switch::{too_many_conflicts, was_committed},
};
use crate::{
    job::JobName,
    registry::{Create, ExpectedVersion, Op, Path},
};

/// Maximum number of attempts if the job changes meanwhile.
const MAX_ATTEMPTS: usize = 16;

/// Result of removing a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RemovalResult {
    /// Number of deleted nodes, including those of the ledger.
    pub nodes: usize,
    /// Ids of the job's instances: they notice the removal and leave.
    pub instances: Vec<String>,
}

impl Admin {
    /// Removes a job: configuration, tree and ledger. Refused while the job has instances, unless `force` is set.
    pub async fn remove(&self, job: &JobName, force: bool) -> Result<RemovalResult, AdminError> {
        let mut snapshot = self.snapshot_with(job, Contents::Nodes).await?;
        if !snapshot.exists() {
            return Err(self.no_such_job(job, false));
        }
        let mut removed = RemovalResult { nodes: 0, instances: Vec::new() };
        for _ in 0..MAX_ATTEMPTS {
            let instances: Vec<String> = snapshot.instance_ids().into_iter().collect();
            if !instances.is_empty() && !force {
                return Err(AdminError::refused(
                    format!("job {job} has instances: {}", instances.join(", ")),
                    "shut it down first, or force it",
                ));
            }
            removed.instances.extend(instances);
            removed.nodes += self.delete_nodes(&snapshot).await?;
            // Instances may have written nodes since: Java does not check whether the job still exists.
            snapshot = self.snapshot_with(job, Contents::Nodes).await?;
            if !snapshot.exists() || (removed.nodes > 0 && snapshot.config_node().is_some()) {
                removed.instances.sort_unstable();
                removed.instances.dedup();
                return Ok(removed);
            }
        }
        Err(too_many_conflicts(job))
    }

    /// Deletes the nodes of the snapshot. Returns how many were deleted: 0 if the job has changed since.
    async fn delete_nodes(&self, snapshot: &JobSnapshot) -> Result<usize, AdminError> {
        let plan = deletions(snapshot);
        let limits = self.registry.limits();
        let mut first = plan.clone();
        if limits.fitting(&[], &plan) < plan.len() {
            // No instance can join without the parent node of instances, and none writes without a configuration.
            first = entry_deletions(snapshot);
        }
        let mut deleted = first.len();
        let first_paths: BTreeSet<Path> = first.iter().map(|op| op.path().clone()).collect();
        if !was_committed(self.registry.multi(first).await)? {
            return Ok(0);
        }
        let remaining: Vec<Op> =
            plan.into_iter().filter(|op| !first_paths.contains(op.path())).collect();
        // Creating the configuration succeeds only if there is none.
        let config = snapshot.tree.config();
        let no_config = [Op::Create(Create::persistent(&config, "")), delete(config)];
        for batch in limits.batches(&no_config, &remaining) {
            let mut ops = batch.to_vec();
            if snapshot.has(snapshot.tree.root())
                && !batch.iter().any(|op| op.path() == snapshot.tree.root())
            {
                ops.extend_from_slice(&no_config);
            }
            if !was_committed(self.registry.multi(ops).await)? {
                break;
            }
            deleted += batch.len();
        }
        Ok(deleted)
    }
}

/// Deletes all nodes, children before parents; the configuration only in the version of the snapshot.
fn deletions(snapshot: &JobSnapshot) -> Vec<Op> {
    // A path sorts before those below it, so in reverse order children come before parents.
    let ledger = snapshot.ledger.keys().rev().cloned().map(delete);
    let tree = snapshot.nodes.iter().rev().map(|(path, node)| {
        let is_config = *path == snapshot.tree.config();
        let expected = if is_config {
            ExpectedVersion::Version(node.stat.version)
        } else {
            ExpectedVersion::Any
        };
        Op::Delete { path: path.clone(), expected }
    });
    ledger.chain(tree).collect()
}

/// Deletes the nodes without which no instance joins or writes: the configuration, and the instances with their parent.
fn entry_deletions(snapshot: &JobSnapshot) -> Vec<Op> {
    let instances = snapshot.tree.instances();
    let all = deletions(snapshot).into_iter();
    all.filter(|op| {
        *op.path() == snapshot.tree.config()
            || *op.path() == instances
            || op.path().relative_to(&instances).is_some()
    })
    .collect()
}

fn delete(path: Path) -> Op {
    Op::Delete { path, expected: ExpectedVersion::Any }
}
